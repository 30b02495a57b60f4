package write

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// exchange is a possible repair: two statements on adjacent lines change places.
type exchange struct {
	first, second Placed
}

// exchanges returns the pairs of statements of a function that could change places.
func (n *Notes) exchanges(f Function) []exchange {
	var out []exchange
	all := n.statements(f)
	for i := 1; i < len(all); i++ {
		a, b := all[i-1], all[i]
		isNext := a.last == a.Line && b.last == b.Line && b.Line == a.Line+1
		if isNext && n.indent(a.Place) == n.indent(b.Place) && isSimple(a) && isSimple(b) {
			out = append(out, exchange{a, b})
		}
	}
	return out
}

func (n *Notes) indent(p Place) int { return indentOf(n.lines[p.File][p.Line]) }

// isSimple reports whether a statement neither has a block nor ends one.
func isSimple(st Placed) bool {
	return st.kind == assignStatement || st.kind == updateStatement || st.kind == otherStatement && !st.tokens[0].is("with", "raise", "break", "continue", "pass")
}

// repeatOptions returns the experiment with an exchange: the value of the first statement once more, after the second
// statement has run.
func (n *Notes) repeatOptions(f Function, stop Stop) []Option {
	var out []Option
	for _, x := range n.exchanges(f) {
		expression := oneLine(x.first.evaluated())
		_, known := n.outcome(x.first)
		_, repeated := stop.Value(expression)
		if !known || repeated || expression == "" || len(expression) > 120 || !n.hasRun(x) || n.hasEffect(f, expression) || strings.Contains(expression, "`") {
			continue
		}
		m := say(fmt.Sprintf(n.words("And after line %d? I evaluate `%s` of line %d again.", "Now that line %d has run, what is `%s` of line %d?"), x.second.Line, expression, x.first.Line))
		out = append(out, Option{Kind: Repeat, Function: f, Place: x.first.Place, Expression: expression, say: n.afterLearned(m), call: pdb("p " + expression)})
	}
	return out
}

// hasRun reports whether the program is paused in the call in which both statements have just run.
func (n *Notes) hasRun(x exchange) bool {
	last := len(n.Stops) - 1
	return last >= 2 && n.Stops[last-2].Place == x.first.Place && n.Stops[last-1].Place == x.second.Place && n.follows(last-2) && n.follows(last-1)
}

// exchangeOptions returns the edits that an experiment with an exchange supports.
func (n *Notes) exchangeOptions() []Option {
	if !slices.Contains(n.tools, "edit") {
		return nil
	}
	var out []Option
	for i, stop := range n.Stops {
		f, ok := n.FunctionAt(stop.Place)
		if !ok || i < 2 || !n.follows(i-2) || !n.follows(i-1) {
			continue
		}
		for _, x := range n.exchanges(f) {
			before, known := n.outcome(x.first)
			after, repeated := stop.Value(oneLine(x.first.evaluated()))
			if !known || !repeated || n.Stops[i-2].Place != x.first.Place || n.Stops[i-1].Place != x.second.Place || before.Text == after.Text || after.IsError {
				continue
			}
			out = append(out, Option{Kind: Exchange, Function: f, Place: x.first.Place, Last: x.second.Line, say: n.afterLearned(n.sayOrder(f, x, before, after)),
				call: schemas.NewToolCall("edit", map[string]any{"path": f.File, "start": x.first.Line, "end": x.second.Line,
					"new_code": n.lines[f.File][x.second.Line] + "\n" + n.lines[f.File][x.first.Line]})})
		}
	}
	return slices.CompactFunc(out, func(a, b Option) bool { return a.Place == b.Place })
}

func (n *Notes) sayOrder(f Function, x exchange, before, after Value) message {
	claim := schemas.Claim{Kind: schemas.ClaimCause, Function: f.Name, File: f.File, Line: x.first.Line}
	text := fmt.Sprintf("So the order of lines %d and %d of `%s` is the cause", x.first.Line, x.second.Line, f.Name)
	if isShort(before.Text) && isShort(after.Text) {
		claim.Reason = before.Expression + " is " + before.Text
		text += fmt.Sprintf(": line %d gets `%s`, and it would get `%s` after line %d", x.first.Line, before.Text, after.Text, x.second.Line)
	}
	return say(text+".", claim).then(n.effect(f, x.first, before, after)).then(say(n.words("I exchange the two lines.", "I let them change places.")))
}
