package pipeline

import (
	"context"
	"fmt"
	"time"

	"github.com/tracesmith/tracesmith/pipeline/budget"
)

// confirmBudget refuses a budget for a run that had none while a worker may be at work that
// knows of no budget: what it spends would not be counted.
func (f *fleet) confirmBudget(ctx context.Context) error {
	r := f.r
	workers, err := r.deps.Cluster.Workers(ctx)
	if err != nil {
		return err
	}
	for _, w := range workers {
		if w.RunID == r.runID && w.Alive(w.Seen) && time.Since(w.Seen) < r.cfg.Lease+30*time.Second {
			return &StopError{Code: 2, Err: fmt.Errorf("worker %s may still work on run %s, which was started without limits.total_cost and limits.task_cost: what it spends would not be counted", w.Name, r.runID),
				Remedy: fmt.Sprintf("end that worker, or start the run without these limits and interrupt it; %s after it was last heard of a worker is taken for gone", r.cfg.Lease+30*time.Second)}
		}
	}
	return nil
}

// checkBudget checks the shared budget until ctx ends, and ends the run once the money is
// used up.
func (f *fleet) checkBudget(ctx context.Context) {
	tick := time.NewTicker(f.r.cfg.LookEvery / 2)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		why, err := f.budget.Check(ctx, f.forsaken)
		if err != nil && ctx.Err() == nil {
			f.r.deps.Log.Warn("looking at the budget", "error", err)
		}
		if why != "" {
			f.r.mu.Lock()
			if f.r.fatal == nil {
				f.r.fatal = &budget.ExhaustedError{Why: why}
			}
			f.r.mu.Unlock()
			close(f.poor)
			return
		}
	}
}

// forsaken reports whether no worker executes a delivery of a job any more.
func (f *fleet) forsaken(id string, delivery int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	h, known := f.hands[id]
	return known && (h.times > delivery || h.times == delivery && !h.running)
}
