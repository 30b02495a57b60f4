package trace

import (
	"context"
	"slices"
	"time"

	"github.com/tracesmith/tracesmith/env/verify"
	"github.com/tracesmith/tracesmith/schemas"
)

const (
	// maxCauses is the maximum number of experiments with one test.
	maxCauses = 4
	// experimentTimeout limits an experiment, because a program with a changed value may not end.
	experimentTimeout = time.Minute
)

// candidate is a point whose values are put into the buggy run.
type candidate struct {
	point
	names []string
}

// settable returns the variables of a point that can get the values of the fixed run.
func (p point) settable() []string {
	var out []string
	for _, v := range p.vars {
		atReturn := p.events[0].kind == "return" || p.events[0].kind == "exception"
		if !isPseudo(v.Name) && v.Fixed != "" && (!atReturn || isAttribute(v.Name)) {
			out = append(out, v.Name)
		}
	}
	return out
}

// candidates returns the first point from the first difference on with variables that can be set, and the
// points of the chain that have some. more is true if it leaves out some of them.
func (c *comparison) candidates(t schemas.PairedTrace) (out []candidate, more bool) {
	inChain := map[int]bool{}
	for _, link := range t.Chain {
		inChain[link.Event] = true
	}
	for _, p := range c.alignment.points {
		if t.D0 == nil || p.events[0].n < t.D0.Event || len(out) > 0 && !inChain[p.events[0].n] {
			continue
		}
		names := p.settable()
		if len(names) == 0 {
			continue
		}
		if len(out) == maxCauses {
			return out, true
		}
		out = append(out, candidate{p, names})
	}
	return out, false
}

// captured is a value of the fixed run.
type captured struct {
	data       *string // a pickled copy in base64; nil = it cannot be copied
	text       string
	expression *string // the expression that the last statement assigned; nil = there is none
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
	for id, p := range list {
		y := p.events[1]
		points = append(points, map[string]any{"id": id, "event": y.n, "file": y.file, "line": y.line, "names": p.names, "statement": p.after[1].line})
	}
	output, _, err := c.experiment(ctx, 1, "capture", points)
	if err != nil {
		return err
	}
	t.TestRuns++
	values := readCaptured(output)
	for id, p := range list {
		cause, err := c.testCause(ctx, p, values[id], &t.TestRuns)
		if err != nil {
			return err
		}
		t.Causes = append(t.Causes, cause)
		switch cause.Method {
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

// experiment runs the test in one version with a probe of the given mode.
func (c *comparison) experiment(ctx context.Context, version int, mode string, points []any) (output []byte, status string, err error) {
	probe := newProbe(experimentSource, map[string]any{"mode": mode, "points": points})
	variant := verify.Variant{Only: []string{c.test}, Probe: probe, Timeout: experimentTimeout}
	run, err := runProbe(ctx, c.runner, c.task, c.tree, c.patches[version], variant)
	return run.Probe, run.Tests[c.test], err
}

// readCaptured returns the captured values by candidate and name.
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

// testCause sets the variables of one candidate.
func (c *comparison) testCause(ctx context.Context, p candidate, values map[string]captured, runs *int) (schemas.TraceCause, error) {
	x := p.events[0]
	cause := schemas.TraceCause{Event: x.n, File: x.file, Function: x.function, Line: x.line, Method: schemas.CauseUnknown, Verdict: schemas.CauseUnknown}
	copies, expressions := map[string][2]string{}, map[string]string{}
	for _, name := range p.names {
		switch v := values[name]; {
		case v.data != nil:
			copies[name] = [2]string{*v.data, v.text}
		case v.expression != nil:
			expressions[name] = *v.expression
		default:
			continue
		}
		cause.Vars = append(cause.Vars, name)
	}
	if len(cause.Vars) == 0 {
		cause.Vars = p.names
		return cause, nil
	}
	var points []any
	if before := p.after[0]; len(expressions) > 0 && before.line > 0 {
		points = append(points, map[string]any{"id": 0, "event": before.n, "file": before.file, "line": before.line, "expressions": expressions, "later": true})
	}
	points = append(points, map[string]any{"id": 0, "event": x.n, "file": x.file, "line": x.line, "values": copies, "expressions": expressions})
	*runs++
	output, status, err := c.experiment(ctx, 0, "substitute", points)
	if err != nil {
		return cause, err
	}
	wasSet := false
	readRecords(output, func(r record) { wasSet = wasSet || r.kind == "set" })
	if !wasSet {
		return cause, nil
	}
	cause.Method = schemas.CauseValue
	if len(expressions) > 0 {
		cause.Method = schemas.CauseExpression
	}
	switch {
	case status == schemas.StatusPassed:
		cause.Verdict = schemas.CauseSufficient
	case status != "" && len(cause.Vars) == len(p.names):
		cause.Verdict = schemas.CauseInsufficient
	}
	return cause, nil
}
