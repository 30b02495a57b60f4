package pipeline

import (
	"context"
	"errors"
	"sync"

	"github.com/tracesmith/tracesmith/pipeline/budget"
	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/pipeline/rundir"
)

// Run runs or resumes a batch in this process. If the run directory could be opened, the report
// is complete even if Run returns an error. The error has the methods ExitCode and Hint.
// Canceling ctx cancels running episodes, which can be resumed.
func Run(ctx context.Context, cfg Config, deps Deps) (observe.Report, error) {
	b, err := Open(ctx, cfg, deps, budget.Limits{Run: cfg.MaxCost, Task: cfg.TaskCost, Episode: cfg.EpisodeCost})
	if err != nil {
		return observe.Report{}, err
	}
	return b.Finish(b.run(ctx))
}

// run executes the jobs that are not staged yet.
func (b *Batch) run(ctx context.Context) error {
	if err := b.RemoveTorn(ctx); err != nil {
		return err
	}
	if err := b.Reuse(ctx); err != nil {
		return err
	}
	b.status = rundir.NewStatusFile(b.dir, rundir.Begin{
		Selected: b.Selected(), Reused: len(b.episodes), Staged: b.staged, Slots: b.Config.Workers, Outcomes: b.Outcomes(),
		CallTimeout: b.Config.CallTimeout, Activities: b.Activities, Spent: b.Spent,
	}, b.Deps.Observer, b.Deps.Log)
	b.Deps.Observer = b.status
	if len(b.ToDo) > 0 {
		if err := b.ProbeStaging(ctx); err != nil {
			return err
		}
		if err := b.Preflight(ctx); err != nil {
			return err
		}
	}
	b.AnnounceStart(b.Config.Workers)
	if len(b.ToDo) == 0 {
		return nil
	}
	return b.work(ctx)
}

// Spent returns the price of all answered model calls of the run, in USD.
func (b *Batch) Spent() float64 {
	calls, _ := b.Ledger.Totals()
	return calls.CostUSD
}

// work executes jobs until all have ended, ctx ends, or an error stops the run.
func (b *Batch) work(ctx context.Context) (err error) {
	jobs, cancelJobs := context.WithCancelCause(ctx)
	defer cancelJobs(nil)
	claims, cancelClaims := context.WithCancelCause(jobs)
	defer cancelClaims(nil)
	b.Stop, b.Drain = cancelJobs, cancelClaims
	defer b.showStop(claims, false)()
	defer b.showStop(jobs, true)()

	// Failed jobs that wait for their next try also count as in flight. With a limit of only a few
	// workers, they would keep the workers idle.
	inFlight := max(b.Config.Workers, 16)
	if b.Engine, err = engine.Open(ctx, engine.Options{
		RunID: b.RunID, Lock: b.dir.Lock, Unsynced: b.Config.Unsynced, Concurrency: inFlight,
		AckWait: b.Config.Lease, MinFree: b.Config.MinFree, Log: b.Deps.Log,
	}); err != nil {
		return WithExitCode(err)
	}
	defer func() { err = errors.Join(err, b.Engine.Close()) }()
	if err := b.AddEarlierCalls(ctx); err != nil {
		return WithExitCode(err)
	}
	if err := b.Enqueue(ctx); err != nil {
		return WithExitCode(err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		defer cancelClaims(nil)
		if err := b.watch(claims); err != nil && claims.Err() == nil {
			b.Fail(err)
		}
	})
	wg.Go(func() {
		select {
		case <-b.Deps.Drain:
			cancelClaims(ErrDrained)
		case <-claims.Done():
		}
	})
	NewExecutor(b).Run(claims, jobs)
	cancelClaims(nil)
	wg.Wait()
	if err := b.CollectDead(context.WithoutCancel(ctx)); err != nil {
		return WithExitCode(err)
	}
	unfinished, _ := b.Unfinished()
	switch fatal := b.Fatal(); {
	case fatal != nil:
		return fatal
	case ctx.Err() != nil:
		return Interrupted(ctx)
	case errors.Is(context.Cause(claims), ErrDrained) && unfinished > 0:
		return ErrDrained
	}
	return nil
}

// ShowStop lets observers know that no new jobs start or, if canceled is true, that the running ones
// are canceled.
func (b *Batch) ShowStop(canceled bool) {
	failure := ""
	if err := b.Fatal(); err != nil {
		failure = b.Config.Clean(err.Error())
	}
	b.Activities.Stop(canceled, failure)
}

// showStop calls ShowStop when ctx ends for a reason other than the end of the run. The caller must
// call done at the end.
func (b *Batch) showStop(ctx context.Context, canceled bool) (done func() bool) {
	return context.AfterFunc(ctx, func() {
		if context.Cause(ctx) != context.Canceled {
			b.ShowStop(canceled)
		}
	})
}

// watch returns when every job in ToDo has ended, or ctx ends.
func (b *Batch) watch(ctx context.Context) error {
	ended := map[string]bool{}
	return b.Engine.Watch(ctx, func(e engine.Entry) bool {
		if _, ok := b.ToDo[e.ID]; ok {
			if e.Terminal() {
				ended[e.ID] = true
			} else {
				delete(ended, e.ID)
			}
		}
		return len(ended) < len(b.ToDo)
	})
}
