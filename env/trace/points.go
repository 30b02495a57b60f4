package trace

import (
	"cmp"
	"slices"

	"github.com/tracesmith/tracesmith/schemas"
)

// Limits of a paired trace.
const (
	maxPoints  = 4096
	maxPerLine = 64 // points of one line, or of calls or returns of one function
	maxVars    = 40 // variables of a point
)

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
