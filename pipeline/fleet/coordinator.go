package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/tracesmith/tracesmith/pipeline"
	"github.com/tracesmith/tracesmith/pipeline/budget"
	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// stopPatience is how long a canceled run waits for its workers to return their jobs.
const stopPatience = 15 * time.Second

// joinTime is how long waiting workers need at most to join a run.
const joinTime = 10 * time.Second

// coordinator coordinates one invocation of a run.
type coordinator struct {
	cfg       Config
	batch     *pipeline.Batch
	lease     *engine.CoordinatorLease
	jobs      *tracker
	budget    *budget.Coordinator // nil if the run has no shared budget
	exhausted chan struct{}       // closed when the shared budget is used up
}

// Coordinate runs or resumes a batch whose jobs workers on the cluster execute. If the run
// directory could be opened, the report is complete even if Coordinate returns an error. The
// error has the methods ExitCode and Hint. If ctx is canceled, the workers return their jobs to
// the queue, and the run can be resumed.
func Coordinate(ctx context.Context, cfg Config, deps pipeline.Deps) (observe.Report, error) {
	cfg = cfg.withDefaults()
	b, err := pipeline.Open(ctx, cfg.Config, deps, cfg.limits())
	if err != nil {
		return observe.Report{}, err
	}
	c := &coordinator{cfg: cfg, batch: b, jobs: newTracker(cfg.Conn, b), exhausted: make(chan struct{})}
	return b.Finish(c.prepare(ctx))
}

// prepare finds the jobs that are not staged yet, and runs them.
func (c *coordinator) prepare(ctx context.Context) error {
	b := c.batch
	if err := b.Reuse(ctx); err != nil {
		return err
	}
	if len(b.ToDo) > 0 {
		if err := b.ProbeStaging(ctx); err != nil {
			return err
		}
	}
	b.AnnounceStart(0)
	err := c.run(ctx)
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return pipeline.Interrupted(ctx)
	}
	return err
}

// run lets workers execute the jobs until all have ended, ctx ends or the run is drained.
func (c *coordinator) run(ctx context.Context) (err error) {
	b, conn := c.batch, c.cfg.Conn
	owner, _ := os.Hostname()
	owner += ":" + b.Config.RunDir
	if c.lease, err = conn.LeaseRun(ctx, engine.RunEntry{
		RunID: b.RunID, Owner: owner, Dir: b.Config.RunDir, Key: b.Key(), Version: b.Config.Normalise.Producer, Lease: b.Config.Lease,
	}); err != nil {
		return pipeline.WithExitCode(err)
	}
	defer c.lease.Release()
	if b.Config.Fresh {
		if err := conn.Sweep(ctx, b.RunID); err != nil {
			return pipeline.WithExitCode(err)
		}
	}
	if len(b.ToDo) == 0 {
		return pipeline.WithExitCode(c.complete(ctx))
	}
	runCtx, cancelRun := context.WithCancelCause(ctx)
	defer cancelRun(nil)
	defer context.AfterFunc(c.lease.Context(), func() { b.Fail(context.Cause(c.lease.Context())) })()
	b.Stop, b.Drain = cancelRun, cancelRun
	if b.Engine, err = engine.Open(ctx, engine.Options{
		RunID: b.RunID, Conn: conn, Concurrency: c.cfg.InFlight, AckWait: b.Config.Lease, Log: b.Deps.Log,
	}); err != nil {
		return pipeline.WithExitCode(err)
	}
	defer func() { err = errors.Join(err, b.Engine.Close()) }()
	err = c.begin(ctx)
	if err == nil { // workers start while jobs are still being queued; if ctx ends meanwhile, supervise stops the workers
		if err = b.Enqueue(ctx); ctx.Err() != nil {
			err = nil
		}
	}
	if err != nil {
		return pipeline.WithExitCode(errors.Join(err, c.lease.SetPhase(context.WithoutCancel(ctx), engine.Stopped, nil)))
	}
	// Workers of an earlier coordinator may have ended the last jobs, so that none is left to watch.
	drained := len(b.ToDo) > 0 && c.supervise(runCtx)
	if err := c.jobs.reads.Wait(); err != nil && runCtx.Err() == nil {
		b.Fail(err)
	}
	return c.end(ctx, drained)
}

