package trace

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// Limits of a paired trace.
const (
	maxPoints    = 4096
	maxPerLine   = 64 // points of one line, or of calls or returns of one function
	maxVars      = 40 // variables of a point
	oldestPython = 8  // the minor version
)

// UnsupportedError is returned by Trace if the interpreter of the tests is too old.
type UnsupportedError struct{ Python string }

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("paired traces need Python 3.%d or later, and the tests run on Python %s: choose a newer interpreter for the task", oldestPython, e.Python)
}

// checkPython returns an UnsupportedError if a version is too old.
func checkPython(version string) error {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) > 1 && parts[0] == "3" {
		if minor, err := strconv.Atoi(parts[1]); err == nil && minor < oldestPython {
			return &UnsupportedError{version}
		}
	}
	return nil
}

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
	if p.FirstDivergence != nil {
		d := c.describeDivergence(p.FirstDivergence, hits)
		out.D0 = &d
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

// countHits returns how often the line of each line event has run, by the number of the event.
func (s *steps) countHits() map[int]int {
	count, out := map[Place]int{}, map[int]int{}
	for _, e := range s.events {
		if e.kind == "line" {
			p := Place{File: e.file, Line: e.line}
			count[p]++
			out[e.n] = s.hits[p] + count[p]
		}
	}
	return out
}

// tracePoint returns a pair of events in its exported form.
func (p point) tracePoint(hits map[int]int) schemas.TracePoint {
	x, y := p.events[0], p.events[1]
	return schemas.TracePoint{Kind: x.kind, File: x.file, Function: x.function, Line: x.line, Hit: hits[x.n], Event: x.n, Depth: x.depth,
		FixedLine: y.line, FixedEvent: y.n, Vars: traceValues(p.vars)}
}

func traceValues(vars []Difference) []schemas.TraceValue {
	var out []schemas.TraceValue
	for _, v := range vars[:min(len(vars), maxVars)] {
		out = append(out, schemas.TraceValue(v))
	}
	return out
}

// lineKey identifies a line of a function, or its calls or returns.
type lineKey struct {
	kind string
	Place
}

func keyOf(e event) lineKey {
	k := lineKey{e.kind, Place{e.file, e.function, e.line}}
	if e.kind != "line" {
		k.Line = 0
	}
	return k
}

// describe returns the points of an alignment up to the limits, and the lines for which they are complete.
func (a *alignment) describe(hits map[int]int) (points []schemas.TracePoint, stops []schemas.TracedLines) {
	count, complete := map[lineKey]int{}, map[lineKey]int{} // complete: the last hit before the first point that is left out
	for _, p := range a.points {
		k := keyOf(p.events[0])
		if count[k]++; count[k] <= maxPerLine && len(points) < maxPoints {
			points = append(points, p.tracePoint(hits))
		} else if _, known := complete[k]; !known {
			complete[k] = hits[p.events[0].n] - 1
		}
	}
	index, ended := map[lineKey]int{}, map[lineKey]bool{}
	for _, e := range a.sides[0].events {
		k := keyOf(e)
		if e.kind != "line" || ended[k] {
			continue
		}
		i, known := index[k]
		reached, compared := a.stops[e.n]
		last, limited := complete[k]
		hit := hits[e.n]
		if !compared || limited && hit > last {
			ended[k] = known
			continue
		}
		if !known {
			i = len(stops)
			index[k] = i
			stops = append(stops, schemas.TracedLines{File: e.file, Function: e.function, Line: e.line, Hits: [2]int{hit, hit}})
		}
		s := &stops[i]
		s.Hits[1] = hit
		if n := len(s.Missing); !reached && n > 0 && s.Missing[n-1][1] == hit-1 {
			s.Missing[n-1][1] = hit
		} else if !reached {
			s.Missing = append(s.Missing, [2]int{hit, hit})
		}
	}
	slices.SortFunc(stops, func(x, y schemas.TracedLines) int {
		return cmp.Or(cmp.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line), cmp.Compare(x.Function, y.Function))
	})
	return points, stops
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
