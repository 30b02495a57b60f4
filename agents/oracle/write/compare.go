package write

import (
	"slices"
	"strings"
)

// comparison is an experiment with a statement and its change, at the same stop.
type comparison struct {
	change         change // with the expression that was evaluated
	outcome, value Value
	known          bool // what the statement computes
	tried          bool // the debugger has evaluated the change
	stop           int  // index of the stop
}

func (x comparison) differs() bool {
	return x.known && x.tried && x.value.Text != x.outcome.Text && !(isObject(x.value.Text) && isObject(x.outcome.Text))
}

// isObject reports whether a printed value is an object of which the text shows only the address.
func isObject(text string) bool { return strings.Contains(text, " at 0x") }

// Attributes is the expression that prints the attributes of an object.
func Attributes(expression string) string { return "vars(" + expression + ")" }

// opened returns what the debugger has printed of the attributes of a value, at the stop with an index or the next one in the same
// call, if the value is an object. Otherwise, it returns the value.
func (n *Notes) opened(v Value, i int) Value {
	if !isObject(v.Text) || v.Expression == "" {
		return v
	}
	a, ok := n.Stops[i].Value(Attributes(v.Expression))
	if !ok && i+1 < len(n.Stops) && n.follows(i) {
		a, ok = n.Stops[i+1].Value(Attributes(v.Expression))
	}
	if !ok || a.IsError {
		return v
	}
	return a
}

// opens returns a change with expressions that print the attributes, if the outcome of the statement has been opened.
func (c change) opens(outcome Value) change {
	if strings.HasPrefix(outcome.Expression, "vars(") && outcome.Expression != c.original {
		c.original, c.expression = outcome.Expression, Attributes(c.expression)
	}
	return c
}

// compare returns the last experiment with a change in which the values differ, unless the statement has computed another value since
// then. Without such an experiment, it returns what the agent knows of the last stop before the statement.
func (n *Notes) compare(st Placed, c change) comparison {
	last, later := comparison{}, Value{}
	for i, stop := range slices.Backward(n.Stops) {
		if stop.Place != st.Place || stop.Event != "line" {
			continue
		}
		x := comparison{stop: i}
		x.outcome, x.known = n.outcomeAt(st, i)
		x.outcome = n.opened(x.outcome, i)
		x.change = c.opens(x.outcome)
		x.value, x.tried = stop.Value(x.change.expression)
		if !x.tried && i+1 < len(n.Stops) && n.follows(i) && !st.sets(x.change.expression) {
			x.value, x.tried = n.Stops[i+1].Value(x.change.expression)
		}
		x.tried = x.tried && !x.value.IsError
		if x.differs() && (later.Text == "" || later.Text == x.outcome.Text) {
			return x
		}
		if later.Text == "" && x.known {
			later = x.outcome
		}
		if !last.known && !last.tried {
			last = x
		}
	}
	return last
}

// times returns at how many stops the debugger has evaluated a change.
func (n *Notes) times(c change) int {
	times := 0
	for _, stop := range n.Stops {
		if _, ok := stop.Value(c.expression); ok {
			times++
		}
	}
	return times
}

// ProvedAt returns the index of the stop at which an experiment has shown that a statement at a place has another value than the
// one there, or -1.
func (n *Notes) ProvedAt(p Place, statement string) int {
	for _, at := range n.stoppedAt() {
		for _, c := range n.changes(at.function, at.statement) {
			if c.at != p || strings.TrimSpace(c.line) != statement {
				continue
			}
			if x := n.compare(at.statement, c); x.differs() {
				return x.stop
			}
		}
	}
	return -1
}
