package trace

import (
	"cmp"
	"slices"

	"github.com/tracesmith/tracesmith/schemas"
)

// maxMatches limits the ranges of hits in a paired trace.
const maxMatches = 20_000

// matches returns which places of the buggy run correspond to which ones of the fixed run.
func (c *comparison) matches() []schemas.TraceMatch {
	b, f := c.sides[0].ordinals(), c.sides[1].ordinals()
	type key struct {
		kind, file  string
		line, fixed int
	}
	index, ranges := map[key]int{}, 0
	var out []schemas.TraceMatch
	for _, e := range c.sides[0].events {
		other, matched := c.alignment.matches[e.n]
		hit, fixed := b[e.n], f[other.n]
		if !matched || hit == 0 || fixed == 0 {
			continue
		}
		k := key{e.kind, e.file, e.line, other.line}
		i, known := index[k]
		if !known {
			i = len(out)
			index[k] = i
			out = append(out, schemas.TraceMatch{Kind: k.kind, File: k.file, Line: k.line, FixedLine: k.fixed})
		}
		m := &out[i]
		if n := len(m.Hits); n > 0 && m.Hits[n-1][1] == hit-1 && m.Hits[n-1][2]+hit-m.Hits[n-1][0] == fixed {
			m.Hits[n-1][1] = hit
			continue
		}
		if ranges++; ranges > maxMatches {
			break
		}
		m.Hits = append(m.Hits, [3]int{hit, hit, fixed})
	}
	out = slices.DeleteFunc(out, func(m schemas.TraceMatch) bool { return len(m.Hits) == 0 })
	slices.SortFunc(out, func(x, y schemas.TraceMatch) int {
		return cmp.Or(cmp.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.FixedLine, y.FixedLine))
	})
	return out
}

// ordinals returns the hits of lines, as countHits does, and those of calls and returns at a line. The latter are
// unknown if the window does not begin with the run.
func (s *steps) ordinals() map[int]int {
	out := s.countHits()
	count := map[lineKey]int{}
	for _, e := range s.events {
		if (e.kind == "call" || e.kind == "return") && s.events[0].n == 0 {
			k := lineKey{e.kind, Place{File: e.file, Line: e.line}}
			count[k]++
			out[e.n] = count[k]
		}
	}
	return out
}
