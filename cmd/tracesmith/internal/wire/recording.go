package wire

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/agents/history"
	"github.com/tracesmith/tracesmith/configs"
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

// recordingOf takes the replies out of an episode's rows.
func recordingOf(t sinks.Trajectory) (agents.Recording, error) {
	rec := agents.Recording{Episode: t.Episode.EpisodeID, GoldUsed: t.Episode.GoldUsed, Style: text(t.Episode.ToolCallStyle)}
	steps, err := history.Steps(t.Steps)
	if err != nil {
		return rec, err
	}
	var replies []*schemas.Reply
	for i, s := range steps {
		row := t.Steps[i]
		if s.Phase != "" {
			return rec, fmt.Errorf("it holds several conversations: only episodes of one can be said again")
		}
		if s.Reply != nil {
			s.Reply.Reasoning = text(row.Reasoning)
			replies = append(replies, s.Reply)
		}
		if s.ToolCall == nil {
			continue
		}
		call := &replies[len(replies)-1].Calls[s.Call]
		call.GoldEdit = row.GoldEdit != nil && *row.GoldEdit
		if row.ArgumentsValid != nil && !*row.ArgumentsValid {
			call.Raw, call.Invalid = text(row.ArgumentsRaw), "it could not be read when it was recorded"
		}
	}
	for _, r := range replies {
		rec.Replies = append(rec.Replies, *r)
	}
	return rec, nil
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
