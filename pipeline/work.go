package pipeline

// A worker on a cluster: it executes jobs of a run that another process
// coordinates.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tracesmith/tracesmith/pipeline/budget"
	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// Work executes jobs of cfg.RunID on cfg.Workers slots until the run is over or
// drained, Deps.Drain is closed (running jobs finish), or ctx ends (they are
// given back). w says who works; its ID names the process. Deps.Observer is told
// of jobs only.
func Work(ctx context.Context, cfg Config, deps Deps, w engine.WorkerEntry) error {
	cfg, deps = cfg.withDefaults(), deps.withDefaults()
	if err := cfg.validate(deps); err != nil {
		return err
	}
	p, err := selectTasks(ctx, cfg, deps.Source)
	if err != nil {
		return err
	}
	r := newRun(cfg, deps, cfg.RunID, p)
	if err := r.checkMark(ctx); err != nil {
		return err
	}
	if err := r.preflight(ctx); err != nil {
		return err
	}
	all, cancelAll := context.WithCancelCause(ctx)
	defer cancelAll(nil)
	claims, cancelClaims := context.WithCancelCause(all)
	defer cancelClaims(nil)
	r.stop, r.drain = cancelAll, cancelClaims
	if joined, err := r.join(ctx, w.ID); !joined {
		return err
	}
	var attending sync.WaitGroup
	attend, leave := context.WithCancel(context.WithoutCancel(ctx))
	a := &attendance{r: r, w: w, moved: time.Now(), over: make(chan struct{})}
	attending.Go(func() {
		select {
		case <-deps.Drain:
			cancelClaims(errDrained)
		case <-claims.Done():
		}
	})
	if a.enter(attend, claims) { // before the first claim: a coordinator that drains waits for whom it sees
		attending.Go(func() { a.keep(attend, claims) })
	} else {
		a.end()
	}
	var slots sync.WaitGroup
	for n := range cfg.Workers {
		slots.Go(func() { r.worker(claims, all, strconv.Itoa(n)) })
	}
	slots.Wait()
	cancelClaims(nil)
	if r.budget != nil {
		r.budget.Close()
	}
	r.mu.Lock()
	poor := r.fatal != nil && budget.Exhausted(r.fatal)
	r.mu.Unlock()
	if poor { // which ends the run, and is no fault of this worker
		select {
		case <-a.over:
		case <-ctx.Done():
		case <-deps.Drain:
		}
	}
	leave()
	attending.Wait()
	a.leave(ctx)
	err = r.engine.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.fatal != nil && !poor:
		return r.fatal
	case ctx.Err() != nil:
		return interrupted(ctx)
	}
	return err
}

// join opens the streams and the budget of the run. joined is false without an error if
// the run has completed since the worker saw it on the board.
func (r *run) join(ctx context.Context, worker string) (joined bool, err error) {
	conn := r.deps.Cluster
	r.engine, err = engine.Open(ctx, engine.Options{
		RunID: r.cfg.RunID, Conn: conn, Join: true, Instance: worker, AckWait: r.cfg.Lease, Log: r.deps.Log,
	})
	if err == nil {
		if err = r.joinBudget(ctx); err == nil {
			return true, nil
		}
		defer func() { err = errors.Join(err, r.engine.Close()) }()
	}
	if conn.Completed(ctx, r.cfg.RunID) {
		return false, nil
	}
	return false, unanswered(err)
}

// joinBudget opens the shared budget of the run, if it has one.
func (r *run) joinBudget(ctx context.Context) error {
	entry, _, err := r.deps.Cluster.Run(ctx, r.cfg.RunID)
	if err != nil {
		return err
	}
	var info FleetInfo
	if len(entry.Info) > 0 {
		if err := json.Unmarshal(entry.Info, &info); err != nil {
			return fmt.Errorf("reading the board: run %s: %w", r.cfg.RunID, err)
		}
	}
	if !info.Budgeted && r.cfg.MaxCost == 0 && r.cfg.TaskCost == 0 {
		return nil
	}
	store, err := r.engine.JoinBudget(ctx)
	if err == nil {
		r.budget = budget.NewClient(ctx, store, engine.Instance(), r.cfg.LookEvery/4, r.deps.Log)
	}
	return err
}

// checkMark makes sure that the worker stages where the coordinator does.
func (r *run) checkMark(ctx context.Context) error {
	cfg, deps := r.cfg, r.deps
	var body []byte
	err := r.patiently(ctx, func() (err error) {
		body, err = deps.Staging.Get(ctx, markKey(cfg.RunID))
		return err
	})
	if err == nil && strings.TrimSpace(string(body)) == cfg.RunID {
		return nil
	}
	if err != nil && !errors.Is(err, sinks.ErrNotFound) {
		return &StopError{Code: 8, Err: fmt.Errorf("opening the staging store %s: %w", deps.Staging.URI(), err), Remedy: "check its credentials and address on this machine"}
	}
	host, _ := os.Hostname()
	return &StopError{
		Code: 2, Err: fmt.Errorf("run %s stages in %s, which is another place on this machine (%s): its mark is not there", cfg.RunID, deps.Staging.URI(), host),
		Remedy: "workers on other machines need a bucket (run.staging: s3://BUCKET/PREFIX in the run's configuration) or a directory that is mounted under the same path on all of them",
	}
}

// attendance tells the board of this worker and follows the run's phase.
type attendance struct {
	r     *run
	w     engine.WorkerEntry
	last  uint64 // revision of the run's entry
	moved time.Time
	begun time.Time     // when its coordinator came
	plans bool          // it has not told yet what holds under it
	over  chan struct{} // closed when the run takes no jobs any more, or cannot be followed; or when it has another coordinator
	once  sync.Once
}

