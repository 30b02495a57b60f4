package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/pipeline/budget"
	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/schemas"
)

// Executor executes jobs of a batch in this process.
type Executor struct {
	// Job returns the job of a lease. ok is false if it is not selected.
	Job func(*engine.Lease) (job schemas.Job, ok bool, err error)
	// Shared says that other processes execute jobs of the run as well, and that one of them
	// coordinates it.
	Shared bool
	// Budget is nil if no other process spends from the budget of the run.
	Budget *budget.Client
	// Patience is how much longer than usual the settling of a job may take.
	Patience time.Duration

	batch     *Batch
	baselines env.Baselines // by task ID
	mu        sync.Mutex
	running   map[string]bool // episodes that this process executes
}

// NewExecutor returns an executor of the jobs of ToDo.
func NewExecutor(b *Batch) *Executor {
	return &Executor{batch: b, running: map[string]bool{}, Job: func(lease *engine.Lease) (schemas.Job, bool, error) {
		job, ok := b.ToDo[lease.ID]
		return job, ok, nil
	}}
}

// Run takes jobs on Config.Workers slots until claims ends. all is the context of the jobs.
func (x *Executor) Run(claims, all context.Context) {
	var slots sync.WaitGroup
	for n := range x.batch.Config.Workers {
		slots.Go(func() { x.takeJobs(claims, all, strconv.Itoa(n)) })
	}
	slots.Wait()
}

// Running returns the episodes that this process executes.
func (x *Executor) Running() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Sorted(maps.Keys(x.running))
}

func (x *Executor) setRunning(job schemas.Job, running bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if running {
		x.running[job.EpisodeID] = true
	} else {
		delete(x.running, job.EpisodeID)
	}
}

// takeJobs takes jobs until claims ends, one after another.
func (x *Executor) takeJobs(claims, all context.Context, slot string) {
	for {
		lease, err := x.batch.Engine.Next(claims, slot)
		if err != nil {
			if claims.Err() == nil {
				x.batch.Fail(err)
			}
			return
		}
		if err := x.execute(all, lease); err != nil {
			x.batch.Fail(err)
			return
		}
	}
}

// execute executes one job and settles its lease. An error is one of the engine.
func (x *Executor) execute(all context.Context, lease *engine.Lease) error {
	b := x.batch
	job, ok, err := x.Job(lease)
	if err != nil {
		return err
	}
	if !ok {
		return lease.Abandon(all, "plan", ClassNotSelected, "not among the selected tasks and attempts")
	}
	x.setRunning(job, true)
	defer x.setRunning(job, false)
	ctx, end := context.WithCancelCause(all)
	defer end(nil)
	defer context.AfterFunc(lease.Context(), func() { end(context.Cause(lease.Context())) })()
	b.Deps.Hooks.Reach(pointClaimed)
	b.Deps.Observer.JobStarted(job, lease.Delivery)
	run := &jobRun{batch: b, baselines: &x.baselines, lease: lease, job: job, task: b.plan.tasks[job.TaskID]}
	done, err := run.execute(ctx, func() (*recorder, error) { return x.openRecorder(ctx, job, lease.Delivery) })
	settle, cancel := context.WithTimeout(context.WithoutCancel(all), closeTimeout+x.Patience)
	defer cancel()
	if err == nil {
		if x.Budget != nil {
			x.Budget.Restore(job, lease.Delivery, done.Episode.Calls.Spent()) // another worker may have staged it
			x.Budget.CloseShare(settle, job, lease.Delivery)
		}
		return x.settleStaged(settle, lease, job, done)
	}
	return x.settleFailed(settle, ctx, lease, run, err)
}

