package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/pipeline/budget"
	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/pipeline/rundir"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// classNotSelected marks jobs of an earlier, larger selection.
const classNotSelected = "not_selected"

// run is one invocation of Run.
type run struct {
	cfg    Config
	deps   Deps
	dir    *rundir.Dir // nil: a worker on a cluster has none
	runID  string
	plan   plan
	todo   map[string]schemas.Job // to be run now
	engine *engine.Engine
	stop   func(error) // ends everything, with the reason
	drain  func(error) // ends claiming

	budget   *budget.Client     // of a worker whose run has a shared budget
	status   *rundir.StatusFile // nil on a cluster
	before   int                // objects that were staged when the run began
	attempts atomic.Int64       // jobs of higher attempts are not selected

	mu        sync.Mutex
	episodes  map[string]observe.Episode // by id: reused ones and those that ended now
	dead      map[string]engine.Entry    // of this run, by episode
	ledger    *budget.Ledger
	inHand    map[string]bool // jobs that this process executes
	friction  observe.Friction
	fatal     fatal
	baselines env.Baselines // by task id
}

// Run runs or resumes a batch. The report is complete whenever the run
// directory could be opened, also beside an error; an error carries ExitCode
// and Hint. Cancelling ctx cancels running episodes, which stay resumable.
func Run(ctx context.Context, cfg Config, deps Deps) (observe.Report, error) {
	cfg, deps = cfg.withDefaults(), deps.withDefaults()
	if err := cfg.validate(deps); err != nil {
		return observe.Report{}, err
	}
	if err := cfg.keepNoSecrets(); err != nil {
		return observe.Report{}, err
	}
	started := deps.Clock()
	p, err := selectTasks(ctx, cfg, deps.Source)
	if err != nil {
		return observe.Report{}, err
	}
	if cfg.Fresh && cfg.Staging != "" {
		if err := rundir.RequireUnstaged(ctx, cfg.RunID, deps.Staging); err != nil {
			return observe.Report{}, err
		}
	}
	dir, err := rundir.Open(rundir.Options{
		Path: cfg.RunDir, RunID: cfg.RunID, Fresh: cfg.Fresh, Staging: cfg.Staging, Identity: cfg.Identity, Tasks: p.set,
		Config: cfg.Resolved, Producer: cfg.Normalise.Producer, Now: started,
	})
	if err != nil {
		return observe.Report{}, err
	}
	p.derive(dir.Info.RunID, cfg)
	r := newRun(cfg, deps, dir.Info.RunID, p)
	r.dir = dir
	if err = r.reuse(ctx); err == nil && deps.Cluster == nil {
		r.status = rundir.NewStatusFile(dir, rundir.Start{Selected: len(p.jobs), Reused: len(r.episodes), Staged: r.before, Slots: cfg.Workers}, deps.Observer, deps.Log)
		deps.Observer, r.deps.Observer = r.status, r.status
	}
	if err == nil && len(r.todo) > 0 {
		err = r.probeStaging(ctx)
	}
	if err == nil && len(r.todo) > 0 && deps.Cluster == nil { // workers have preflights of their own
		err = r.preflight(ctx)
	}
	if err == nil {
		deps.Observer.RunStarted(observe.Start{
			RunID: r.runID, RunDir: cfg.RunDir, Selected: len(p.jobs), Reused: len(r.episodes), ToDo: len(r.todo), Workers: cfg.Workers,
		})
		switch {
		case deps.Cluster != nil:
			if err = r.coordinate(ctx); errors.Is(err, context.Canceled) && ctx.Err() != nil {
				err = interrupted(ctx)
			}
		case len(r.todo) > 0:
			err = r.work(ctx, dir.Lock)
		}
	}
	rep := r.report(started, err)
	if r.status != nil {
		r.status.Close(rep.Verdict == observe.Complete, slices.Collect(maps.Keys(r.dead)))
	}
	err = errors.Join(err, r.leave(rep))
	deps.Observer.RunFinished(rep)
	return rep, errors.Join(err, dir.Close())
}

