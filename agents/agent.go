// Package agents defines what a policy is and runs one through an environment:
// Run is the loop with its stop reasons, Recorder makes every step durable
// before the next. Policies live in agents/policies, one file each.
package agents

import (
	"context"
	"io"

	"github.com/tracesmith/tracesmith/schemas"
)

// Policy decides what to do next. It sees what the model would see and nothing
// else: Next must be a function of the transcript (and of state derived from
// it), so that replaying a recorded transcript brings it to the same place.
// One goroutine uses a policy; a new one is made per episode.
type Policy interface {
	Info() schemas.AgentInfo
	// Prompts renders the messages that open the conversation t.Phase, whose model is
	// shown t.Tools; "" = no such message.
	Prompts(t *Transcript) (system, problem string, err error)
	// Next makes one turn. An llms error with a class is mapped to an exit
	// reason; Reply.Stop ends the episode.
	Next(ctx context.Context, t *Transcript) (schemas.Reply, error)
}

// Transcript is the episode so far, as the model may know it.
type Transcript struct {
	Task  schemas.Task // only what is Public of it
	Phase string       // of the conversation that is on, see Phased
	Tools []schemas.ToolSchema
	Steps []schemas.Step // of all conversations
	Seed  int64
	// Reply is the one whose calls are being answered; Steps may not hold it yet.
	Reply *schemas.Reply
}

// Privileged is what a policy that declares gold_used gets at construction and
// others never see.
type Privileged struct {
	GoldPatch string
}

// Recorder makes an episode durable. Calls come in order from one goroutine;
// each returns only when what it was given is on disk.
type Recorder interface {
	// Replayed returns the steps an earlier delivery of this job recorded, and
	// the last reply if its step was never finished.
	Replayed() (steps []schemas.Step, pending *schemas.Reply)
	// Asking is the context of the next turn's policy, under which models are
	// asked (llms.Account); done releases it. When it ends before ctx, its cause
	// says why no model is asked any more.
	Asking(ctx context.Context) (asking context.Context, done func())
	// Reply is written when the policy has answered, Step when its observation
	// is there.
	Reply(ctx context.Context, turn int, r schemas.Reply) error
	Step(ctx context.Context, s schemas.Step) error
}

// Console is where a person reads and writes. One goroutine uses it.
type Console interface {
	io.Writer
	// ReadLine returns a line without its break; io.EOF when there are no more.
	// complete tells what may stand at the end of what was typed so far, and at
	// which byte it would begin; nothing is completed where nobody types.
	ReadLine(ctx context.Context, prompt string, complete func(line string) (from int, options []string)) (string, error)
}
