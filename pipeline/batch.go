package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tracesmith/tracesmith/pipeline/budget"
	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/pipeline/rundir"
	"github.com/tracesmith/tracesmith/schemas"
)

// Result is the data that the record of a done job holds about its episode.
type Result struct {
	Outcome string  `json:"outcome"`
	CostUSD float64 `json:"cost_usd"` // price of its answered model calls
}

// StagedEpisode is the episode of a job after staging.
type StagedEpisode struct {
	Episode observe.Episode
	hash    string // of the staged object
}

// Batch is one invocation of a run: its plan, the jobs that still have to run, and their
// results. Run and package fleet set Engine, Stop and Drain before the first job starts.
type Batch struct {
	Config Config
	Deps   Deps
	RunID  string
	ToDo   map[string]schemas.Job // jobs without a staged episode, by episode ID
	Ledger *budget.Ledger
	Engine *engine.Engine
	Stop   func(reason error) // cancels the running jobs
	Drain  func(reason error) // stops taking new jobs
	// Activities is what the running jobs do.
	Activities *observe.Activities

	plan       plan
	dir        *rundir.Dir // nil on a worker, which executes jobs for a coordinator
	started    time.Time
	status     *rundir.StatusFile // nil if the run uses a cluster
	staged     int                // staged objects of the run when this invocation began
	unselected int                // those of jobs that are not in the plan

	mu       sync.Mutex
	episodes map[string]observe.Episode // results by ID, reused and new ones
	dead     map[string]engine.Entry    // jobs that the engine gave up, by episode ID
	friction observe.Friction
	fatal    fatal
}

// Open selects the tasks of a run and opens its run directory. limits are the cost limits that
// this process enforces. After Open succeeds, the caller must call Finish.
func Open(ctx context.Context, cfg Config, deps Deps, limits budget.Limits) (*Batch, error) {
	cfg, deps = cfg.withDefaults(), deps.withDefaults()
	if err := cfg.validate(deps); err != nil {
		return nil, err
	}
	if err := cfg.redactConfig(); err != nil {
		return nil, err
	}
	started := deps.Clock()
	p, err := selectTasks(ctx, cfg, deps.Source)
	if err != nil {
		return nil, err
	}
	if cfg.Fresh && cfg.Staging != "" {
		if err := rundir.RequireUnstaged(ctx, cfg.RunID, deps.Staging); err != nil {
			return nil, err
		}
	}
	dir, err := rundir.Open(rundir.Options{
		Path: cfg.RunDir, RunID: cfg.RunID, Fresh: cfg.Fresh, Staging: cfg.Staging, Identity: cfg.Identity, Plan: p.recorded(cfg.Attempts),
		Config: cfg.Resolved, Producer: cfg.Normalise.Producer, Now: started,
	})
	if err != nil {
		return nil, err
	}
	p.derive(dir.Info.RunID, cfg)
	b := newBatch(cfg, deps, dir.Info.RunID, p, limits)
	b.dir, b.started = dir, started
	log, err := dir.OpenLog(cfg.Clean)
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	b.Deps.Log = log
	b.Deps.Observer = observe.Logged{Observer: deps.Observer, Log: log}
	log.Info("opened the run directory", "producer", cfg.Normalise.Producer, "command", cfg.Command)
	return b, nil
}

// Join returns the batch of a worker, which executes jobs of a run that another process
// coordinates. The batch has no run directory and plans no jobs.
func Join(ctx context.Context, cfg Config, deps Deps, limits budget.Limits) (*Batch, error) {
	cfg, deps = cfg.withDefaults(), deps.withDefaults()
	if err := cfg.validate(deps); err != nil {
		return nil, err
	}
	p, err := selectTasks(ctx, cfg, deps.Source)
	if err != nil {
		return nil, err
	}
	return newBatch(cfg, deps, cfg.RunID, p, limits), nil
}