// enter looks until the coordinator has told what holds under it: it may have come since
// this worker read whether the run has a budget, and has not seen this worker. False when
// there is nothing to look for.
func (a *attendance) enter(ctx, claims context.Context) bool {
	tick := time.NewTicker(a.r.cfg.LookEvery)
	defer tick.Stop()
	for a.look(ctx, claims) {
		if !a.plans {
			return true
		}
		select {
		case <-claims.Done():
			return true
		case <-tick.C:
		}
	}
	return false
}

// keep looks until ctx ends or the run can't be followed any more.
func (a *attendance) keep(ctx, claims context.Context) {
	defer a.end()
	tick := time.NewTicker(a.r.cfg.LookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !a.look(ctx, claims) {
			return
		}
	}
}

// look tells and asks once; false when there is nothing more to look for.
func (a *attendance) look(ctx, claims context.Context) bool {
	r, conn := a.r, a.r.deps.Cluster
	a.w.State = "working"
	if claims.Err() != nil {
		a.w.State = "draining"
	}
	a.w.RunID, a.w.Slots, a.w.Running, a.w.Load = r.cfg.RunID, r.cfg.Workers, r.hands(), load()
	err := conn.Tell(ctx, a.w)
	var entry engine.RunEntry
	if err == nil {
		entry, _, err = conn.Run(ctx, r.cfg.RunID)
	}
	switch {
	case ctx.Err() != nil:
		return false
	case err != nil:
		r.fail(unanswered(err))
		return false
	case entry.Revision != a.last:
		a.last, a.moved = entry.Revision, time.Now()
	case time.Since(a.moved) > conn.Patience():
		r.fail(&StopError{Code: 7, Err: fmt.Errorf("the coordinator of run %s has been silent for %s", r.cfg.RunID, conn.Patience()),
			Remedy: "start its command again (it resumes), and this worker"})
		return false
	}
	if a.begun.IsZero() {
		a.begun = entry.Begun
	}
	if !a.begun.Equal(entry.Begun) { // whoever waits for the end of a run without money: this one may have some
		a.end()
	}
	a.plans = entry.Phase == engine.Planning
	switch entry.Phase {
	case engine.Working:
		var info FleetInfo
		if json.Unmarshal(entry.Info, &info) != nil {
			return true
		}
		r.attempts.Store(int64(info.Attempts))
		if info.Budgeted && r.budget == nil { // it has one since; who joins afresh keeps to it
			r.stop(errRunOver)
			a.end()
		}
	case engine.Planning:
	case engine.Stopping, engine.Stopped: // the first may pass between two looks
		r.stop(errRunOver)
		a.end()
	default:
		r.drain(errRunOver)
		a.end()
	}
	return true
}

func (a *attendance) end() { a.once.Do(func() { close(a.over) }) }

// leave tells that this worker has no job of the run any more: a courtesy, who is
// silent is taken for gone, too.
func (a *attendance) leave(ctx context.Context) {
	brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	a.w.State, a.w.RunID, a.w.Running = "waiting", "", nil
	if err := a.r.deps.Cluster.Tell(brief, a.w); err != nil {
		a.r.deps.Log.Debug("telling the coordinator of the end of work", "error", err)
	}
}

var errRunOver = errors.New("the run takes no jobs any more")

// hands are the ids of the jobs in this process's hands.
func (r *run) hands() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.inHand))
}

// load is that of the machine over the last minute, 0 where it is not known.
func load() float64 {
	body, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(body), " ")
	v, _ := strconv.ParseFloat(first, 64)
	return v
}

// jobOf is the job of a lease; ok is false where it is not selected.
func (r *run) jobOf(lease *engine.Lease) (schemas.Job, bool, error) {
	if r.deps.Cluster == nil {
		job, ok := r.todo[lease.ID]
		return job, ok, nil
	}
	var job schemas.Job
	if err := json.Unmarshal(lease.Data, &job); err != nil {
		return job, false, fmt.Errorf("reading job %s: %w", lease.ID, err)
	}
	_, known := r.plan.tasks[job.TaskID]
	return job, known && int64(job.Attempt) < r.attempts.Load() && job.AgentKey == r.cfg.AgentKey && job.RunID == r.cfg.RunID, nil
}

// hand notes that a job is in this process's hands, or no more.
func (r *run) hand(job schemas.Job, taken bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if taken {
		r.inHand[job.EpisodeID] = true
	} else {
		delete(r.inHand, job.EpisodeID)
	}
}

// tidy removes what is left of a job that is done. On a cluster its coordinator
// may have ended the run by now, and repairs what is not done here.
func (r *run) tidy(ctx context.Context, lease *engine.Lease) error {
	if r.deps.Cluster == nil {
		return errors.Join(lease.Ack(ctx), r.engine.PurgeLog(ctx, lease.ID))
	}
	brief, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if err := errors.Join(lease.Ack(brief), r.engine.PurgeLog(brief, lease.ID)); err != nil {
		r.deps.Log.Warn("tidying up after a job", "episode", lease.ID, "error", err)
	}
	return nil
}

// settleTimeout bounds the settling of a job: a cluster in an outage is waited for
// as patiently as elsewhere.
func (r *run) settleTimeout() time.Duration {
	if r.deps.Cluster == nil {
		return closeTimeout
	}
	return closeTimeout + r.deps.Cluster.Patience()
}
