package trace

import (
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// maxLinks is the maximum length of a chain.
const maxLinks = 64

// chain returns how the first difference reaches the failure: the calls and returns between them, in the
// order of the buggy run, at which an argument, an attribute of self, a global, the return value or the way in
// which the function ends differs, and the places at which the control flow of a function begins to differ.
// total is the length without the limit.
func (c *comparison) chain(d0, failure *schemas.TracePoint, hits map[int]int) (links []schemas.TracePoint, total int) {
	if d0 == nil {
		return nil, 0
	}
	links = append(links, *d0)
	for _, p := range c.alignment.points {
		e := p.events[0]
		if e.n <= d0.Event || failure != nil && e.n > failure.Event || e.kind != "call" && e.kind != "return" {
			continue
		}
		link := p.tracePoint(hits)
		f := c.sides[0].functions[e.place()]
		link.Vars = slices.DeleteFunc(traceValues(p.vars), func(v schemas.TraceValue) bool {
			return !isPseudo(v.Name) && !isAttribute(v.Name) && !f.arguments[v.Name] && !f.globals[v.Name]
		})
		if len(link.Vars) > 0 {
			links = append(links, link)
		}
	}
	for _, f := range c.alignment.flows {
		e := f.event
		if e.n <= d0.Event || failure != nil && e.n >= failure.Event {
			continue
		}
		link := schemas.TracePoint{Kind: FlowDivergence, File: e.file, Function: e.function, Line: e.line, Hit: hits[e.n], Event: e.n, Depth: e.depth,
			FixedEvent: -1, Vars: traceValues(f.vars)}
		if f.other != nil {
			link.FixedLine, link.FixedEvent = f.other.line, f.other.n
		}
		links = append(links, link)
	}
	slices.SortStableFunc(links, func(x, y schemas.TracePoint) int { return x.Event - y.Event })
	if failure != nil && failure.Event >= d0.Event {
		links = append(links, *failure)
	}
	return shorten(links), len(links)
}

// isAttribute reports whether a name is that of an attribute such as self.x.
func isAttribute(name string) bool { return strings.Contains(name, ".") }

// shorten limits a chain. It keeps the ends, the first and the last link of each function, and then the earliest ones.
func shorten(links []schemas.TracePoint) []schemas.TracePoint {
	if len(links) <= maxLinks {
		return links
	}
	type function struct{ file, name string }
	first, last := map[function]int{}, map[function]int{}
	for i, l := range links {
		f := function{l.File, l.Function}
		if _, seen := first[f]; !seen {
			first[f] = i
		}
		last[f] = i
	}
	keep := map[int]bool{0: true, len(links) - 1: true}
	for _, important := range []bool{true, false} {
		for i, l := range links {
			f := function{l.File, l.Function}
			if len(keep) < maxLinks && (!important || first[f] == i || last[f] == i) {
				keep[i] = true
			}
		}
	}
	var out []schemas.TracePoint
	for i, l := range links {
		if keep[i] {
			out = append(out, l)
		}
	}
	return out
}
