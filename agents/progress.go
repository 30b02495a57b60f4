package agents

// What the loop learns from each step, whether it was taken now or recorded by
// an earlier delivery: the end of the episode, loops, format errors.

import (
	"context"
	"slices"

	"github.com/tracesmith/tracesmith/schemas"
)

// keep appends a step to the result and to the transcript, which shows a
// policy what the model sees and no more.
func (r *run) appendStep(step schemas.Step) {
	r.compareWithRecording(step)
	r.result.Steps = append(r.result.Steps, step)
	r.transcript.Steps = append(r.transcript.Steps, withoutFullText(step))
	if step.Reply != nil {
		r.wellFormed = false
		if u := step.Reply.Usage; u != nil {
			r.conversationTokens = u.Prompt + u.Completion
		}
	}
	if step.State != nil && step.State.Terminated {
		r.terminated = true
	}
	o := step.Observation
	if o == nil || step.ToolCall == nil || o.ErrorClass == schemas.ErrNotExecuted {
		return
	}
	switch o.ErrorClass {
	case schemas.ErrSandboxDied:
		r.sandboxDeaths++
		r.wellFormed = true
	case schemas.ErrBadArguments, schemas.ErrUnknownTool, schemas.ErrCutOff:
	default:
		r.wellFormed = r.wellFormed || step.ToolCall.Invalid == ""
	}
	r.recentCalls = append(r.recentCalls, schemas.ShortHash([]string{step.ToolCall.Name, string(step.ToolCall.Arguments), step.ToolCall.Raw, o.Text}))
	if n := len(r.recentCalls) - maxCycle*max(r.Limits.MaxRepeats, 1); n > 0 {
		r.recentCalls = r.recentCalls[n:]
	}
}

// maxCycle is the longest round of calls that is seen to go round and round.
const maxCycle = 3

// stuck tells whether the last calls are one round of at most maxCycle calls, over
// and over with the same answers.
func (r *run) stuck() bool {
	times := r.Limits.MaxRepeats
	for cycle := 1; times > 0 && cycle <= maxCycle; cycle++ {
		from := len(r.recentCalls) - cycle*times
		if from >= 0 && slices.Equal(r.recentCalls[from:len(r.recentCalls)-cycle], r.recentCalls[from+cycle:]) {
			return true
		}
	}
	return false
}

// visible is a step without what was cut from its observations.
func withoutFullText(step schemas.Step) schemas.Step {
	if step.Observation != nil && step.Observation.FullText != "" {
		o := *step.Observation
		o.FullText = ""
		step.Observation = &o
	}
	if len(step.Triggered) > 0 {
		shown := make([]schemas.Observation, len(step.Triggered))
		for i, o := range step.Triggered {
			o.FullText = ""
			shown[i] = o
		}
		step.Triggered = shown
	}
	return step
}

// endTurn decides whether the episode is over after a whole turn.
func (r *run) endTurn(reply schemas.Reply) string {
	r.turnNo++
	r.formatErrors++
	if r.wellFormed {
		r.formatErrors = 0
	}
	switch {
	case r.terminated:
		return schemas.ExitSubmitted
	case r.sandboxDeaths > 1:
		return schemas.ExitKilledSandbox
	case reply.Stop != "":
		return reply.Stop
	case r.Limits.MaxFormatErrors > 0 && r.formatErrors >= r.Limits.MaxFormatErrors:
		return schemas.ExitNoToolCall
	case r.stuck():
		return schemas.ExitStuck
	}
	return ""
}

// unrecorded is the Recorder of episodes nobody wants back.
type nopRecorder struct{}

func (nopRecorder) Replayed() ([]schemas.Step, *schemas.Reply) { return nil, nil }
func (nopRecorder) Asking(ctx context.Context) (context.Context, func()) {
	return ctx, func() {}
}
func (nopRecorder) Reply(context.Context, int, schemas.Reply) error { return nil }
func (nopRecorder) Step(context.Context, schemas.Step) error        { return nil }