// openRecorder opens the step log of a job and reads it back.
func (x *Executor) openRecorder(ctx context.Context, job schemas.Job, delivery int) (*recorder, error) {
	log, entries, err := x.batch.Engine.OpenLog(ctx, job.EpisodeID)
	if err != nil {
		return nil, fmt.Errorf("opening the step log: %w", err)
	}
	rec := &recorder{batch: x.batch, budget: x.Budget, job: job, delivery: delivery, log: log, account: x.batch.Ledger.Account(job.EpisodeID, job.TaskID)}
	if x.Shared {
		if err := rec.restoreCalls(entries); err != nil {
			return nil, err
		}
	}
	return rec, rec.read(entries)
}

// settleStaged settles a job that is staged.
func (x *Executor) settleStaged(ctx context.Context, lease *engine.Lease, job schemas.Job, done StagedEpisode) error {
	b := x.batch
	if err := lease.Done(ctx, done.hash); err != nil && !errors.Is(err, engine.ErrLeaseLost) {
		return err
	} else if err != nil {
		// Another worker has the job. It finds the object and settles the job.
		b.Deps.Log.Warn("lease lost after staging", "episode", job.EpisodeID)
	} else {
		b.Deps.Hooks.Reach(pointDone)
		if err := x.cleanUp(ctx, lease); err != nil {
			return err
		}
		b.Deps.Hooks.Reach(pointAcked)
	}
	b.JobStaged(job, done)
	return nil
}

// cleanUp removes what is left of a job that is done. If another process coordinates the run, it
// may have ended the run by now, and repairs what this one leaves.
func (x *Executor) cleanUp(ctx context.Context, lease *engine.Lease) error {
	if !x.Shared {
		return errors.Join(lease.Ack(ctx), x.batch.Engine.PurgeLog(ctx, lease.ID))
	}
	brief, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if err := errors.Join(lease.Ack(brief), x.batch.Engine.PurgeLog(brief, lease.ID)); err != nil {
		x.batch.Deps.Log.Warn("cleaning up after a job", "episode", lease.ID, "error", err)
	}
	return nil
}

// settleFailed settles a job that did not end: it returns the job unchanged if the run stops, and
// otherwise counts a failure, after which the engine hands the job out again or gives it up.
func (x *Executor) settleFailed(settle, ctx context.Context, lease *engine.Lease, run *jobRun, err error) error {
	b, job := x.batch, run.job
	if errors.Is(err, engine.ErrLeaseLost) || errors.Is(context.Cause(ctx), engine.ErrLeaseLost) {
		b.Deps.Observer.JobRetried(job, engine.ErrLeaseLost)
		return ignoreLost(lease.Release(settle))
	}
	f := asFatal(err, b.Ledger.Answered())
	if run.rec != nil {
		if err := run.rec.flush(); err != nil && !errors.Is(err, engine.ErrLeaseLost) && f == nil {
			f = asFatal(WithExitCode(err), true)
		}
	}
	if f != nil {
		b.Fail(f)
	}
	if x.Budget != nil {
		x.Budget.CloseShare(settle, job, lease.Delivery)
	}
	if f != nil || ctx.Err() != nil {
		b.JobUnstaged(job, schemas.OutcomeCancelled, schemas.ExitCancelled, "")
		return ignoreLost(lease.Release(settle))
	}
	if _, ok := errors.AsType[*TaskError](err); ok {
		if failing := ignoreLost(lease.Abandon(settle, stageOf(err), classOf(err), err.Error())); failing != nil {
			return failing
		}
		b.JobUnstaged(job, schemas.OutcomeInfra, classOf(err), err.Error())
		return nil
	}
	delay := b.Config.RetryDelay << min(lease.Delivery-1, 5)
	delay += rand.N(delay/2 + 1)
	state, failing := lease.Fail(settle, stageOf(err), classOf(err), err.Error(), delay)
	switch {
	case errors.Is(failing, engine.ErrLeaseLost):
	case failing != nil:
		return failing
	case state.State == engine.Dead:
		b.JobUnstaged(job, schemas.OutcomeInfra, classOf(err), err.Error())
	default:
		b.JobRetried(job, err.Error())
	}
	return nil
}
