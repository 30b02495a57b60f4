package write

import (
	"fmt"

	"github.com/tracesmith/tracesmith/schemas"
)

// maxTimeouts is the number of commands of the debugger that may run into the time limit before the agent stops running the
// program.
const maxTimeouts = 2

// stuckOptions returns what the agent can do after a command has run into the time limit: look where the program is, and
// let it run on once, because it may only be slow.
func (n *Notes) stuckOptions() []Option {
	if !n.isStuck || n.Timeouts >= maxTimeouts {
		return nil
	}
	out := []Option{{Kind: Wait, say: n.afterLearned(say(n.words("It may only be slow, so I let it run on once more.", "Perhaps it is only slow. I let it run on."))), call: pdb("c")}}
	if !n.askedStack {
		out = append(out, Option{Kind: Where, say: n.afterLearned(say(n.words("Where is it now? I look at the stack.", "What does it do so long? I look at the stack."))), call: pdb("w")})
	}
	return out
}

// learnedStuck says where the program was interrupted.
func (n *Notes) learnedStuck() message {
	if n.last.State == nil || n.last.State.Frame == nil {
		return message{}
	}
	f := n.last.State.Frame
	return say(fmt.Sprintf(n.words("It is in `%s`, at line %d of %s.", "It was interrupted in `%s` (line %d of %s)."), f.Function, f.Line, f.File),
		schemas.Claim{Kind: schemas.ClaimStops, Function: f.Function, File: f.File, Line: f.Line})
}