func newRun(cfg Config, deps Deps, runID string, p plan) *run {
	limits := budget.Limits{Episode: cfg.EpisodeCost}
	if deps.Cluster == nil {
		limits.Run, limits.Task = cfg.MaxCost, cfg.TaskCost
	}
	r := &run{
		cfg: cfg, deps: deps, runID: runID, plan: p, todo: map[string]schemas.Job{}, episodes: map[string]observe.Episode{}, dead: map[string]engine.Entry{},
		inHand: map[string]bool{}, ledger: budget.NewLedger(limits),
	}
	r.attempts.Store(int64(cfg.Attempts))
	return r
}

// preflight finds out whether jobs can run at all, before one is taken.
func (r *run) preflight(ctx context.Context) error {
	err := r.deps.Preflight(ctx)
	switch f := asFatal(err, false); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return interrupted(ctx)
	case f != nil:
		return f
	}
	return &StopError{Code: 7, Err: err}
}

// reuse finds what is staged already. The rest is to do.
func (r *run) reuse(ctx context.Context) error {
	if err := r.sweep(ctx); err != nil {
		return err
	}
	staged := map[string]int64{}
	for o, err := range r.deps.Staging.List(ctx, rundir.StagedPrefix(r.runID)) {
		if err != nil {
			return r.storeError(fmt.Errorf("listing staged episodes: %w", err))
		}
		staged[o.Key] = o.Size
	}
	r.before = len(staged)
	found, tasks := make([]*observe.Episode, len(r.plan.jobs)), map[string]string{}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for i, j := range r.plan.jobs {
		key := sinks.StagedKey(r.runID, j.EpisodeID)
		tasks[j.EpisodeID] = j.TaskID
		size, ok := staged[key]
		if !ok {
			r.todo[j.EpisodeID] = j
			continue
		}
		g.Go(func() error {
			body, err := r.deps.Staging.Get(gctx, key)
			if err != nil {
				return r.storeError(fmt.Errorf("reading a staged episode: %w", err))
			}
			s, err := sinks.DecodeStaged(body)
			if err != nil {
				return &StopError{Code: 2, Err: fmt.Errorf("%s/%s is damaged: %w", r.deps.Staging.URI(), key, err), Remedy: "delete it and start the same command again: its episode is made again"}
			}
			e := observe.FromStaged(s, size)
			e.Reused = true
			found[i] = &e
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, e := range found {
		if e != nil {
			r.episodes[e.ID] = *e
			r.ledger.AddEarlier(r.ledger.Account(e.ID, tasks[e.ID]), e.Calls, false)
		}
	}
	return nil
}

func (r *run) storeError(err error) error {
	if _, ok := errors.AsType[fatal](err); ok || errors.Is(err, context.Canceled) {
		return err
	}
	return &StopError{Code: 8, Err: err, Remedy: "check the staging store " + r.deps.Staging.URI() + "; " + resumes}
}

// work runs what is to do on the workers until every job has its end, the
// context ends, or something fatal happens.
func (r *run) work(ctx context.Context, lock *engine.Lock) (err error) {
	all, cancelAll := context.WithCancelCause(ctx)
	defer cancelAll(nil)
	claims, cancelClaims := context.WithCancelCause(all)
	defer cancelClaims(nil)
	r.stop, r.drain = cancelAll, cancelClaims

	if r.engine, err = engine.Open(ctx, engine.Options{
		RunID: r.runID, Lock: lock, Unsynced: r.cfg.Unsynced, Concurrency: max(r.cfg.Workers, 16), AckWait: r.cfg.Lease, MinFree: r.cfg.MinFree, Log: r.deps.Log,
	}); err != nil {
		return unanswered(err)
	}
	defer func() { err = errors.Join(err, r.engine.Close()) }()
	if err := r.reckon(ctx); err != nil {
		return unanswered(err)
	}
	if err := r.enqueue(ctx); err != nil {
		return unanswered(err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { // the jobs' ends, whoever brought them about
		defer cancelClaims(nil)
		if err := r.watch(claims); err != nil && claims.Err() == nil {
			r.fail(err)
		}
	})
	wg.Go(func() {
		select {
		case <-r.deps.Drain:
			cancelClaims(errDrained)
		case <-claims.Done():
		}
	})
	var workers sync.WaitGroup
	for n := range r.cfg.Workers {
		workers.Go(func() { r.worker(claims, all, strconv.Itoa(n)) })
	}
	workers.Wait()
	cancelClaims(nil)
	wg.Wait()
	if err := r.settle(context.WithoutCancel(ctx)); err != nil {
		return unanswered(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.fatal != nil:
		return r.fatal
	case ctx.Err() != nil:
		return interrupted(ctx)
	case errors.Is(context.Cause(claims), errDrained) && r.unended() > 0:
		return errDrained
	}
	return nil
}

func interrupted(ctx context.Context) error {
	return &StopError{Code: 130, Err: fmt.Errorf("interrupted: %w", context.Cause(ctx)), Remedy: resumes}
}

var errDrained = &StopError{Code: 130, Err: errors.New("stopped taking jobs as asked"), Remedy: resumes}

// unanswered gives engine errors that name no exit code the one for failures
// of ours.
func unanswered(err error) error {
	if _, ok := errors.AsType[fatal](err); ok || err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return &StopError{Code: 1, Err: err, Remedy: resumes}
}

// enqueue hands the jobs to the engine; those it gave up earlier come back if
// they are asked for, or were only not selected then.
func (r *run) enqueue(ctx context.Context) error {
	var jobs []engine.Job
	for _, j := range r.plan.jobs {
		if _, ok := r.todo[j.EpisodeID]; ok {
			data, err := json.Marshal(j)
			if err != nil {
				return fmt.Errorf("encoding a job: %w", err)
			}
			jobs = append(jobs, engine.Job{ID: j.EpisodeID, Data: data})
		}
	}
	if _, err := r.engine.Enqueue(ctx, jobs); err != nil {
		return fmt.Errorf("queueing jobs: %w", err)
	}
	entries, err := r.engine.Entries(ctx)
	if err != nil {
		return err
	}
	var back []string
	given := 0 // up, and not asked for again
	for _, e := range entries {
		if _, ok := r.todo[e.ID]; !ok {
			continue
		}
		// A job that is done without its object was staged and then deleted by
		// hand: there is nothing to say for not making it again.
		if e.State == engine.Dead && (len(r.cfg.Retry) > 0 || e.Class == classNotSelected) || e.State == engine.Done {
			back = append(back, e.ID)
		} else if e.State == engine.Dead {
			given++
		}
	}
	if r.status != nil {
		r.status.SetEarlier(given)
	}
	_, err = r.engine.Revive(ctx, back)
	return err
}

// watch returns when every job to do has ended.
func (r *run) watch(ctx context.Context) error {
	ended := map[string]bool{}
	return r.engine.Watch(ctx, func(e engine.Entry) bool {
		if _, ok := r.todo[e.ID]; ok {
			if e.Terminal() {
				ended[e.ID] = true
			} else {
				delete(ended, e.ID)
			}
		}
		return len(ended) < len(r.todo)
	})
}

// settle collects the jobs that died, however that happened.
func (r *run) settle(ctx context.Context) error {
	entries, err := r.engine.Entries(ctx)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range entries {
		if _, ok := r.todo[e.ID]; ok && e.State == engine.Dead {
			r.dead[e.ID] = e
		}
	}
	return nil
}

// fail stops the run for a reason; the first one counts. Where it lies with the
// model, no call is begun any more, but those under way end and are recorded:
// they are paid for.
func (r *run) fail(err error) {
	f := asFatal(err, r.ledger.Answered())
	if f == nil {
		f = &StopError{Code: 1, Err: err, Remedy: resumes}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fatal != nil {
		return
	}
	r.fatal = f
	r.ledger.Close(f)
	switch f.ExitCode() {
	case 4, 5, 7:
		r.drain(f)
	default:
		r.stop(f)
	}
}

// unended counts the jobs to do that have no end yet.
func (r *run) unended() (n int) {
	for id := range r.todo {
		if _, ended := r.episodes[id]; !ended {
			n++
		}
	}
	return n
}