// end collects the results and sets the last phase of this invocation.
func (c *coordinator) end(ctx context.Context, drained bool) error {
	b, last := c.batch, context.WithoutCancel(ctx)
	if err := errors.Join(b.CollectDead(last), b.RestoreCalls(last)); err != nil {
		return pipeline.WithExitCode(err)
	}
	fatal := b.Fatal()
	unfinished, dead := b.Unfinished()
	if unfinished == 0 && dead == 0 {
		return pipeline.WithExitCode(c.complete(last))
	}
	err := c.lease.SetPhase(last, engine.Stopped, nil)
	switch {
	case fatal != nil:
		return fatal
	case ctx.Err() != nil:
		return pipeline.Interrupted(ctx)
	case drained && unfinished > 0:
		return pipeline.ErrDrained
	}
	return pipeline.WithExitCode(err)
}

// complete marks a run as completed, if all its jobs are done. It removes the run's data from the
// cluster, and incomplete objects that killed workers left in staging.
func (c *coordinator) complete(ctx context.Context) error {
	b := c.batch
	details := RunDetails{Selected: b.Selected(), Reused: b.Reused(), Attempts: b.Config.Attempts, Staging: b.Deps.Staging.URI(), Outcomes: b.Outcomes(), CostUSD: b.Spent()}
	if limits := c.cfg.sharedLimits(); limits.Run > 0 || limits.Task > 0 {
		calls, _ := b.Ledger.Totals()
		details.Budget = &observe.Budget{LimitUSD: limits.Run, SpentUSD: calls.Spent()}
	}
	body, err := details.encode()
	if err != nil {
		return err
	}
	if err := c.lease.SetPhase(ctx, engine.Completed, body); err != nil {
		return err
	}
	return errors.Join(b.RemoveTorn(ctx), c.cfg.Conn.Sweep(ctx, b.RunID))
}

// begin opens the run to workers. Before that, it reuses the episodes that workers of an earlier
// coordinator have staged since this one made its plan.
func (c *coordinator) begin(ctx context.Context) error {
	b := c.batch
	if err := writeMarker(ctx, b); err != nil {
		return err
	}
	if err := b.Engine.PutBody(ctx, c.cfg.specName(), c.cfg.RunSpec); err != nil {
		return err
	}
	entries, err := b.Engine.Entries(ctx)
	if err != nil {
		return err
	}
	ignored, err := c.reuseDone(ctx, entries)
	if err != nil {
		return err
	}
	details := RunDetails{
		Selected: b.Selected(), Reused: b.Reused(), Since: c.jobs.since, Attempts: b.Config.Attempts, RunSpec: c.cfg.specName(), Staging: b.Deps.Staging.URI(),
		Ignored: ignored, Outcomes: b.Outcomes(), CostUSD: b.Spent(), CallTimeout: b.Config.CallTimeout,
	}
	if err := b.AddEarlierCalls(ctx); err != nil {
		return err
	}
	if c.budget, err = budget.Open(ctx, b.Engine, budget.Setup{
		Limits: c.cfg.sharedLimits(), Ledger: b.Ledger, Jobs: entries, Staged: b.Has, Confirm: c.confirmBudget,
	}); err != nil {
		return err
	}
	details.Budgeted = c.budget != nil
	body, err := details.encode()
	if err != nil {
		return err
	}
	return c.lease.SetPhase(ctx, engine.Working, body)
}

// reuseDone reuses the episodes of jobs that are done by now. ignored is for RunDetails.Ignored.
func (c *coordinator) reuseDone(ctx context.Context, entries []engine.Entry) (ignored []string, err error) {
	b := c.batch
	for _, e := range entries {
		c.jobs.since = max(c.jobs.since, e.Revision)
		job, ok := b.ToDo[e.ID]
		var other schemas.Job
		if !ok && json.Unmarshal(e.Data, &other) == nil { // the calls in its step log count for its task
			b.Ledger.Account(e.ID, other.TaskID)
		}
		if e.State != engine.Done {
			if !ok && (e.State == engine.Running || b.Has(e.ID)) {
				ignored = append(ignored, e.ID)
			}
			continue
		}
		if !ok {
			continue
		}
		staged, err := b.Fetch(ctx, job)
		if errors.Is(err, sinks.ErrNotFound) {
			continue // the user deleted the object: the job runs again
		}
		if err != nil {
			return nil, err
		}
		b.SetReused(job, staged.Episode)
	}
	return ignored, nil
}

