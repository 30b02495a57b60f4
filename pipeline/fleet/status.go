package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/pipeline"
	"github.com/tracesmith/tracesmith/pipeline/budget"
	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/schemas"
)

// ReadStatus reads the status of a run from the cluster, even if its coordinator is gone. ok is
// false if the cluster has no such run.
func ReadStatus(ctx context.Context, conn *engine.Conn, runID string, now time.Time) (s observe.Status, ok bool, err error) {
	workers, err := conn.Workers(ctx)
	if err != nil {
		return s, false, err
	}
	for {
		run, ok, err := conn.RunEntry(ctx, runID)
		if err != nil || !ok {
			return s, false, err
		}
		entries, err := conn.Entries(ctx, runID)
		if err != nil {
			return s, true, err
		}
		spent, err := budget.Read(ctx, conn, runID)
		if err != nil {
			return s, true, err
		}
		latest, _, err := conn.RunEntry(ctx, runID)
		if err != nil {
			return s, true, err
		}
		if run.Phase != latest.Phase || !bytes.Equal(run.Info, latest.Info) {
			continue // the phase or the details have changed while the jobs were read
		}
		if s, err = statusOf(latest, entries, workers, now); spent != nil {
			s.Budget = spent
		}
		return s, true, err
	}
}

func statusOf(run engine.RunEntry, entries []engine.Entry, workers []engine.WorkerEntry, now time.Time) (observe.Status, error) {
	details, err := readDetails(run)
	if err != nil {
		return observe.Status{}, err
	}
	s := observe.Status{
		RunID: run.RunID, Phase: string(run.Phase), PID: run.PID, Host: run.Host, RunDir: run.Dir,
		SilentSeconds: max(0, now.Sub(run.Seen).Seconds()), Staging: details.Staging, Budget: details.Budget, Selected: details.Selected, Reused: details.Reused, Workers: []observe.WorkerStatus{},
		Episodes: []observe.RunningStatus{}, Retrying: []observe.Retrying{},
	}
	alive := map[string]bool{}
	for _, w := range workers {
		alive[w.ID] = w.Alive(now)
		if w.RunID != run.RunID {
			continue
		}
		state := w.State
		if !alive[w.ID] && state != "left" && state != "refused" {
			state = "silent"
		}
		s.Workers = append(s.Workers, observe.WorkerStatus{
			Name: w.Name, Host: w.Host, Version: w.Version, State: state, Reason: w.Reason, Slots: w.Slots, Running: w.Running, Load: w.Load, SilentSeconds: max(0, now.Sub(w.Seen).Seconds()),
		})
		var activity observe.Activity
		if alive[w.ID] && len(w.Activity) > 0 {
			if err := json.Unmarshal(w.Activity, &activity); err != nil {
				return s, fmt.Errorf("reading the activity of worker %s: %w", w.Name, err)
			}
		}
		s.SetActivity(activity, w.Name, now)
	}
	slices.SortFunc(s.Workers, func(a, b observe.WorkerStatus) int { return strings.Compare(a.Name, b.Name) })
	if run.Phase == engine.Completed {
		s.Ran, s.Done = s.Selected-s.Reused, s.Selected
		return s, nil
	}
	deadEarlier := 0
	for _, e := range entries {
		var job schemas.Job
		if err := json.Unmarshal(e.Data, &job); err != nil {
			return s, fmt.Errorf("reading job %s: %w", e.ID, err)
		}
		isChanged := e.Revision > details.Since // since this coordinator started
		switch {
		case job.Attempt >= details.Attempts || e.Class == pipeline.ClassNotSelected: // not part of Selected
		case slices.Contains(details.Settled, e.ID): // part of Reused
		case e.State == engine.Running:
			s.Running++
			if worker, _, _ := strings.Cut(e.Owner, "/"); !alive[worker] {
				s.Orphaned++
			}
		case e.State == engine.Done && isChanged:
			s.Done, s.Ran = s.Done+1, s.Ran+1
		case e.State == engine.Dead && isChanged:
			s.Failed, s.Ran = s.Failed+1, s.Ran+1
		case e.State == engine.Dead:
			deadEarlier++
		}
	}
	s.Done += s.Reused
	s.Failed += deadEarlier
	s.Missing = deadEarlier
	s.Waiting = s.Selected - s.Running - s.Done - s.Failed
	return s, nil
}
