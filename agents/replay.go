package agents

// Taking up an episode: its first steps, and the steps an earlier delivery
// recorded. Recorded calls are executed again to bring the environment to the
// same place; what was observed then stays what the policy sees.

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// begin resets the environment, writes the messages before the first turn, and
// replays what is recorded.
func (r *run) begin(ctx context.Context) (string, error) {
	began := r.Clock().UTC()
	info, err := r.Env.Reset(ctx, false)
	if err != nil {
		return "", fmt.Errorf("resetting the environment: %w", err)
	}
	r.transcript.Tools, r.result.Tools = info.Tools, info.Tools
	first, err := r.firstSteps(info, began)
	if err != nil {
		return "", err
	}
	recorded, pending := r.Recorder.Replayed()
	n := 0
	for n < len(recorded) && recorded[n].Turn < 0 {
		r.replay(recorded[n])
		n++
	}
	if n == len(recorded) { // the rest of the first steps was never written
		for _, s := range first[min(n, len(first)):] {
			if err := r.add(s); err != nil {
				return "", err
			}
		}
	}
	switch {
	case info.State.EvalPassed != nil && *info.State.EvalPassed:
		return schemas.ExitResolvedAtReset, nil
	case info.State.Terminated:
		return schemas.ExitEnvDone, nil
	}
	return r.resume(ctx, recorded[n:], pending)
}

// firstSteps are the system prompt, the problem, and what tools said at reset.
// They begin when the reset began.
func (r *run) firstSteps(info env.Info, began time.Time) ([]schemas.Step, error) {
	system, problem, err := r.Policy.Prompts(r.Task, info.Tools)
	if err != nil {
		return nil, fmt.Errorf("rendering the prompts: %w", err)
	}
	var steps []schemas.Step
	add := func(s schemas.Step) {
		s.Turn, s.Call, s.At = -1, -1, began
		steps = append(steps, s)
	}
	if system != "" {
		add(schemas.Step{Source: "system", Text: system})
	}
	if problem != "" {
		add(schemas.Step{Source: "user", Text: problem})
	}
	if len(info.Observations) > 1 {
		for _, o := range info.Observations[1:] {
			if o.Text != "" {
				add(schemas.Step{Source: "env", Text: o.Text, Observation: &o})
			}
		}
	}
	state := info.State
	if len(steps) > 0 {
		last := &steps[len(steps)-1]
		last.State, last.EnvMillis = &state, info.Wall.Milliseconds()
	}
	return steps, nil
}

// resume executes recorded turns again and goes on where they end: in the
// middle of a reply's calls, at a reply that was never executed, or at the next
// turn.
func (r *run) resume(ctx context.Context, recorded []schemas.Step, pending *schemas.Reply) (string, error) {
	if err := r.repeat(ctx, recorded); err != nil {
		return "", err
	}
	var reply *schemas.Reply
	exit := ""
	for i, s := range recorded {
		if s.Reply != nil {
			reply = s.Reply
		}
		if reply == nil {
			return "", errors.New("the step log begins in the middle of a turn")
		}
		r.turnNo = s.Turn
		r.replay(s)
		if s.Call+1 < len(reply.Calls) {
			if i == len(recorded)-1 {
				return r.execute(ctx, *reply, s.Call+1, r.Clock().UTC())
			}
			continue
		}
		if exit = r.endTurn(*reply); exit != "" {
			return exit, nil
		}
	}
	if pending != nil {
		complete(pending, r.turnNo)
		return r.execute(ctx, *pending, 0, r.Clock().UTC())
	}
	return "", nil
}

func (r *run) replay(s schemas.Step) {
	s.Replayed = true
	s.Index = len(r.result.Steps)
	r.result.Replayed++
	r.keep(s)
}

// repeat executes the calls of steps again, except those that were never
// executed or that killed their sandbox.
func (r *run) repeat(ctx context.Context, steps []schemas.Step) error {
	for _, s := range steps {
		if s.ToolCall == nil || s.Observation == nil || s.Observation.ErrorClass == schemas.ErrSandboxDied || s.Observation.ErrorClass == schemas.ErrNotExecuted {
			continue
		}
		info, err := r.Env.Step(env.WithRecorded(ctx, *s.Observation), *s.ToolCall)
		if err != nil {
			return fmt.Errorf("repeating step %d (%s): %w", s.Index, s.ToolCall.Name, err)
		}
		if settle(info.Observation.Text) != settle(s.Observation.Text) {
			r.result.Diverged++
		}
	}
	return nil
}

// noise is what differs between two honest runs of one command: durations and
// addresses.
var noise = regexp.MustCompile(`\b\d+(\.\d+)?\s?(s|ms|µs|us|ns|seconds?)\b|0x[0-9a-f]+`)

func settle(text string) string { return noise.ReplaceAllString(text, "#") }
