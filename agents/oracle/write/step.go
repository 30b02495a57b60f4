package write

import (
	"fmt"
	"slices"

	"github.com/tracesmith/tracesmith/schemas"
)

// stepOptions returns the step into the function that the current line calls, if it calls only one and the agent has read it.
func (n *Notes) stepOptions(f Function, stop Stop) []Option {
	_, st, ok := n.statementAt(stop.Place)
	if !ok || stop.Event != "line" {
		return nil
	}
	calls := called(st.text)
	isRead := func(g Function) bool { return len(calls) == 1 && g.Name == calls[0] && !g.IsClass && n.isRead(g) }
	if !slices.ContainsFunc(n.Functions(), isRead) {
		return nil
	}
	m := say(fmt.Sprintf(n.words("Line %d calls `%s`. I step into it.", "The call in line %d goes to `%s`. I follow it."), stop.Line, calls[0]),
		schemas.Claim{Kind: schemas.ClaimCalls, Caller: f.Name, Function: calls[0]})
	return []Option{{Kind: Step, Function: f, Place: stop.Place, Calls: calls, say: n.afterLearned(m), call: pdb("s")}}
}
