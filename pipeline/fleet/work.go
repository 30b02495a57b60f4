package fleet

import (
	"context"
	"sync"

	"github.com/tracesmith/tracesmith/pipeline"
	"github.com/tracesmith/tracesmith/pipeline/budget"
	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/pipeline/observe"
)

// Work executes up to cfg.Workers jobs of run cfg.RunID at a time until the run is over or
// drained. If deps.Drain is closed, Work finishes the running jobs and returns. If ctx ends, Work
// returns its jobs to the queue. self describes the worker, and self.ID identifies the process.
func Work(ctx context.Context, cfg Config, deps pipeline.Deps, self engine.WorkerEntry) error {
	cfg = cfg.withDefaults()
	b, err := pipeline.Join(ctx, cfg.Config, deps, cfg.limits())
	if err != nil {
		return err
	}
	if err := checkMarker(ctx, b); err != nil {
		return err
	}
	b.AnnounceJoin()
	defer b.Deps.Observer.RunFinished(observe.Report{})
	if err := b.Preflight(ctx); err != nil {
		return err
	}
	w := newWorker(cfg, b)
	jobs, cancelJobs := context.WithCancelCause(ctx)
	defer cancelJobs(nil)
	claims, cancelClaims := context.WithCancelCause(jobs)
	defer cancelClaims(nil)
	b.Stop, b.Drain = cancelJobs, cancelClaims
	if joined, err := w.join(ctx, self.ID); !joined {
		return err
	}
	exhausted := w.execute(ctx, claims, jobs, self)
	err = b.Engine.Close()
	switch fatal := b.Fatal(); {
	case fatal != nil && !exhausted:
		return fatal
	case ctx.Err() != nil:
		return pipeline.Interrupted(ctx)
	}
	return err
}

// execute claims and executes jobs until claims ends. jobs is the context of the running jobs, and
// ctx that of the whole worker. exhausted reports whether the shared budget is used up, which ends
// the run but is not a failure of this worker.
func (w *worker) execute(ctx, claims, jobs context.Context, self engine.WorkerEntry) (exhausted bool) {
	b := w.batch
	var background sync.WaitGroup
	memberCtx, endMembership := context.WithCancel(context.WithoutCancel(ctx))
	m := newMembership(w, self)
	background.Go(func() {
		select {
		case <-b.Deps.Drain:
			b.Drain(pipeline.ErrDrained)
		case <-claims.Done():
		}
	})
	// waitForPlan also enters the worker in the registry. This must precede the first claim, because
	// a coordinator that drains waits only for the workers that it finds there.
	if m.waitForPlan(memberCtx, claims) {
		background.Go(func() { m.pollLoop(memberCtx, claims) })
	} else {
		m.end()
	}
	w.executor.Run(claims, jobs)
	b.Drain(nil)
	if w.executor.Budget != nil {
		w.executor.Budget.Close()
	}
	if exhausted = budget.Exhausted(b.Fatal()); exhausted {
		// Stay in the registry until the run ends or a new coordinator, which may have a larger
		// budget, takes over.
		select {
		case <-m.over:
		case <-ctx.Done():
		case <-b.Deps.Drain:
		}
	}
	endMembership()
	background.Wait()
	m.leave(ctx)
	return exhausted
}
