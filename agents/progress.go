package agents

// This file keeps the state that decides when an episode ends. New steps and steps that an
// earlier execution of the job recorded update it in the same way.

import (
	"context"
	"slices"

	"github.com/tracesmith/tracesmith/schemas"
)

// appendStep appends a step to the result, and what the model sees of it to the transcript.
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

// maxCycle is the length of the longest cycle of calls that isStuck detects.
const maxCycle = 3

// isStuck reports whether the agent has repeated a cycle of at most maxCycle calls
// Limits.MaxRepeats times and got the same answers.
func (r *run) isStuck() bool {
	times := r.Limits.MaxRepeats
	for cycle := 1; times > 0 && cycle <= maxCycle; cycle++ {
		from := len(r.recentCalls) - cycle*times
		if from >= 0 && slices.Equal(r.recentCalls[from:len(r.recentCalls)-cycle], r.recentCalls[from+cycle:]) {
			return true
		}
	}
	return false
}

// withoutFullText returns a copy of a step that has only the texts that the model sees.
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

// endTurn returns the exit reason if the episode is over after a whole turn.
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
		return formatExit(reply)
	case r.isStuck():
		return schemas.ExitStuck
	}
	return ""
}

// formatExit returns the exit reason of an episode whose last replies had no call that can be executed.
func formatExit(last schemas.Reply) string {
	switch {
	case last.Truncated || slices.ContainsFunc(last.Calls, func(c schemas.ToolCall) bool { return c.Truncated }):
		return schemas.ExitCutOff
	case len(last.Calls) > 0:
		return schemas.ExitBadCalls
	}
	return schemas.ExitNoToolCall
}

// nopRecorder discards everything.
type nopRecorder struct{}

func (nopRecorder) Replayed() ([]schemas.Step, *schemas.Reply) { return nil, nil }
func (nopRecorder) TurnContext(ctx context.Context) (context.Context, func()) {
	return ctx, func() {}
}
func (nopRecorder) Reply(context.Context, int, schemas.Reply) error { return nil }
func (nopRecorder) Step(context.Context, schemas.Step) error        { return nil }
