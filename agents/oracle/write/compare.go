package write

import (
	"slices"
	"strings"
)

// comparison is an experiment with a statement and its change, at the same stop.
type comparison struct {
	outcome, value Value
	known          bool // what the statement computes
	tried          bool // the debugger has evaluated the change
	stop           int  // index of the stop
}

func (x comparison) differs() bool { return x.known && x.tried && x.value.Text != x.outcome.Text }

// compare returns the last experiment with a change in which the values differ or, if there is none, what is known of the last stop
// before the statement.
func (n *Notes) compare(st Placed, c change) comparison {
	last := comparison{}
	for i, stop := range slices.Backward(n.Stops) {
		if stop.Place != st.Place || stop.Event != "line" {
			continue
		}
		x := comparison{stop: i}
		x.outcome, x.known = n.outcomeAt(st, i)
		x.value, x.tried = stop.Value(c.expression)
		if !x.tried && i+1 < len(n.Stops) && n.follows(i) {
			x.value, x.tried = n.Stops[i+1].Value(c.expression)
		}
		x.tried = x.tried && !x.value.IsError
		if x.differs() {
			return x
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