// supervise watches the jobs until all have ended, ctx is canceled, or the run has to drain or
// stop. drained is true if the run took no further jobs and the running ones have ended.
func (c *coordinator) supervise(ctx context.Context) (drained bool) {
	b := c.batch
	watching, done := context.WithCancel(context.WithoutCancel(ctx))
	defer done()
	var watch sync.WaitGroup
	defer watch.Wait()
	defer done()
	ended := make(chan struct{})
	watch.Go(func() {
		defer close(ended)
		if err := b.Engine.Watch(watching, c.jobs.update); err != nil && watching.Err() == nil {
			b.Fail(pipeline.WithExitCode(err))
		}
	})
	watch.Go(func() { c.followWorkers(watching) })
	if c.budget != nil {
		watch.Go(func() { c.checkBudget(watching) })
	}
	select {
	case <-ended:
		return false
	case <-b.Deps.Drain:
		drained = true
	case <-c.exhausted: // running calls end and are recorded, because they are paid for
		drained = true
	case <-ctx.Done():
	}
	if drained {
		c.setPhase(ctx, engine.Draining)
		c.jobs.wait(ctx, ended, 0)
		if ctx.Err() == nil {
			return true
		}
	}
	c.setPhase(ctx, engine.Stopping)
	c.jobs.wait(context.WithoutCancel(ctx), ended, stopPatience)
	return false
}

func (c *coordinator) setPhase(ctx context.Context, p engine.Phase) {
	c.batch.ShowStop(p == engine.Stopping)
	if err := c.lease.SetPhase(context.WithoutCancel(ctx), p, nil); err != nil {
		c.batch.Deps.Log.Warn("setting the phase of the run", "phase", p, "error", err)
	}
}

// followWorkers shows what the workers do until ctx ends.
func (c *coordinator) followWorkers(ctx context.Context) {
	b, begun := c.batch, time.Now()
	tick := time.NewTicker(c.cfg.Poll)
	defer tick.Stop()
	for {
		workers, err := c.cfg.Conn.Workers(ctx)
		if err != nil && ctx.Err() == nil {
			b.Deps.Log.Warn("listing workers", "error", err)
		}
		joined := err != nil || time.Since(begun) < joinTime
		for _, w := range workers {
			if w.RunID != b.RunID || !w.Alive(time.Now()) {
				continue
			}
			joined = true
			a, err := activityOf(w)
			if err != nil {
				b.Deps.Log.Warn("following a worker", "error", err)
			}
			for _, r := range a.Running {
				b.Activities.Replace(r)
			}
		}
		b.Activities.SetIdle(!joined)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// confirmBudget is called when a run that had no budget gets one. It returns an error if a worker
// may still execute jobs of the run without knowing about the budget.
func (c *coordinator) confirmBudget(ctx context.Context) error {
	workers, err := c.cfg.Conn.Workers(ctx)
	if err != nil {
		return err
	}
	wait := c.batch.Config.Lease + workerTimeout
	for _, w := range workers {
		if w.RunID == c.batch.RunID && w.Alive(w.Seen) && time.Since(w.Seen) < wait {
			return &pipeline.StopError{
				Code:   2,
				Err:    fmt.Errorf("worker %s may still work on run %s, which was started without limits.total_cost and limits.task_cost: what it spends would not be counted", w.Name, w.RunID),
				Remedy: fmt.Sprintf("end that worker, or start the run without these limits and interrupt it; after %s of silence a worker counts as gone", wait),
			}
		}
	}
	return nil
}

// checkBudget checks the shared budget until ctx ends, and ends the run when it is used up.
func (c *coordinator) checkBudget(ctx context.Context) {
	tick := time.NewTicker(c.cfg.Poll / 2)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		reason, err := c.budget.Check(ctx, c.jobs.deliveryEnded)
		if err != nil && ctx.Err() == nil {
			c.batch.Deps.Log.Warn("checking the budget", "error", err)
		}
		if reason != "" {
			c.batch.SetFatal(&budget.ExhaustedError{Why: reason})
			close(c.exhausted)
			return
		}
	}
}
