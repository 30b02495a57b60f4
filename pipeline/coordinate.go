package pipeline

// A run on a cluster: this process plans, queues and keeps the books; workers
// elsewhere execute. What is durable is in the cluster and in staging, so another
// process can go on with the same run directory at any time.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tracesmith/tracesmith/pipeline/budget"
	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// FleetInfo is what a coordinator tells the board of its run.
type FleetInfo struct {
	Selected int    `json:"selected"`
	Reused   int    `json:"reused"`   // staged before this coordinator began
	Since    uint64 `json:"since"`    // records of a later revision changed under this coordinator
	Attempts int    `json:"attempts"` // jobs of higher attempts are not selected
	Offer    string `json:"offer"`    // name of the body that says how to execute jobs
	Staging  string `json:"staging"`
	// Budgeted: no worker makes a call that the run's budget has no room for.
	Budgeted bool `json:"budgeted,omitempty"`
	// Budget is what a complete run has spent, where it had a limit.
	Budget *observe.Budget `json:"budget,omitempty"`
	// Settled are reused ones whose records do not say so: their workers were killed,
	// or are about to tell.
	Settled []string `json:"settled,omitempty"`
}

// stoppingPatience bounds how long a cancelled run waits for its jobs to come back.
const stoppingPatience = 15 * time.Second

// fleet is the coordinator's view of the jobs.
type fleet struct {
	r     *run
	since uint64
	lease time.Duration
	reads errgroup.Group // of staged episodes

	budget *budget.Coordinator // nil: the run has no shared budget
	poor   chan struct{}       // closed when the money is used up

	mu      sync.Mutex
	ended   map[string]bool
	running map[string]handed
	at      map[string]uint64 // revision of the record that was seen last
	hands   map[string]hand   // of jobs that are not to do, too
}

// hand is how often a job was handed out, and whether a worker has it now.
type hand struct {
	times   int
	running bool
}

// handed is a job in a worker's hands, and when it was last heard of.
type handed struct {
	worker string
	heard  time.Time
	times  int
}

// coordinate has workers do what is to do, until every job has its end, the
// context ends or the run is drained.
func (r *run) coordinate(ctx context.Context) (err error) {
	conn := r.deps.Cluster
	dir, _ := os.Hostname()
	dir += ":" + r.cfg.RunDir
	chair, err := conn.Preside(ctx, engine.RunEntry{RunID: r.runID, Owner: dir, Dir: r.cfg.RunDir, Key: r.dir.Info.Key, Version: r.cfg.Normalise.Producer, Lease: r.cfg.Lease})
	if err != nil {
		return unanswered(err)
	}
	defer chair.Leave()
	if r.cfg.Fresh {
		if err := conn.Sweep(ctx, r.runID); err != nil {
			return unanswered(err)
		}
	}
	if len(r.todo) == 0 {
		return unanswered(r.complete(ctx, chair))
	}
	all, cancelAll := context.WithCancelCause(ctx)
	defer cancelAll(nil)
	defer context.AfterFunc(chair.Context(), func() { r.fail(context.Cause(chair.Context())) })()
	r.stop, r.drain = cancelAll, cancelAll
	if r.engine, err = engine.Open(ctx, engine.Options{
		RunID: r.runID, Conn: conn, Concurrency: r.cfg.InFlight, AckWait: r.cfg.Lease, Log: r.deps.Log,
	}); err != nil {
		return unanswered(err)
	}
	defer func() { err = errors.Join(err, r.engine.Close()) }()
	f := &fleet{
		r: r, lease: r.cfg.Lease, ended: map[string]bool{}, running: map[string]handed{}, at: map[string]uint64{}, hands: map[string]hand{},
		poor: make(chan struct{}),
	}
	f.reads.SetLimit(8)
	err = f.begin(ctx, chair)
	if err == nil { // workers begin with what is queued: an interrupt of queueing has them end it, too
		if err = r.enqueue(ctx); ctx.Err() != nil {
			err = nil
		}
	}
	if err != nil {
		return unanswered(errors.Join(err, chair.Set(context.WithoutCancel(ctx), engine.Stopped, nil)))
	}
	// Workers who lived on may have ended the last jobs: then there is nothing to watch.
	drained := len(r.todo) > 0 && f.lead(all, chair)
	if err := f.reads.Wait(); err != nil && all.Err() == nil {
		r.fail(err)
	}
	if err := errors.Join(r.settle(context.WithoutCancel(ctx)), r.recount(context.WithoutCancel(ctx))); err != nil {
		return unanswered(err)
	}
	r.mu.Lock()
	stopped, left, dead := r.fatal, r.unended(), len(r.dead)
	r.mu.Unlock()
	if left == 0 && dead == 0 {
		return unanswered(r.complete(context.WithoutCancel(ctx), chair))
	}
	err = chair.Set(context.WithoutCancel(ctx), engine.Stopped, nil)
	switch {
	case stopped != nil:
		return stopped
	case ctx.Err() != nil:
		return interrupted(ctx)
	case drained && left > 0:
		return errDrained
	}
	return unanswered(err)
}

