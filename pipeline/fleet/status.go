package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
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
		Outcomes: map[string]int{}, CostUSD: new(details.CostUSD), CallTimeoutSeconds: details.CallTimeout.Seconds(),
	}
	maps.Copy(s.Outcomes, details.Outcomes)
	alive, doing := map[string]bool{}, map[string]observe.Running{}
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
		if !alive[w.ID] {
			continue
		}
		a, err := activityOf(w)
		if err != nil {
			return s, err
		}
		for _, r := range a.Running {
			doing[r.EpisodeID] = r
		}
	}
	slices.SortFunc(s.Workers, func(a, b observe.WorkerStatus) int { return strings.Compare(a.Name, b.Name) })
	if run.Phase == engine.Completed {
		s.Ran, s.Done = s.Selected-s.Reused, s.Selected
		s.SetActivity(observe.Activity{}, now)
		return s, nil
	}
	return s, countJobs(&s, details, entries, alive, doing, now)
}

// countJobs adds the jobs of a run that is not complete to its status. alive says which workers are
// alive, and doing what the jobs do that they execute.
func countJobs(s *observe.Status, details RunDetails, entries []engine.Entry, alive map[string]bool, doing map[string]observe.Running, now time.Time) error {
	activity := observe.NewActivities()
	for _, e := range entries {
		var job schemas.Job
		if err := json.Unmarshal(e.Data, &job); err != nil {
			return fmt.Errorf("reading job %s: %w", e.ID, err)
		}
		isChanged := e.Revision > details.Since // since this coordinator started
		switch {
		case job.Attempt >= details.Attempts, e.State == engine.Dead && e.Class == pipeline.ClassNotSelected: // not part of Selected
		case slices.Contains(details.Ignored, e.ID):
		case e.State == engine.Running:
			s.Running++
			if r, ok := doing[e.ID]; ok {
				activity.Begin(job, 0, observe.InWorker)
				activity.Replace(r)
				*s.CostUSD += r.CostUSD
			}
			if worker, _, _ := strings.Cut(e.Owner, "/"); !alive[worker] {
				s.Orphaned++
			}
		case e.State == engine.Done && isChanged:
			s.Done, s.Ran = s.Done+1, s.Ran+1
			var result pipeline.Result
			if err := json.Unmarshal(e.Result, &result); err != nil {
				return fmt.Errorf("reading the result of job %s: %w", e.ID, err)
			}
			s.Outcomes[result.Outcome]++
			*s.CostUSD += result.CostUSD
		case e.State == engine.Dead:
			s.Failed++
			if isChanged {
				s.Ran++
				s.Outcomes[schemas.OutcomeInfra]++
			} else {
				s.Missing++
			}
		case e.State == engine.Queued && e.Failures > 0:
			activity.Retry(job, e.Due)
		}
	}
	s.SetActivity(activity.Now(), now)
	s.Done += s.Reused
	s.Waiting = s.Selected - s.Running - s.Done - s.Failed
	return nil
}
