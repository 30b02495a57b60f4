package write

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/agents/handover"
	"github.com/tracesmith/tracesmith/agents/testcmd"
	"github.com/tracesmith/tracesmith/schemas"
)

const (
	maxExcerpt  = 40 // lines of the function that the agent hands over
	maxHandover = 4  // values that it hands over
)

// viewed is a range of lines that a call of view has shown.
type viewed struct {
	file              string
	first, last, step int
}

// handOver returns the option to hand over a statement as the cause. c is a change that an experiment supports, or nil. ok
// is false if no view has shown the statement.
func (n *Notes) handOver(f Function, st Placed, outcome Value, c *change, tried Value) (o Option, ok bool) {
	excerpt := n.excerpt(f, st)
	if excerpt == nil {
		return Option{}, false
	}
	m := n.cause(f, st, st.Place, oneLine(st.evaluated()), outcome)
	o = Option{Kind: HandOver, Function: f, Place: st.Place, Last: st.last, Raises: outcome.IsError}
	if c != nil {
		o.Place, o.Statement, o.Tried = c.at, strings.TrimSpace(c.line), true
		if m = n.cause(f, st, c.at, c.original, outcome); m.quotes && isShort(c.expression) && isShort(tried.Text) {
			m.text += fmt.Sprintf(", while `%s` is `%s`", c.expression, tried.Text)
		} else {
			tried = Value{}
		}
	}
	text := say("So "+m.text+".", m.claims...).then(n.consequence(f, st, outcome, tried))
	values, steps := n.evidence()
	cause := strings.TrimPrefix(text.text, "So ")
	o.say = n.afterLearned(text.then(say(n.words("I hand over what I have found.", "That is enough to write a fix, so I hand it over."))))
	o.call = schemas.NewToolCall(handover.Name, map[string]any{
		"cause": strings.ToUpper(cause[:1]) + cause[1:], "cause_steps": steps, "files": []any{excerpt}, "values": values,
	})
	return o, true
}

// excerpt returns the lines of a function around a statement, as the last view that has shown the statement did, or nil.
func (n *Notes) excerpt(f Function, st Placed) map[string]any {
	body := n.body(f)
	for _, v := range slices.Backward(n.viewed) {
		if v.file == st.File && v.first <= st.head() && st.last <= v.last {
			start := max(v.first, f.Line, st.Line-maxExcerpt/2)
			end := max(st.last, min(v.last, body[len(body)-1], st.Line+maxExcerpt/2))
			return map[string]any{"path": v.file, "start": start, "end": end, "step": v.step, "note": "`" + f.Name + "`"}
		}
	}
	return nil
}

// evidence returns the last values that the debugger has printed in the program, and the steps that did it.
func (n *Notes) evidence() (values []map[string]any, steps []int) {
	values = []map[string]any{}
	for _, stop := range slices.Backward(n.Stops) {
		if testcmd.IsTestFile(stop.File) {
			continue
		}
		for _, v := range slices.Backward(stop.Values) {
			if v.step == 0 || len(values) == maxHandover || !isShort(v.Text) || slices.Contains(steps, v.step) {
				continue
			}
			values = append(values, map[string]any{"expression": v.Expression, "value": v.Text, "step": v.step, "note": fmt.Sprintf("in `%s`, before line %d", stop.Function, stop.Line)})
			steps = append(steps, v.step)
		}
	}
	slices.Reverse(values)
	slices.Sort(steps)
	if len(steps) == 0 {
		steps = []int{n.last.Index}
	}
	return values, steps
}
