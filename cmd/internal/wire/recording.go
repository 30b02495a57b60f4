package wire

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/agents/history"
	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// attemptRecording is a recorded episode and the number of its attempt.
type attemptRecording struct {
	attempt   int32
	recording agents.Recording
}

// ReadRecordings reads the recorded episodes of the tasks, for an agent that replays
// them; for other agents it does nothing.
func (a *Agent) ReadRecordings(ctx context.Context, tasks []schemas.Task, s3 configs.S3) error {
	from := a.needs.Recording
	if from == "" {
		return nil
	}
	data, err := OpenData(ctx, from, s3)
	if err != nil {
		return fmt.Errorf("agent.with.from: %w", err)
	}
	defer func() { _ = data.Close() }()
	wanted := map[string]bool{}
	for _, t := range tasks {
		wanted[t.InstanceID] = true
	}
	a.recordings = map[string][]attemptRecording{}
	for t, err := range data.Trajectories(ctx) {
		if err != nil {
			return fmt.Errorf("agent.with.from: %w", err)
		}
		e := t.Episode
		if !wanted[e.InstanceID] || !strings.HasPrefix(e.EpisodeID, a.needs.Episode) {
			continue
		}
		rec, err := newRecording(t)
		if err != nil {
			return fmt.Errorf("agent.with.from: episode %s of %s: %w", e.EpisodeID, from, err)
		}
		a.recordings[e.InstanceID] = append(a.recordings[e.InstanceID], attemptRecording{e.Attempt, rec})
	}
	for _, list := range a.recordings {
		slices.SortFunc(list, func(a, b attemptRecording) int {
			return cmp.Or(cmp.Compare(a.attempt, b.attempt), cmp.Compare(a.recording.Episode, b.recording.Episode))
		})
	}
	return nil
}

// recording returns the recording for a job: of the same attempt, or else the first.
func (a *Agent) recording(j schemas.Job, t schemas.Task) *agents.Recording {
	list := a.recordings[t.InstanceID]
	if len(list) == 0 {
		return nil
	}
	at := slices.IndexFunc(list, func(r attemptRecording) bool { return int(r.attempt) == j.Attempt })
	return &list[max(at, 0)].recording
}

// newRecording makes a recording from the rows of an episode.
func newRecording(t sinks.Trajectory) (agents.Recording, error) {
	rec := agents.Recording{Episode: t.Episode.EpisodeID, GoldUsed: t.Episode.GoldUsed, Style: schemas.Value(t.Episode.ToolCallStyle)}
	steps, err := history.Steps(t.Steps)
	if err != nil {
		return rec, err
	}
	for i, s := range steps {
		row := &t.Steps[i]
		if s.Turn < 0 {
			continue
		}
		if s.Reply != nil { // the first step of a turn; its reply holds all calls of the turn
			s.Reply.Reasoning = schemas.Value(row.Reasoning)
			s.Reply.CallAsText = schemas.Value(row.ErrorClass) == schemas.ErrCallAsText
			turn := agents.RecordedTurn{Reply: *s.Reply, Phase: s.Phase}
			if row.ToolSetSHA256 != nil {
				for _, tool := range t.ToolsAt(row) {
					turn.Tools = append(turn.Tools, tool.Name)
				}
			}
			if contextOp := schemas.Value(row.ContextOpJSON); contextOp != "" && s.Phase != "" { // a handover depends on it
				if err := json.Unmarshal([]byte(contextOp), &turn.Reply.Context); err != nil {
					return rec, fmt.Errorf("context_op_json of step %d: %w", row.StepIndex, err)
				}
			}
			rec.Turns = append(rec.Turns, turn)
		}
		turn := &rec.Turns[len(rec.Turns)-1]
		turn.Reply.Truncated = turn.Reply.Truncated || schemas.Value(row.ErrorClass) == schemas.ErrCutOff
		invalid := row.ArgumentsValid != nil && !*row.ArgumentsValid
		if s.ToolCall != nil {
			call := &turn.Reply.Calls[s.Call]
			call.GoldEdit = row.GoldEdit != nil && *row.GoldEdit
			if invalid {
				call.Raw, call.Invalid = schemas.Value(row.ArgumentsRaw), "it could not be read when it was recorded"
				call.Truncated = schemas.Value(row.ErrorClass) == schemas.ErrCutOff
			}
		}
		answer := ""
		if row.Observation != nil && !(invalid && rec.Style != history.TextStyle) && isComplete(row) {
			answer = agents.AnswerHash(*row.Observation)
		}
		turn.Answers = append(turn.Answers, answer)
	}
	return rec, nil
}

// isComplete reports whether a row holds the whole observation of its step: neither
// redacted nor cut.
func isComplete(row *schemas.StepRow) bool {
	secret := row.Redacted != nil && *row.Redacted > 0
	return !secret && len(*row.Observation) <= schemas.MaxObservation-utf8.UTFMax
}

// recordingsHash returns the hash of a task's recordings, for Identity.
func recordingsHash(list []attemptRecording) string {
	var all []agents.Recording
	for _, r := range list {
		all = append(all, r.recording)
	}
	return schemas.ShortHash(all)
}