func newBatch(cfg Config, deps Deps, runID string, p plan, limits budget.Limits) *Batch {
	return &Batch{
		Config: cfg, Deps: deps, RunID: runID, ToDo: map[string]schemas.Job{}, Ledger: budget.NewLedger(limits), plan: p,
		Activities: observe.NewActivities(),
		episodes:   map[string]observe.Episode{}, dead: map[string]engine.Entry{},
	}
}

// Selected returns the number of jobs of the run.
func (b *Batch) Selected() int { return len(b.plan.jobs) }

// HasTask reports whether a task is selected.
func (b *Batch) HasTask(id string) bool {
	_, ok := b.plan.tasks[id]
	return ok
}

// Key returns the random key that identifies the run directory even if it is moved.
func (b *Batch) Key() string { return b.dir.Info.Key }

// AnnounceStart tells the observer that the run starts. workers is how many jobs this process
// executes at once; 0: other processes execute them.
func (b *Batch) AnnounceStart(workers int) {
	s := observe.Start{
		RunID: b.RunID, RunDir: b.Config.RunDir, Selected: b.Selected(), Reused: len(b.episodes), ToDo: len(b.ToDo), Workers: workers,
		Activities: b.Activities, CallTimeout: b.Config.CallTimeout,
	}
	if workers > 0 {
		s.CostLimit, s.Endpoints = b.Config.MaxCost, b.Deps.Endpoints
		s.Calls = func() schemas.Calls { calls, _ := b.Ledger.Totals(); return calls }
	}
	b.Deps.Observer.RunStarted(s)
}

// AnnounceJoin tells the observer that this process starts to execute jobs of a run that another
// process coordinates.
func (b *Batch) AnnounceJoin() {
	b.Deps.Observer.RunStarted(observe.Start{
		RunID: b.RunID, RunDir: b.Deps.Staging.URI(), Workers: b.Config.Workers, Activities: b.Activities, CallTimeout: b.Config.CallTimeout,
	})
}

// Preflight calls Deps.Preflight, which checks whether jobs can run at all. An error stops the
// run.
func (b *Batch) Preflight(ctx context.Context) error {
	err := b.Deps.Preflight(ctx)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return Interrupted(ctx)
	}
	return PreflightError(err)
}

// SetReused makes a staged episode the result of its job.
func (b *Batch) SetReused(job schemas.Job, e observe.Episode) {
	e.Reused = true
	b.mu.Lock()
	b.episodes[e.ID] = e
	b.mu.Unlock()
	b.Ledger.AddEarlier(b.Ledger.Account(e.ID, job.TaskID), e.Calls, false)
	delete(b.ToDo, e.ID)
}

// Has reports whether an episode has a result, reused or new.
func (b *Batch) Has(episode string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.episodes[episode]
	return ok
}

// Outcomes counts the episodes that have a result, by outcome.
func (b *Batch) Outcomes() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := map[string]int{}
	for _, e := range b.episodes {
		n[e.Outcome]++
	}
	return n
}

// Reused returns the number of reused episodes.
func (b *Batch) Reused() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.episodes {
		if e.Reused {
			n++
		}
	}
	return n
}

// Enqueue hands ToDo to the engine. Jobs that the engine gave up earlier return to the queue if
// Config.Retry is set, or if the only reason was that they were not selected then.
func (b *Batch) Enqueue(ctx context.Context) error {
	var jobs []engine.Job
	for _, j := range b.plan.jobs {
		if _, ok := b.ToDo[j.EpisodeID]; ok {
			data, err := json.Marshal(j)
			if err != nil {
				return fmt.Errorf("encoding a job: %w", err)
			}
			jobs = append(jobs, engine.Job{ID: j.EpisodeID, Data: data})
		}
	}
	if _, err := b.Engine.Enqueue(ctx, jobs); err != nil {
		return fmt.Errorf("queueing jobs: %w", err)
	}
	entries, err := b.Engine.Entries(ctx)
	if err != nil {
		return err
	}
	var revive []string
	stillDead := 0
	for _, e := range entries {
		if _, ok := b.ToDo[e.ID]; !ok {
			continue
		}
		// A job that is done but has no object was staged, and the user deleted the object: it
		// runs again.
		if e.State == engine.Dead && (len(b.Config.Retry) > 0 || e.Class == ClassNotSelected) || e.State == engine.Done {
			revive = append(revive, e.ID)
		} else if e.State == engine.Dead {
			stillDead++
		}
	}
	if b.status != nil {
		b.status.SetEarlier(stillDead)
	}
	_, err = b.Engine.Revive(ctx, revive)
	return err
}

