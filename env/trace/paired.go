package trace

import (
	"context"
	"slices"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// Trace runs one failing test in the buggy and in the fixed version of a tree and relates the two runs.
// Each version is given as a patch of tree, nil for tree itself. In each version, the test runs twice:
// first in a child process that the probe forks, and then in the process itself. Variables that differ
// between these runs are ignored. If the first run leaves files behind, or the two runs differ in
// control flow, the test runs again in another sandbox. The error is an UnsupportedError before
// Python 3.8, and ErrNoTrace if the test did not run.
func Trace(ctx context.Context, r Runner, t schemas.Task, tree env.Tree, buggy, fixed []byte, test string) (schemas.PairedTrace, error) {
	c := comparison{runner: r, task: t, tree: tree, patches: [2][]byte{buggy, fixed}, test: test, rehearse: true}
	if err := c.run(ctx); err != nil {
		return schemas.PairedTrace{Test: test}, err
	}
	out := c.pairedTrace()
	err := c.testCauses(ctx, &out)
	return out, err
}

// pairedTrace returns the result of the comparison, without experiments.
func (c *comparison) pairedTrace() schemas.PairedTrace {
	p, b, f := c.pair(), c.sides[0], c.sides[1]
	out := schemas.PairedTrace{
		Test: c.test, Python: b.python, Length: p.Length, FixedLength: p.FixedLength, Masked: p.Masked, Unstable: p.Unstable, Runs: c.sandboxes,
	}
	hits := b.countHits()
	out.Points, out.Stops = c.alignment.describe(hits)
	out.Matches, out.Executed = c.matches(), p.Executed
	if p.FirstDivergence != nil {
		d := c.describeDivergence(p.FirstDivergence, hits)
		out.D0, out.Path, out.Arguments = &d, b.stackAt(p.FirstDivergence.Event), b.argumentsAt(p.FirstDivergence.Event)
	}
	if p.Failure != nil && len(p.Failure.Places) > 0 {
		out.Failure = c.describeFailure(*p.Failure, hits)
	}
	out.Unstable = out.Unstable || c.stable[0] < b.count || c.stable[1] < f.count
	var total int
	out.Chain, total = c.chain(out.D0, out.Failure, hits)
	for limit, reached := range map[string]bool{
		schemas.LimitEvents:  b.cut || f.cut,
		schemas.LimitWindow:  c.first > 0 || b.end() < b.count || f.end() < f.count,
		schemas.LimitDepth:   min(b.depth, f.depth) < 1<<30,
		schemas.LimitZoom:    p.FirstDivergence == nil && p.Cut || p.FirstDivergence != nil && p.FirstDivergence.Event >= b.end(),
		schemas.LimitPoints:  len(out.Points) < len(c.alignment.points),
		schemas.LimitChain:   len(out.Chain) < total,
		schemas.LimitThreads: b.threads || f.threads,
	} {
		if reached {
			out.Limits = append(out.Limits, limit)
		}
	}
	slices.Sort(out.Limits)
	return out
}

// stackAt returns the functions of the workspace on the stack at an event, the outermost first, as far as their
// events were recorded.
func (s *steps) stackAt(event int) []string {
	var stack []string
	for _, e := range s.events {
		if e.n > event {
			break
		}
		for len(stack) < e.depth {
			stack = append(stack, "")
		}
		if stack = stack[:e.depth]; e.depth > 0 {
			stack[e.depth-1] = e.place()
		}
	}
	return slices.DeleteFunc(stack, func(function string) bool { return function == "" })
}

// argumentsAt returns the arguments of the call in which an event happens, if that call was recorded.
func (s *steps) argumentsAt(number int) map[string]string {
	at := slices.IndexFunc(s.events, func(e event) bool { return e.n == number })
	if at < 0 {
		return nil
	}
	in := s.events[at]
	call := slices.IndexFunc(s.events[:at+1], func(e event) bool { return e.serial == in.serial && e.kind == "call" })
	if call < 0 {
		return nil
	}
	var out map[string]string
	for name, value := range s.events[call].changes {
		if value != nil && s.functions[in.place()].arguments[name] {
			if out == nil {
				out = map[string]string{}
			}
			out[name] = *value
		}
	}
	return out
}

func (c *comparison) describeDivergence(d *Divergence, hits map[int]int) schemas.TracePoint {
	out := schemas.TracePoint{Kind: d.Kind, File: d.File, Function: d.Function, Line: d.Line, Hit: hits[d.Event], Event: d.Event, Depth: d.Depth,
		FixedEvent: -1, Vars: traceValues(d.Vars)}
	_, fixed := c.alignment.firstDivergence()
	switch {
	case d.Other != nil:
		out.FixedLine, out.FixedEvent = d.Other.Line, fixed
	case d.Kind == ValueDivergence:
		out.FixedLine, out.FixedEvent = c.alignment.points[0].events[1].line, fixed
	}
	return out
}

// describeFailure returns the innermost line of the program at which the exception of the test was raised, with
// the variables that differ before it runs.
func (c *comparison) describeFailure(f Failure, hits map[int]int) *schemas.TracePoint {
	at := f.Places[0]
	out := &schemas.TracePoint{Kind: "failure", File: at.File, Function: at.Function, Line: at.Line, Event: f.Event, FixedEvent: -1}
	for _, e := range c.sides[0].events {
		if e.n <= f.Event && e.file == at.File && e.function == at.Function && e.line == at.Line {
			out.Depth = e.depth
			if e.kind == "line" {
				out.Hit = hits[e.n]
			}
		}
	}
	for _, p := range c.alignment.points {
		e := p.events[0]
		if e.kind == "line" && e.n <= f.Event && e.n > out.FixedEvent && hits[e.n] == out.Hit && (Place{e.file, e.function, e.line}) == at {
			out.FixedLine, out.FixedEvent, out.Vars = p.events[1].line, p.events[1].n, traceValues(p.vars)
		}
	}
	return out
}
