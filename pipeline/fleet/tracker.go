package fleet

import (
	"context"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tracesmith/tracesmith/pipeline"
	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/schemas"
)

// workerTimeout is how long a worker may be silent until the coordinator stops waiting for it.
const workerTimeout = 30 * time.Second

// tracker follows the jobs that workers execute.
type tracker struct {
	conn  *engine.Conn
	batch *pipeline.Batch
	since uint64         // revision of the last record that changed under an earlier coordinator
	reads errgroup.Group // of staged episodes

	mu         sync.Mutex
	ended      map[string]bool
	running    map[string]execution
	revisions  map[string]uint64   // of the records as they were last seen
	deliveries map[string]delivery // includes jobs that are not in ToDo
}

// delivery is how often a job was handed out, and whether a worker executes it now.
type delivery struct {
	number  int
	running bool
}

// execution is a job that a worker executes.
type execution struct {
	worker   string
	seen     time.Time // when the coordinator saw the record
	delivery int
}

func newTracker(conn *engine.Conn, b *pipeline.Batch) *tracker {
	t := &tracker{conn: conn, batch: b, ended: map[string]bool{}, running: map[string]execution{}, revisions: map[string]uint64{}, deliveries: map[string]delivery{}}
	t.reads.SetLimit(8)
	return t
}

// wait returns when no living worker executes, or may still take, a job of this run, and the
// tracker has seen all records, or after patience unless that is 0.
func (t *tracker) wait(ctx context.Context, ended <-chan struct{}, patience time.Duration) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	begun, beats := time.Now(), map[string]heartbeat{}
	for patience == 0 || time.Since(begun) < patience {
		workers, err := t.conn.Workers(ctx)
		if err != nil {
			t.batch.Deps.Log.Warn("listing workers", "error", err)
			return
		}
		busy := false
		for _, w := range workers {
			last, known := beats[w.ID]
			if !known || last.beat != w.Beat {
				last = heartbeat{w.Beat, time.Now(), !w.Alive(w.Seen)}
			}
			beats[w.ID] = last
			busy = busy || w.RunID == t.batch.RunID && !last.silent()
		}
		if !busy && t.readAll(ctx) && t.idle(beats) {
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

// heartbeat is the last sign of life of a worker.
type heartbeat struct {
	beat  uint64
	since time.Time
	gone  bool
}

// silent reports whether the worker has left or was silent for workerTimeout.
func (h heartbeat) silent() bool { return h.gone || time.Since(h.since) > workerTimeout }

// readAll reads the records as they are now, because the watch may lag behind.
func (t *tracker) readAll(ctx context.Context) bool {
	entries, err := t.batch.Engine.Entries(ctx)
	if err != nil {
		t.batch.Deps.Log.Warn("listing jobs", "error", err)
		return false
	}
	for _, e := range entries {
		t.see(e)
	}
	return true
}

// idle reports whether no living worker executes a job. It does not wait for workers that left or
// are silent, nor for jobs whose record did not change for a lease.
func (t *tracker) idle(beats map[string]heartbeat) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, x := range t.running {
		h, known := beats[x.worker]
		if !(known && h.silent()) && time.Since(x.seen) < t.batch.Config.Lease+5*time.Second {
			return false
		}
	}
	return true
}

// see handles a record. It returns false when every job of ToDo has ended.
func (t *tracker) see(e engine.Entry) bool {
	b := t.batch
	t.mu.Lock()
	defer t.mu.Unlock()
	job, ok := b.ToDo[e.ID]
	if e.Revision <= t.revisions[e.ID] { // both the watch and readAll show it
		return !ok || len(t.ended) < len(b.ToDo)
	}
	t.revisions[e.ID], t.deliveries[e.ID] = e.Revision, delivery{e.Delivery, e.State == engine.Running}
	if !ok { // its call may hold money
		return true
	}
	last, running := t.running[e.ID]
	worker, _, _ := strings.Cut(e.Owner, "/")
	switch {
	case e.Terminal():
		delete(t.running, e.ID)
		if !t.ended[e.ID] {
			t.ended[e.ID] = true
			t.end(e, job)
		}
	case e.State == engine.Running:
		delete(t.ended, e.ID)
		t.running[e.ID] = execution{engine.WorkerID(worker), time.Now(), e.Delivery}
		if !running || last.delivery != e.Delivery {
			b.Deps.Observer.JobStarted(job, e.Delivery)
		}
	default:
		delete(t.ended, e.ID)
		delete(t.running, e.ID)
		if running && e.Cause != "" {
			b.JobRetried(job, e.Cause)
		}
	}
	return len(t.ended) < len(b.ToDo)
}

// end records the end of a job, if it ended under this coordinator.
func (t *tracker) end(e engine.Entry, job schemas.Job) {
	b := t.batch
	if e.Revision <= t.since {
		return // given up earlier, and not retried
	}
	if e.State == engine.Dead {
		b.JobUnstaged(job, schemas.OutcomeInfra, e.Class, e.Cause)
		return
	}
	t.reads.Go(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), b.Config.StagePatience+time.Minute)
		defer cancel()
		staged, err := b.Fetch(ctx, job)
		if err != nil {
			return b.StoreError(err)
		}
		b.JobStaged(job, staged)
		return nil
	})
}

// lost reports whether no worker executes a delivery of a job any more.
func (t *tracker) lost(episode string, number int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	d, known := t.deliveries[episode]
	return known && (d.number > number || d.number == number && !d.running)
}
