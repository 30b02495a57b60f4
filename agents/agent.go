// Package agents defines the Policy interface and runs a policy in an environment. Run asks
// the policy for replies, executes their calls, and decides when and why an episode ends. A
// Recorder makes every step durable before the next one begins. The policies are in
// agents/policies.
package agents

import (
	"context"
	"io"

	"github.com/tracesmith/tracesmith/schemas"
)

// Policy decides what to do next. It sees only what a model would see. Next must be a
// function of the transcript and of state derived from it, so that replaying a recorded
// transcript brings the policy to the same state. Each episode gets a new policy, which one
// goroutine uses.
type Policy interface {
	Info() schemas.AgentInfo
	// Prompts renders the messages that open the conversation of phase t.Phase, whose model
	// sees the tools t.Tools. Run leaves out an empty message.
	Prompts(t *Transcript) (system, problem string, err error)
	// Next returns the reply of the next turn. Run maps an llms error with a class to an
	// exit reason. A reply whose Stop is set ends the episode.
	Next(ctx context.Context, t *Transcript) (schemas.Reply, error)
}

// Transcript holds all that the model may know about the episode so far.
type Transcript struct {
	Task  schemas.Task // as Task.Public returns it
	Phase string       // name of the current conversation, see Phased
	Tools []schemas.ToolSchema
	Steps []schemas.Step // the steps of all conversations
	// Reply is the reply whose calls are being answered. Steps might not contain it yet.
	Reply *schemas.Reply
}

// Privileged holds what the model must not know. Only policies that declare
// AgentInfo.GoldUsed get it, when they are built.
type Privileged struct {
	GoldPatch string
	Failing   []string // tests that the bug breaks
	// Trace runs a failing test on the buggy and on the fixed version, or returns the result of an earlier call.
	// It is nil unless the policy declares Needs.Trace.
	Trace func(ctx context.Context, test string) (schemas.PairedTrace, error)
}

// Recorder makes an episode durable. One goroutine uses it. Reply and Step return only when
// their data is on disk.
type Recorder interface {
	// Replayed returns the steps that an earlier, interrupted execution of this job recorded,
	// and the last reply if none of its calls has a recorded step.
	Replayed() (steps []schemas.Step, pending *schemas.Reply)
	// TurnContext returns the context for Policy.Next in the next turn. Calls to models with
	// this context are charged to the episode (llms.Account). If the context ends before
	// ctx, its cause says why no further call may begin. The caller must call done after the
	// turn.
	TurnContext(ctx context.Context) (asking context.Context, done func())
	// Reply records a reply before its calls are executed. Step records a step together
	// with its observation.
	Reply(ctx context.Context, turn int, r schemas.Reply) error
	Step(ctx context.Context, s schemas.Step) error
}

// Console reads the input of a person and writes what they see. One goroutine uses it.
type Console interface {
	io.Writer
	// ReadLine returns a line without its line break, or io.EOF after the last line.
	// complete returns the completions of the last word of line, and the byte at which
	// the word begins. ReadLine calls it only if the input is a terminal.
	ReadLine(ctx context.Context, prompt string, complete func(line string) (from int, options []string)) (string, error)
}
