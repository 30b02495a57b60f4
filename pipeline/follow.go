package pipeline

// How a coordinator follows the jobs in its workers' hands.

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/pipeline/engine"
)

// wait returns when no living worker has, or may yet take, a job of this run, and
// every record of theirs was seen.
func (f *fleet) wait(ctx context.Context, ended <-chan struct{}, patience time.Duration) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	begun, seen := time.Now(), map[string]seenWorker{}
	for patience == 0 || time.Since(begun) < patience {
		workers, err := f.r.deps.Cluster.Workers(ctx)
		if err != nil {
			f.r.deps.Log.Warn("listing workers", "error", err)
			return
		}
		busy := false
		for _, w := range workers {
			old, known := seen[w.ID]
			if !known || old.beat != w.Beat {
				old = seenWorker{w.Beat, time.Now(), !w.Alive(w.Seen)}
			}
			seen[w.ID] = old
			busy = busy || w.RunID == f.r.runID && !old.silent()
		}
		if !busy && f.catchUp(ctx) && f.idle(seen) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-ended:
			return
		case <-tick.C:
		}
	}
}

// seenWorker is what a worker's entry was and since when.
type seenWorker struct {
	beat  uint64
	since time.Time
	gone  bool
}

// silent tells that the worker has left or was not heard of for half a minute.
func (w seenWorker) silent() bool { return w.gone || time.Since(w.since) > 30*time.Second }

// catchUp sees the records as they are now: the watch may lag behind.
func (f *fleet) catchUp(ctx context.Context) bool {
	entries, err := f.r.engine.Entries(ctx)
	if err != nil {
		f.r.deps.Log.Warn("listing jobs", "error", err)
		return false
	}
	for _, e := range entries {
		f.see(e)
	}
	return true
}

// idle tells that no job is in living hands: those of a worker who left or is
// silent, and those not heard of for a lease, are not waited for.
func (f *fleet) idle(workers map[string]seenWorker) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.running {
		w, known := workers[h.worker]
		if !(known && w.silent()) && time.Since(h.heard) < f.lease+5*time.Second {
			return false
		}
	}
	return true
}

// see takes notice of one record; false when every job to do has ended.
func (f *fleet) see(e engine.Entry) bool {
	r := f.r
	f.mu.Lock()
	defer f.mu.Unlock()
	job, ok := r.todo[e.ID]
	if e.Revision <= f.at[e.ID] { // watch and catchUp may tell the same
		return !ok || len(f.ended) < len(r.todo)
	}
	f.at[e.ID], f.hands[e.ID] = e.Revision, hand{e.Delivery, e.State == engine.Running}
	if !ok { // what its call holds is followed all the same
		return true
	}
	was, running := f.running[e.ID]
	worker, _, _ := strings.Cut(e.Owner, "/")
	switch {
	case e.Terminal():
		delete(f.running, e.ID)
		if !f.ended[e.ID] {
			f.ended[e.ID] = true
			f.end(e, job)
		}
	case e.State == engine.Running:
		delete(f.ended, e.ID)
		f.running[e.ID] = handed{engine.WorkerID(worker), time.Now(), e.Delivery}
		if !running || was.times != e.Delivery {
			r.deps.Observer.JobStarted(job, e.Delivery)
		}
	default:
		delete(f.ended, e.ID)
		delete(f.running, e.ID)
		if running && e.Cause != "" {
			r.mu.Lock()
			r.friction.InfraRetries++
			r.mu.Unlock()
			r.deps.Observer.JobRetried(job, errors.New(r.cfg.clean(e.Cause)))
		}
	}
	return len(f.ended) < len(r.todo)
}
