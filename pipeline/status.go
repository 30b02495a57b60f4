package pipeline

// How a run on a cluster stands, from what is stored there: the coordinator may
// be gone.

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/schemas"
)

// Status of a run. Selected = Reused + Ran + Missing, and
// Selected = Waiting + Running + Done + Failed, at every moment.
type Status struct {
	RunID       string `json:"run_id"`
	Phase       string `json:"phase"`
	Coordinator string `json:"coordinator"` // pid, host and directory
	// Silent is for how many seconds the coordinator was not heard of.
	Silent   float64 `json:"coordinator_silent_s"`
	Staging  string  `json:"staging"`
	Selected int     `json:"selected"`
	Reused   int     `json:"reused"`
	Ran      int     `json:"ran"`
	Missing  int     `json:"missing"`
	Waiting  int     `json:"waiting"`
	Running  int     `json:"running"`
	Done     int     `json:"done"`
	Failed   int     `json:"failed"` // given up
	// Budget is what it has spent; null where it has neither limits.total_cost nor
	// limits.task_cost.
	Budget *Budget `json:"budget,omitempty"`
	// Orphaned are those of Running whose owner is silent or has left.
	Orphaned int            `json:"orphaned"`
	Workers  []WorkerStatus `json:"workers"`
}

// WorkerStatus is one worker that has taken part in the last day.
type WorkerStatus struct {
	Name    string   `json:"name"`
	Host    string   `json:"host"`
	Version string   `json:"version"`
	State   string   `json:"state"` // silent: it said something else, too long ago
	Reason  string   `json:"reason,omitempty"`
	Slots   int      `json:"slots"`
	Running []string `json:"running"`
	Load    float64  `json:"load"`
	Silent  float64  `json:"silent_s"`
}

// ReadStatus reads how a run stands; ok is false where the cluster knows of none.
func ReadStatus(ctx context.Context, conn *engine.Conn, runID string, now time.Time) (s Status, ok bool, err error) {
	workers, err := conn.Workers(ctx)
	if err != nil {
		return s, false, err
	}
	for {
		run, ok, err := conn.Run(ctx, runID)
		if err != nil || !ok {
			return s, false, err
		}
		entries, err := conn.Entries(ctx, runID)
		if err != nil {
			return s, true, err
		}
		budget, err := readBudget(ctx, conn, runID)
		if err != nil {
			return s, true, err
		}
		again, _, err := conn.Run(ctx, runID)
		if err != nil {
			return s, true, err
		}
		if run.Phase != again.Phase || !bytes.Equal(run.Info, again.Info) {
			continue // another coordinator began, or the run ended, while we looked
		}
		if s, err = statusOf(again, entries, workers, now); budget != nil {
			s.Budget = budget
		}
		return s, true, err
	}
}

func statusOf(run engine.RunEntry, entries []engine.Entry, workers []engine.WorkerEntry, now time.Time) (Status, error) {
	var info FleetInfo
	if len(run.Info) > 0 {
		if err := json.Unmarshal(run.Info, &info); err != nil {
			return Status{}, fmt.Errorf("reading the board: run %s: %w", run.RunID, err)
		}
	}
	s := Status{
		RunID: run.RunID, Phase: string(run.Phase), Coordinator: fmt.Sprintf("pid %d on %s, in %s", run.PID, run.Host, run.Dir),
		Silent: max(0, now.Sub(run.Seen).Seconds()), Staging: info.Staging, Budget: info.Budget, Selected: info.Selected, Reused: info.Reused, Workers: []WorkerStatus{},
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
		s.Workers = append(s.Workers, WorkerStatus{w.Name, w.Host, w.Version, state, w.Reason, w.Slots, w.Running, w.Load, max(0, now.Sub(w.Seen).Seconds())})
	}
	slices.SortFunc(s.Workers, func(a, b WorkerStatus) int { return strings.Compare(a.Name, b.Name) })
	if run.Phase == engine.Completed {
		s.Ran, s.Done = s.Selected-s.Reused, s.Selected
		return s, nil
	}
	earlier := 0
	for _, e := range entries {
		var job schemas.Job
		if err := json.Unmarshal(e.Data, &job); err != nil {
			return s, fmt.Errorf("reading job %s: %w", e.ID, err)
		}
		now := e.Revision > info.Since
		switch {
		case job.Attempt >= info.Attempts || e.Class == classNotSelected || slices.Contains(info.Settled, e.ID):
		case e.State == engine.Running:
			s.Running++
			if worker, _, _ := strings.Cut(e.Owner, "/"); !alive[worker] {
				s.Orphaned++
			}
		case e.State == engine.Done && now:
			s.Done, s.Ran = s.Done+1, s.Ran+1
		case e.State == engine.Dead && now:
			s.Failed, s.Ran = s.Failed+1, s.Ran+1
		case e.State == engine.Dead:
			earlier++
		}
	}
	s.Done += s.Reused
	s.Failed += earlier
	s.Missing = s.Selected - s.Reused - s.Ran
	s.Waiting = s.Selected - s.Running - s.Done - s.Failed
	return s, nil
}
