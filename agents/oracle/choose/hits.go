package choose

import (
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/agents/oracle/write"
)

// This file decides which run of a line matters.

// isEarly reports whether the stop comes before the one that the chooser wants: its hit is lower, the right change makes no
// difference there, or the call has other arguments than the first one with a difference.
func (c *Chooser) isEarly(n *write.Notes, stop write.Stop) bool {
	if c.isCaller(n, stop) || visits(n, stop.Place) > maxVisits || isLooping(n) || c.provedAt(n) == len(n.Stops)-1 {
		return false
	}
	wanted := c.wantedHit(n, stop.Place, stop.Function)
	if n.InVain(stop, c.fix.replaced[stop.Place]) && stop.Condition == "" && stop.Hit < c.runs(stop.Place) {
		return true
	}
	if strings.Contains(stop.Condition, ") != ") {
		return false
	}
	if d := c.trace.D0; d != nil && bare(d.Function) == stop.Function && c.runs(stop.Place) != 1 && slices.ContainsFunc(stop.Values, c.isOther) {
		return true
	}
	return stop.Condition == "" && stop.Hit > 0 && stop.Hit < wanted
}

// visits returns how often the program has stopped before a line.
func visits(n *write.Notes, p write.Place) int {
	count := 0
	for _, s := range n.Stops {
		if s.Place == p && s.Event == "line" {
			count++
		}
	}
	return count
}

// isLooping reports whether the program stops at a line again after the chooser has taken what it had there.
func isLooping(n *write.Notes) bool {
	return slices.ContainsFunc(n.Stops, func(s write.Stop) bool { return visits(n, s.Place) > maxVisits+1 })
}

// deeper returns how many of the last stops are at the same line as the one before, in a deeper call: those of a recursion.
func deeper(n *write.Notes) int {
	last := len(n.Stops) - 1
	first := last
	for first > 0 && n.Stops[first-1].Place == n.Stops[first].Place && n.Stops[first-1].Depth < n.Stops[first].Depth {
		first--
	}
	return last - first
}

// isFar reports whether the wanted hit comes so late that the breakpoint needs a condition on the change.
func (c *Chooser) isFar(n *write.Notes, stop write.Stop) bool {
	isLate := stop.Hit > 0 && c.wantedHit(n, stop.Place, stop.Function) > stop.Hit+2 || slices.ContainsFunc(stop.Values, c.isOther)
	return c.early && c.isAtFix(n, stop) && stop.Condition == "" && isLate
}

// isOther reports whether a value is not that of an argument in the call with the first difference.
func (c *Chooser) isOther(v write.Value) bool {
	value, known := c.trace.Arguments[v.Expression]
	return known && isLiteral(value) && isLiteral(v.Text) && unquoted(value) != unquoted(v.Text)
}

// isLiteral reports whether a value is a string or a number.
func isLiteral(value string) bool {
	return value != "" && (strings.ContainsAny(value[:1], `'"`) || strings.Trim(value, "-.0123456789") == "")
}

// unquoted returns a literal without its quotes.
func unquoted(literal string) string {
	if len(literal) > 1 && (literal[0] == '"' || literal[0] == '\'') && literal[len(literal)-1] == literal[0] {
		return literal[1 : len(literal)-1]
	}
	return literal
}

// wantedHit returns the hit of a line, from 1, at which its effect or a variable first differs.
func (c *Chooser) wantedHit(n *write.Notes, p write.Place, function string) int {
	for _, link := range c.trace.Chain {
		if link.Kind == "flow" && link.File == p.File && link.Line == p.Line && link.Hit > 0 {
			return link.Hit
		}
	}
	if d := c.trace.D0; d != nil && c.fix.within(p, n.Span(p)) {
		hit := d.Hit
		if p.Line > d.Line { // the head of a loop runs once more than its body
			hit--
		}
		first, last := c.hits(p)
		switch {
		case d.File != p.File || bare(d.Function) != function:
			return 1
		case p.Line == d.Line || first <= hit && hit <= last:
			return max(1, hit)
		}
		return max(1, first)
	}
	for _, a := range c.aims {
		if a.place == p && a.function == function {
			return a.hit
		}
	}
	return 1
}

// isFirstRun reports whether the first run of a line of the fix in a function is the one that the chooser wants.
func (c *Chooser) isFirstRun(n *write.Notes, function string) bool {
	for p := range c.fix.lines {
		if c.isRun(p) && c.wantedHit(n, p, function) == 1 {
			return true
		}
	}
	return false
}

// hits returns the first and the last run of a line that were compared with the fixed version, or 0.
func (c *Chooser) hits(p write.Place) (first, last int) {
	for _, s := range c.trace.Stops {
		if s.File == p.File && s.Line == p.Line {
			return s.Hits[0], s.Hits[1]
		}
	}
	return 0, 0
}

// runs returns how often the failing test runs a line, as far as that is known.
func (c *Chooser) runs(p write.Place) int {
	_, last := c.hits(p)
	return last
}