// complete tells that nothing is left to do, and removes what the cluster held and
// killed workers had begun to stage.
func (r *run) complete(ctx context.Context, chair *engine.Chair) error {
	reused := 0
	for _, e := range r.episodes {
		if e.Reused {
			reused++
		}
	}
	info := FleetInfo{Selected: len(r.plan.jobs), Reused: reused, Attempts: r.cfg.Attempts, Staging: r.deps.Staging.URI()}
	if r.cfg.MaxCost > 0 || r.cfg.TaskCost > 0 {
		calls, _ := r.ledger.Totals()
		info.Budget = &observe.Budget{LimitUSD: r.cfg.MaxCost, SpentUSD: calls.Spent()}
	}
	body, err := json.Marshal(info)
	if err != nil {
		return fmt.Errorf("encoding the run's figures: %w", err)
	}
	if err := chair.Set(ctx, engine.Completed, body); err != nil {
		return err
	}
	return errors.Join(r.removeTorn(ctx), r.deps.Cluster.Sweep(ctx, r.runID))
}

// begin offers the run to workers. What was staged since the plan was made, by
// workers who lived on, is reused.
func (f *fleet) begin(ctx context.Context, chair *engine.Chair) error {
	r := f.r
	if err := r.mark(ctx); err != nil {
		return err
	}
	offer := "offer-" + schemas.HashBytes(r.cfg.Offer)[:16]
	if err := r.engine.PutBody(ctx, offer, r.cfg.Offer); err != nil {
		return err
	}
	entries, err := r.engine.Entries(ctx)
	if err != nil {
		return err
	}
	var settled []string
	for _, e := range entries {
		f.since = max(f.since, e.Revision)
		job, ok := r.todo[e.ID]
		var other schemas.Job
		if !ok && json.Unmarshal(e.Data, &other) == nil { // what its log tells is of its task, too
			r.ledger.Account(e.ID, other.TaskID)
		}
		if _, reused := r.episodes[e.ID]; reused && e.State != engine.Done {
			settled = append(settled, e.ID)
		}
		if !ok || e.State != engine.Done {
			continue
		}
		done, err := r.fetch(ctx, job)
		if errors.Is(err, sinks.ErrNotFound) {
			continue // deleted by hand: it is made again
		}
		if err != nil {
			return err
		}
		done.episode.Reused = true
		r.episodes[e.ID] = done.episode
		r.ledger.AddEarlier(r.ledger.Account(e.ID, job.TaskID), done.episode.Calls, false)
		delete(r.todo, e.ID)
	}
	if err := r.reckon(ctx); err != nil {
		return err
	}
	f.budget, err = budget.Open(ctx, r.engine, budget.Setup{
		Limits: budget.Limits{Run: r.cfg.MaxCost, Task: r.cfg.TaskCost}, Ledger: r.ledger, Jobs: entries, Confirm: f.confirmBudget,
		Staged: func(episode string) bool { _, ok := r.episodes[episode]; return ok },
	})
	if err != nil {
		return err
	}
	info := FleetInfo{
		Selected: len(r.plan.jobs), Reused: len(r.episodes), Since: f.since, Attempts: r.cfg.Attempts, Offer: offer, Staging: r.deps.Staging.URI(), Settled: settled,
		Budgeted: f.budget != nil,
	}
	body, err := json.Marshal(info)
	if err != nil {
		return fmt.Errorf("encoding the run's figures: %w", err)
	}
	return chair.Set(ctx, engine.Working, body)
}