// CollectDead reads from the engine which jobs of ToDo were given up, by this process or another.
func (b *Batch) CollectDead(ctx context.Context) error {
	entries, err := b.Engine.Entries(ctx)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range entries {
		if _, ok := b.ToDo[e.ID]; ok && e.State == engine.Dead {
			b.dead[e.ID] = e
		}
	}
	return nil
}

// Fail stops the run because of an error; only the first error counts. If the model server, the
// account or the budget is the cause, running calls may finish and are recorded, because they
// are paid for, but no further call starts. Any other error cancels the running jobs.
func (b *Batch) Fail(err error) {
	f := asFatal(err, b.Ledger.Answered())
	if f == nil {
		f = &StopError{Code: 1, Err: err, Remedy: resumes}
	}
	if !b.SetFatal(f) {
		return
	}
	b.Ledger.Close(f)
	switch f.ExitCode() {
	case 4, 5, 7:
		b.Drain(f)
	default:
		b.Stop(f)
	}
}

// SetFatal records the error with which the run fails, without stopping anything. It returns
// false if an error is already recorded, or if err has no exit code.
func (b *Batch) SetFatal(err error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	f, ok := errors.AsType[fatal](err)
	if !ok || b.fatal != nil {
		return false
	}
	b.fatal = f
	return true
}

// Fatal returns the error that SetFatal recorded, or nil.
func (b *Batch) Fatal() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fatal == nil {
		return nil
	}
	return b.fatal
}

// Unfinished returns how many jobs of ToDo have no result, and how many jobs CollectDead found.
func (b *Batch) Unfinished() (withoutResult, dead int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id := range b.ToDo {
		if _, ok := b.episodes[id]; !ok {
			withoutResult++
		}
	}
	return withoutResult, len(b.dead)
}

// finish records the result of a job.
func (b *Batch) finish(job schemas.Job, e observe.Episode) {
	b.mu.Lock()
	b.episodes[e.ID] = e
	b.mu.Unlock()
	b.Activities.End(job.EpisodeID)
	b.Deps.Observer.JobFinished(job, e)
}

// JobStaged records a job whose episode is staged.
func (b *Batch) JobStaged(job schemas.Job, s StagedEpisode) { b.finish(job, s.Episode) }

// JobUnstaged records the outcome of a job without a staged episode.
func (b *Batch) JobUnstaged(job schemas.Job, outcome, reason, cause string) {
	b.finish(job, observe.Episode{
		ID: job.EpisodeID, GroupID: job.GroupID, Instance: job.Instance, Attempt: job.Attempt,
		Outcome: outcome, ExitReason: reason, Cause: b.Config.Clean(cause),
	})
}

// JobStarted records that a job is being executed.
func (b *Batch) JobStarted(job schemas.Job, delivery int, doing observe.Doing) {
	b.Activities.Begin(job, b.Config.Limits.MaxSteps, doing)
	b.Deps.Observer.JobStarted(job, delivery)
}

// JobRetried records that a job failed and is tried again after a delay, which is 0 if it is not
// known.
func (b *Batch) JobRetried(job schemas.Job, cause string, delay time.Duration) {
	due := time.Time{}
	if delay > 0 {
		due = time.Now().Add(delay)
	}
	b.Activities.Retry(job, due)
	b.mu.Lock()
	b.friction.InfraRetries++
	b.mu.Unlock()
	b.Deps.Observer.JobRetried(job, errors.New(b.Config.Clean(cause)))
}
