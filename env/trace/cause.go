package trace

import (
	"context"
	"slices"
	"time"

	"github.com/tracesmith/tracesmith/env/verify"
	"github.com/tracesmith/tracesmith/schemas"
)

const (
	// maxCauses is the maximum number of candidates for experiments with one test.
	maxCauses = 4
	// maxRepeats is the maximum number of executions of a line at which one experiment sets values.
	maxRepeats = 32
	// experimentTimeout limits a run with experiments, because a program with a changed value may not end.
	experimentTimeout = time.Minute
)

// settable returns the variables of a point that can get the values of the fixed run. At the end of a function,
// these are attributes, and how it ends. The end of the test itself cannot be a cause.
func (p point) settable() []string {
	var out []string
	for _, v := range p.vars {
		ends, ok := v.Name == "<return>" || v.Name == "<exit>", !isPseudo(v.Name)
		switch p.events[0].kind {
		case "return":
			ok = isAttribute(v.Name) || ends && p.events[0].depth > 1
		case "exception":
			ok = isAttribute(v.Name)
		}
		if ok && v.Fixed != "" {
			out = append(out, v.Name)
		}
	}
	return out
}

// ends returns how the function of a point ended in the buggy run, if an experiment changes that: <return> or <exit>.
func (c candidate) ends() string {
	p := c.points[0]
	if p.events[0].kind != "return" || !slices.ContainsFunc(c.names, isPseudo) {
		return ""
	}
	if _, raised := p.events[0].changes["<exit>"]; raised {
		return "<exit>"
	}
	return "<return>"
}

// candidates returns the first point from the first difference on with variables that can be set, and the
// points of the chain that have some, each place once. more is true if it leaves out some of them.
func (c *comparison) candidates(t schemas.PairedTrace) (out []candidate, more bool) {
	inChain, index := map[int]bool{}, map[lineKey]int{}
	for _, link := range t.Chain {
		inChain[link.Event] = true
	}
	for _, p := range c.alignment.points {
		names := p.settable()
		if t.D0 == nil || p.events[0].n < t.D0.Event || len(names) == 0 {
			continue
		}
		key := keyOf(p.events[0])
		i, known := index[key]
		switch {
		case known:
			missing := slices.ContainsFunc(out[i].names, func(name string) bool { return !slices.Contains(names, name) })
			if !missing && len(out[i].points) < maxRepeats {
				out[i].points = append(out[i].points, p)
			}
		case len(out) > 0 && !inChain[p.events[0].n]:
		case len(out) == maxCauses:
			more = true
		default:
			index[key] = len(out)
			out = append(out, candidate{[]point{p}, names})
		}
	}
	return out, more
}

// testCauses finds out whether values of the fixed run make the test pass in the buggy run.
func (c *comparison) testCauses(ctx context.Context, t *schemas.PairedTrace) error {
	list, more := c.candidates(*t)
	if more {
		t.Limits = append(t.Limits, schemas.LimitCauses)
		slices.Sort(t.Limits)
	}
	if t.D0 != nil && len(list) == 0 {
		t.Causes = []schemas.TraceCause{{Event: t.D0.Event, File: t.D0.File, Function: t.D0.Function, Line: t.D0.Line,
			Method: schemas.CauseUnknown, Verdict: schemas.CauseUnknown}}
		t.Shares.Unknown++
	}
	if len(list) == 0 {
		return nil
	}
	var points []any
	for _, candidate := range list {
		for _, p := range candidate.points {
			y := p.events[1]
			points = append(points, map[string]any{"id": p.events[0].n, "event": y.n, "file": y.file, "line": y.line, "names": candidate.names, "statement": p.after[1].line})
		}
	}
	output, err := c.experiment(ctx, 1, map[string]any{"mode": "capture", "points": points})
	if err != nil {
		return err
	}
	t.TestRuns++
	values := readCaptured(output)
	var all []experiment
	for id, candidate := range list {
		all = append(all, c.experiments(2*id, candidate, values)...)
	}
	found := map[int]outcome{}
	for len(all) > 0 { // an experiment that leaves files behind is the last one of its run
		if output, err = c.experiment(ctx, 0, map[string]any{"mode": "substitute", "experiments": all}); err != nil {
			return err
		}
		t.TestRuns++
		before := len(all)
		readOutcomes(output, found)
		all = slices.DeleteFunc(all, func(e experiment) bool { _, done := found[e.ID]; return done })
		if len(all) == before {
			all = all[1:] // it did not end
		}
	}
	for id, candidate := range list {
		t.Causes = append(t.Causes, candidate.verdict(values, found[2*id], found[2*id+1]))
		switch t.Causes[id].Method {
		case schemas.CauseValue:
			t.Shares.Value++
		case schemas.CauseExpression:
			t.Shares.Expression++
		default:
			t.Shares.Unknown++
		}
	}
	return nil
}

// experiment runs the test in one version with a probe.
func (c *comparison) experiment(ctx context.Context, version int, config map[string]any) (output []byte, err error) {
	variant := verify.Variant{Only: []string{c.test}, Probe: newProbe(experimentSource, config), Timeout: experimentTimeout}
	run, err := runProbe(ctx, c.runner, c.task, c.tree, c.patches[version], variant)
	return run.Probe, err
}

// readCaptured returns the captured values by the event of the buggy run and by name.
func readCaptured(output []byte) map[int]map[string]captured {
	out := map[int]map[string]captured{}
	readRecords(output, func(r record) {
		var id int
		var name string
		var v captured
		if r.kind == "value" && r.decode(&id, &name, &v.data, &v.text, &v.expression) {
			if out[id] == nil {
				out[id] = map[string]captured{}
			}
			out[id][name] = v
		}
	})
	return out
}

// verdict returns the result of the experiments with a candidate: with one execution of its place, and with all.
func (c candidate) verdict(values map[int]map[string]captured, one, all outcome) schemas.TraceCause {
	x := c.points[0].events[0]
	cause := schemas.TraceCause{Event: x.n, File: x.file, Function: x.function, Line: x.line, Vars: c.names, Method: schemas.CauseUnknown, Verdict: schemas.CauseUnknown}
	names, expressions := c.available(values[x.n])
	if len(names) > 0 {
		cause.Vars = names
	}
	if !one.set && !all.set {
		return cause
	}
	cause.Method, cause.Hits = schemas.CauseValue, 1
	if len(expressions) > 0 {
		cause.Method = schemas.CauseExpression
	}
	switch {
	case one.set && one.status == schemas.StatusPassed:
		cause.Verdict = schemas.CauseSufficient
	case all.set && all.status == schemas.StatusPassed:
		cause.Verdict, cause.Hits = schemas.CauseSufficient, len(c.points)
	case one.status != "" && len(names) == len(c.names):
		cause.Verdict = schemas.CauseInsufficient
	}
	return cause
}
