package agents

// This file starts an episode and resumes it after an interruption. To bring the environment
// to the same state, Run executes again the calls that an earlier execution of the job
// recorded. The policy sees the recorded answers, not the new ones.

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	"github.com/tracesmith/tracesmith/agents/canonical"
	"github.com/tracesmith/tracesmith/schemas"
)

// begin resets the environment, opens the first conversation and replays the recorded
// steps. It returns the exit reason if the episode is over.
func (r *run) begin(ctx context.Context) (string, error) {
	began := r.Clock().UTC()
	info, err := r.Env.Reset(ctx, false)
	if err != nil {
		return "", fmt.Errorf("resetting the environment: %w", err)
	}
	r.envTools = info.Tools
	recorded, pending := r.Recorder.Replayed()
	if r.recorded = recorded; len(recorded) > 0 {
		r.result.Started = recorded[0].At // by the execution that began the episode
	}
	if exit, err := r.enterPhase(&info, began); exit != "" || err != nil {
		return exit, err
	}
	switch {
	case info.State.EvalPassed != nil && *info.State.EvalPassed:
		return schemas.ExitResolvedAtReset, nil
	case info.State.Terminated:
		return schemas.ExitEnvDone, nil
	}
	return r.resume(ctx, pending)
}

// resume executes the recorded calls again, replays the recorded turns, and continues where
// they end: between two calls of a reply, before the first call of a reply, or at the next
// turn.
func (r *run) resume(ctx context.Context, pending *schemas.Reply) (string, error) {
	if err := r.repeat(ctx, r.recorded); err != nil {
		return "", err
	}
	for len(r.recorded) > 0 || pending != nil {
		if exit, err := r.enterPhase(nil, r.Clock().UTC()); exit != "" || err != nil {
			return exit, err
		}
		if len(r.recorded) == 0 {
			break
		}
		if exit, err := r.replayTurn(ctx); exit != "" || err != nil {
			return exit, err
		}
	}
	if pending == nil {
		return "", nil
	}
	fillDefaults(pending, r.turnNo)
	return r.execute(ctx, *pending, 0, r.Clock().UTC())
}

// replayTurn replays the recorded steps of one turn, and executes the calls of its reply that
// do not have a recorded step.
func (r *run) replayTurn(ctx context.Context) (string, error) {
	var reply *schemas.Reply
	done := 0
	for len(r.recorded) > 0 {
		s := r.recorded[0]
		if s.Reply != nil {
			reply = s.Reply
		}
		if reply == nil {
			return "", fmt.Errorf("the step log holds step %d where a turn should begin: was it written by another version?", s.Index)
		}
		r.recorded = r.recorded[1:]
		r.turnNo = s.Turn
		r.replay(s)
		if done = s.Call + 1; done >= len(reply.Calls) {
			return r.endTurn(*reply), nil
		}
	}
	return r.execute(ctx, *reply, done, r.Clock().UTC())
}

// replay appends a recorded step.
func (r *run) replay(s schemas.Step) {
	s.Replayed = true
	s.Index = len(r.result.Steps)
	r.result.Replayed++
	r.appendStep(s)
}

// repeat executes the calls of steps again, except those that did not reach the
// environment or that killed their sandbox. It compares the answers.
func (r *run) repeat(ctx context.Context, steps []schemas.Step) error {
	for _, s := range steps {
		if !r.reachedEnv(s) {
			continue
		}
		info, err := r.Env.Repeat(ctx, *s.ToolCall, *s.Observation)
		if err != nil {
			return fmt.Errorf("repeating step %d (%s): %w", s.Index, s.ToolCall.Name, err)
		}
		r.compare(s.Index, AnswerHash(info.Observation.Text), AnswerHash(s.Observation.Text))
	}
	return nil
}

// compareWithRecording compares a step with the recording that the policy repeats, if there is one.
func (r *run) compareWithRecording(s schemas.Step) {
	call := max(s.Call, 0)
	if s.Turn < 0 || s.Observation == nil || call >= len(r.current.Recorded) {
		return
	}
	if recorded := r.current.Recorded[call]; recorded != "" {
		r.compare(s.Index, AnswerHash(s.Observation.Text), recorded)
	}
}

// compare compares the hash of a new answer with that of the recorded one. It counts the
// comparison, and lists the step in Diverged if the hashes differ.
func (r *run) compare(step int, answer, recorded string) {
	r.result.Compared++
	i, found := slices.BinarySearch(r.result.Diverged, step)
	if answer != recorded && !found {
		r.result.Diverged = slices.Insert(r.result.Diverged, i, step)
	}
}

// volatileText matches durations and addresses anywhere in a text. They differ between two runs
// of the same command. Package canonical removes them only in known contexts.
var volatileText = regexp.MustCompile(`\b\d+(\.\d+)?\s?(s|ms|µs|us|ns|seconds?)\b|0x[0-9a-fA-F]+`)

// AnswerHash returns a hash of an answer as dataset rows store it. The hash ignores the parts
// that may differ between two runs of the same command. Answers with equal hashes count as equal.
func AnswerHash(text string) string {
	text, _ = schemas.ValidUTF8(text)
	return schemas.ShortHash([]string{volatileText.ReplaceAllString(canonical.Text(schemas.Plain(text)), "#")})
}
