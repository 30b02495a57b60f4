package pipeline

import (
	"context"
	"encoding/json"
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
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/schemas"
)

// Executor executes jobs of a batch in this process.
type Executor struct {
	// Job returns the job of a lease. ok is false if the job is not selected. With ErrOutdated, the
	// job returns to the queue.
	Job func(*engine.Lease) (job schemas.Job, ok bool, err error)
	// Shared is true if the run has a coordinator, and other processes may execute its jobs.
	Shared bool
	// Budget is nil if no other process shares the budget of the run.
	Budget *budget.Client
	// Patience is added to the time that settling a job may take.
	Patience time.Duration

	batch     *Batch
	baselines env.Baselines // by task ID
	functions functionCache
	mu        sync.Mutex
	running   map[string]bool // episodes that this process executes
}

// NewExecutor returns an executor for the jobs in b.ToDo.
func NewExecutor(b *Batch) *Executor {
	return &Executor{batch: b, running: map[string]bool{}, Job: func(lease *engine.Lease) (schemas.Job, bool, error) {
		job, ok := b.ToDo[lease.ID]
		return job, ok, nil
	}}
}

// Run takes and executes up to Config.Workers jobs at a time until claims ends. jobs is the
// context of the running jobs.
func (x *Executor) Run(claims, jobs context.Context) {
	var slots sync.WaitGroup
	for n := range x.batch.Config.Workers {
		slots.Go(func() { x.takeJobs(claims, jobs, strconv.Itoa(n)) })
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
func (x *Executor) takeJobs(claims, jobs context.Context, slot string) {
	for {
		lease, err := x.batch.Engine.Next(claims, slot)
		if err != nil {
			if claims.Err() == nil {
				x.batch.Fail(err)
			}
			return
		}
		if err := x.execute(jobs, lease); err != nil {
			x.batch.Fail(err)
			return
		}
	}
}

// execute executes one job and settles its lease. It returns only errors of the engine.
func (x *Executor) execute(jobs context.Context, lease *engine.Lease) error {
	b := x.batch
	job, ok, err := x.Job(lease)
	switch {
	case errors.Is(err, ErrOutdated):
		return ignoreLost(lease.Release(jobs))
	case err != nil:
		return err
	}
	if !ok {
		return lease.Abandon(jobs, "plan", ClassNotSelected, "not among the selected tasks and attempts")
	}
	x.setRunning(job, true)
	defer x.setRunning(job, false)
	ctx, cancelJob := context.WithCancelCause(jobs)
	defer cancelJob(nil)
	defer context.AfterFunc(lease.Context(), func() { cancelJob(context.Cause(lease.Context())) })()
	b.Deps.Hooks.Reach(pointClaimed)
	b.JobStarted(job, lease.Delivery, observe.InSandboxStart)
	defer b.Activities.Leave(job.EpisodeID)
	run := &jobRun{batch: b, baselines: &x.baselines, functions: &x.functions, lease: lease, job: job, task: b.plan.tasks[job.TaskID]}
	done, err := run.execute(ctx, func() (*recorder, error) { return x.openRecorder(ctx, job, lease.Delivery) })
	settleCtx, cancel := context.WithTimeout(context.WithoutCancel(jobs), closeTimeout+x.Patience)
	defer cancel()
	if err == nil {
		if x.Budget != nil {
			x.Budget.Restore(job, lease.Delivery, done.Episode.Calls.Spent()) // another worker may have staged it
			x.Budget.CloseShare(settleCtx, job, lease.Delivery)
		}
		return x.settleStaged(settleCtx, lease, job, done)
	}
	return x.settleFailed(settleCtx, ctx, lease, run, err)
}

// openRecorder opens the step log of a job and restores a recorder from it.
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
	rec.showCalls()
	return rec, rec.read(entries)
}

// settleStaged settles a job whose episode is staged.
func (x *Executor) settleStaged(ctx context.Context, lease *engine.Lease, job schemas.Job, done StagedEpisode) error {
	b := x.batch
	result, err := json.Marshal(Result{done.Episode.Outcome, done.Episode.Calls.CostUSD})
	if err != nil {
		return fmt.Errorf("encoding a result: %w", err)
	}
	if err := lease.Done(ctx, done.hash, result); err != nil && !errors.Is(err, engine.ErrLeaseLost) {
		return err
	} else if err != nil {
		// Another worker has the job. It will find the staged object and settle the job.
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

// cleanUp removes the message and the step log of a job that is done. If the run has a
// coordinator, errors are only logged: the coordinator may have ended the run already, and it
// repairs what this process leaves behind.
func (x *Executor) cleanUp(ctx context.Context, lease *engine.Lease) error {
	if !x.Shared {
		return errors.Join(lease.Ack(ctx), x.batch.Engine.PurgeLog(ctx, lease.ID))
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if err := errors.Join(lease.Ack(ctx), x.batch.Engine.PurgeLog(ctx, lease.ID)); err != nil {
		x.batch.Deps.Log.Warn("cleaning up after a job", "episode", lease.ID, "error", err)
	}
	return nil
}

// settleFailed settles a job that ended with err. If the run stops, it returns the job to the
// queue unchanged. Otherwise it counts a failure, and the engine hands the job out again or
// gives it up. ctx is the context of the job, which may be canceled.
func (x *Executor) settleFailed(settleCtx, ctx context.Context, lease *engine.Lease, run *jobRun, err error) error {
	b, job := x.batch, run.job
	if errors.Is(err, engine.ErrLeaseLost) || errors.Is(context.Cause(ctx), engine.ErrLeaseLost) {
		b.Activities.End(job.EpisodeID)
		b.Deps.Observer.JobRetried(job, engine.ErrLeaseLost)
		return ignoreLost(lease.Release(settleCtx))
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
		x.Budget.CloseShare(settleCtx, job, lease.Delivery)
	}
	if f != nil || ctx.Err() != nil {
		b.JobUnstaged(job, schemas.OutcomeCancelled, schemas.ExitCancelled, "")
		return ignoreLost(lease.Release(settleCtx))
	}
	message := b.Config.Clean(messageOf(err))
	b.Deps.Log.Warn("episode failed", "episode", job.EpisodeID, "task", job.Instance, "delivery", lease.Delivery, "stage", stageOf(err), "error", err)
	if _, ok := errors.AsType[*TaskError](err); ok {
		if settleErr := ignoreLost(lease.Abandon(settleCtx, stageOf(err), classOf(err), message)); settleErr != nil {
			return settleErr
		}
		b.JobUnstaged(job, schemas.OutcomeInfra, classOf(err), message)
		return nil
	}
	delay := b.Config.RetryDelay << min(lease.Delivery-1, 5)
	delay += rand.N(delay/2 + 1)
	state, settleErr := lease.Fail(settleCtx, stageOf(err), classOf(err), message, delay)
	switch {
	case errors.Is(settleErr, engine.ErrLeaseLost):
	case settleErr != nil:
		return settleErr
	case state.State == engine.Dead:
		b.JobUnstaged(job, schemas.OutcomeInfra, classOf(err), message)
	default:
		b.JobRetried(job, message, delay)
		if x.Shared { // any worker may execute it next
			b.Activities.End(job.EpisodeID)
		}
	}
	return nil
}