// mark leaves the run's mark in staging, by which a worker knows that it stages
// in the same place.
func (r *run) mark(ctx context.Context) error {
	err := r.patiently(ctx, func() error {
		return r.deps.Staging.Create(ctx, markKey(r.runID), []byte(r.runID+"\n"))
	})
	if err != nil && !errors.Is(err, sinks.ErrExists) {
		return r.storeError(fmt.Errorf("marking the staging store: %w", err))
	}
	return nil
}

func markKey(runID string) string { return "fleet/" + runID }

// lead watches the jobs to their ends; drained tells that it was asked to stop
// taking jobs.
func (f *fleet) lead(all context.Context, chair *engine.Chair) (drained bool) {
	r := f.r
	watching, done := context.WithCancel(context.WithoutCancel(all))
	defer done()
	var watch sync.WaitGroup
	defer watch.Wait()
	defer done()
	ended := make(chan struct{})
	watch.Go(func() {
		defer close(ended)
		if err := r.engine.Watch(watching, f.see); err != nil && watching.Err() == nil {
			r.fail(unanswered(err))
		}
	})
	if f.budget != nil {
		watch.Go(func() { f.checkBudget(watching) })
	}
	select {
	case <-ended:
		return false
	case <-r.deps.Drain:
		drained = true
	case <-f.poor: // calls under way end and are recorded: they are paid for
		drained = true
	case <-all.Done():
	}
	if drained {
		f.set(all, chair, engine.Draining)
		f.wait(all, ended, 0)
		if all.Err() == nil {
			return true
		}
	}
	f.set(all, chair, engine.Stopping)
	f.wait(context.WithoutCancel(all), ended, stoppingPatience)
	return false
}

func (f *fleet) set(ctx context.Context, chair *engine.Chair, p engine.Phase) {
	if err := chair.Set(context.WithoutCancel(ctx), p, nil); err != nil {
		f.r.deps.Log.Warn("telling the workers", "phase", p, "error", err)
	}
}

// end books the end of a job, where it came under this coordinator.
func (f *fleet) end(e engine.Entry, job schemas.Job) {
	r := f.r
	if e.Revision <= f.since {
		return // given up earlier, and nobody asked for it again
	}
	if e.State == engine.Dead {
		r.ended(job, schemas.OutcomeInfra, e.Class, e.Cause)
		return
	}
	f.reads.Go(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), r.cfg.StagePatience+time.Minute)
		defer cancel()
		done, err := r.fetch(ctx, job)
		if err != nil {
			return r.storeError(err)
		}
		r.book(job, done.episode)
		return nil
	})
}

// recount makes the accounts those of staged episodes and of the step logs of the
// others: the calls were made elsewhere.
func (r *run) recount(ctx context.Context) error {
	r.mu.Lock()
	for _, e := range r.episodes {
		if !e.Reused && e.Outcome != schemas.OutcomeInfra {
			r.ledger.Restore(r.ledger.Account(e.ID, r.todo[e.ID].TaskID), e.Calls, false)
		}
	}
	r.mu.Unlock()
	tallies, err := r.tallies(ctx)
	for id, t := range tallies {
		r.ledger.Restore(r.ledger.Account(id, r.todo[id].TaskID), t.calls, t.failed)
	}
	return err
}

// fetch reads the staged object of a job.
func (r *run) fetch(ctx context.Context, job schemas.Job) (result, error) {
	key := sinks.StagedKey(job.RunID, job.EpisodeID)
	var body []byte
	err := r.patiently(ctx, func() (err error) {
		body, err = r.deps.Staging.Get(ctx, key)
		return err
	})
	if err != nil {
		return result{}, fmt.Errorf("looking for the staged episode: %w", err)
	}
	s, err := sinks.DecodeStaged(body)
	if err != nil {
		return result{}, fmt.Errorf("%s: %w", key, err)
	}
	return result{observe.FromStaged(s, int64(len(body))), schemas.HashBytes(body)}, nil
}
