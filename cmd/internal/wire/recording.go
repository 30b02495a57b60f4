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
	"github.com/tracesmith/tracesmith/pipeline/normalise"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// recorded is an episode to say again, and which attempt it was.
type recorded struct {
	attempt   int32
	recording agents.Recording
}

// ReadRecordings reads the recorded episodes that the agent says again, those of
// the tasks; nothing for other agents.
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
	a.recordings = map[string][]recorded{}
	for t, err := range data.Trajectories(ctx) {
		if err != nil {
			return fmt.Errorf("agent.with.from: %w", err)
		}
		e := t.Episode
		if !wanted[e.InstanceID] || !strings.HasPrefix(e.EpisodeID, a.needs.Episode) {
			continue
		}
		rec, err := recordingOf(t)
		if err != nil {
			return fmt.Errorf("agent.with.from: episode %s of %s: %w", e.EpisodeID, from, err)
		}
		a.recordings[e.InstanceID] = append(a.recordings[e.InstanceID], recorded{e.Attempt, rec})
	}
	for _, list := range a.recordings {
		slices.SortFunc(list, func(a, b recorded) int {
			return cmp.Or(cmp.Compare(a.attempt, b.attempt), cmp.Compare(a.recording.Episode, b.recording.Episode))
		})
	}
	return nil
}

// recording is that of a job: of the same attempt, or else the first there is.
func (a *Agent) recording(j schemas.Job, t schemas.Task) *agents.Recording {
	list := a.recordings[t.InstanceID]
	if len(list) == 0 {
		return nil
	}
	at := slices.IndexFunc(list, func(r recorded) bool { return int(r.attempt) == j.Attempt })
	return &list[max(at, 0)].recording
}

// recordingOf takes the turns out of an episode's rows.
func recordingOf(t sinks.Trajectory) (agents.Recording, error) {
	rec := agents.Recording{Episode: t.Episode.EpisodeID, GoldUsed: t.Episode.GoldUsed, Style: text(t.Episode.ToolCallStyle)}
	steps, err := history.Steps(t.Steps)
	if err != nil {
		return rec, err
	}
	for i, s := range steps {
		row := &t.Steps[i]
		if s.Turn < 0 {
			continue
		}
		if s.Reply != nil { // it holds all its calls already
			s.Reply.Reasoning = text(row.Reasoning)
			s.Reply.CallAsText = text(row.ErrorClass) == schemas.ErrCallAsText
			turn := agents.RecordedTurn{Reply: *s.Reply, Phase: s.Phase}
			if row.ToolSetSHA256 != nil {
				for _, tool := range t.ToolsAt(row) {
					turn.Tools = append(turn.Tools, tool.Name)
				}
			}
			if op := text(row.ContextOpJSON); op != "" && s.Phase != "" { // nothing is handed over that was not seen then
				if err := json.Unmarshal([]byte(op), &turn.Reply.Context); err != nil {
					return rec, fmt.Errorf("context_op_json of step %d: %w", row.StepIndex, err)
				}
			}
			rec.Turns = append(rec.Turns, turn)
		}
		turn := &rec.Turns[len(rec.Turns)-1]
		turn.Reply.Truncated = turn.Reply.Truncated || text(row.ErrorClass) == schemas.ErrCutOff
		invalid := row.ArgumentsValid != nil && !*row.ArgumentsValid
		if s.ToolCall != nil {
			call := &turn.Reply.Calls[s.Call]
			call.GoldEdit = row.GoldEdit != nil && *row.GoldEdit
			if invalid {
				call.Raw, call.Invalid = text(row.ArgumentsRaw), "it could not be read when it was recorded"
				call.Truncated = text(row.ErrorClass) == schemas.ErrCutOff
			}
		}
		answer := ""
		if row.Observation != nil && !(invalid && rec.Style != history.TextStyle) && complete(row) {
			answer = agents.Settled(*row.Observation)
		}
		turn.Answers = append(turn.Answers, answer)
	}
	return rec, nil
}

// complete tells whether a row holds all of what its step was answered.
func complete(row *schemas.StepRow) bool {
	secret := row.Redacted != nil && *row.Redacted > 0
	return !secret && len(*row.Observation) <= normalise.MaxObservation-utf8.UTFMax
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// recordedHash is what must stay the same of a task's recordings.
func recordedHash(list []recorded) string {
	var all []agents.Recording
	for _, r := range list {
		all = append(all, r.recording)
	}
	return schemas.ShortHash(all)
}
