package trace

import (
	"cmp"
	"slices"

	"github.com/tracesmith/tracesmith/schemas"
)

// maxRanges limits the ranges in the Hits of all matches.
const maxRanges = 20_000

// matches returns which lines, calls and returns of the buggy run correspond to which ones of the fixed run, and
// which of their executions (hits) do.
func (c *comparison) matches() []schemas.TraceMatch {
	buggyHits, fixedHits := c.sides[0].hitsOfEvents(), c.sides[1].hitsOfEvents()
	type key struct {
		kind, file      string
		line, fixedLine int
	}
	index, ranges := map[key]int{}, 0
	var out []schemas.TraceMatch
	for _, e := range c.sides[0].events {
		other, matched := c.alignment.matches[e.n]
		hit, fixedHit := buggyHits[e.n], fixedHits[other.n]
		if !matched || hit == 0 || fixedHit == 0 {
			continue
		}
		k := key{e.kind, e.file, e.line, other.line}
		i, known := index[k]
		if !known {
			i = len(out)
			index[k] = i
			out = append(out, schemas.TraceMatch{Kind: k.kind, File: k.file, Line: k.line, FixedLine: k.fixedLine})
		}
		m := &out[i]
		if n := len(m.Hits); n > 0 && m.Hits[n-1][1] == hit-1 && m.Hits[n-1][2]+hit-m.Hits[n-1][0] == fixedHit {
			m.Hits[n-1][1] = hit
			continue
		}
		if ranges++; ranges > maxRanges {
			break
		}
		m.Hits = append(m.Hits, [3]int{hit, hit, fixedHit})
	}
	out = slices.DeleteFunc(out, func(m schemas.TraceMatch) bool { return len(m.Hits) == 0 })
	slices.SortFunc(out, func(x, y schemas.TraceMatch) int {
		return cmp.Or(cmp.Compare(x.File, y.File), cmp.Compare(x.Line, y.Line), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.FixedLine, y.FixedLine))
	})
	return out
}

// hitsOfEvents returns, by the number of an event, how often its line has run or its call or return has happened so
// far. Calls and returns are left out if the recorded events do not begin at the start of the run.
func (s *steps) hitsOfEvents() map[int]int {
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
