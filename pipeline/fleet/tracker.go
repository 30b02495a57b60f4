package fleet

import (
	"context"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tracesmith/tracesmith/pipeline"
	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/schemas"
)

// workerTimeout is how long a worker may be silent before the coordinator stops waiting for it.
const workerTimeout = 30 * time.Second

// tracker follows the jobs that workers execute.
type tracker struct {
	conn  *engine.Conn
	batch *pipeline.Batch
	since uint64         // revision of the last record that changed under an earlier coordinator
	reads errgroup.Group // of staged episodes

	mu         sync.Mutex
	ended      map[string]bool      // jobs of ToDo that are done or dead
	running    map[string]execution // jobs of ToDo
	revisions  map[string]uint64    // of the records that update has handled
	deliveries map[string]delivery  // of all jobs, including those not in ToDo
}

// delivery is the last delivery of a job.
type delivery struct {
	number  int
	running bool // a worker executes it
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

// wait returns when the tracker has read all records, and no living worker executes a job of this
// run or may still take one. It returns earlier if ctx ends, if ended is closed, if the workers
// cannot be listed, or after patience (0 = no limit).
func (t *tracker) wait(ctx context.Context, ended <-chan struct{}, patience time.Duration) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	start, beats := time.Now(), map[string]heartbeat{}
	for patience == 0 || time.Since(start) < patience {
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

// heartbeat is the last renewal of a worker's entry.
type heartbeat struct {
	beat  uint64    // WorkerEntry.Beat
	since time.Time // when the coordinator first saw it
	gone  bool      // the worker has left or was refused
}

// silent reports whether the worker is gone or has been silent for workerTimeout.
func (h heartbeat) silent() bool { return h.gone || time.Since(h.since) > workerTimeout }

// readAll updates the tracker with the current records, because the watch may lag behind. It
// returns false if the records cannot be read.
func (t *tracker) readAll(ctx context.Context) bool {
	entries, err := t.batch.Engine.Entries(ctx)
	if err != nil {
		t.batch.Deps.Log.Warn("listing jobs", "error", err)
		return false
	}
	for _, e := range entries {
		t.update(e)
	}
	return true
}

// idle reports whether no living worker executes a job. It ignores workers that are silent, and
// jobs whose record has not changed for the duration of a lease.
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

// update handles the current record of a job, selected or not. It returns false after the record
// with which every job of ToDo has ended.
func (t *tracker) update(e engine.Entry) bool {
	b := t.batch
	t.mu.Lock()
	defer t.mu.Unlock()
	job, ok := b.ToDo[e.ID]
	if e.Revision <= t.revisions[e.ID] { // the watch and readAll both pass it
		return !ok || len(t.ended) < len(b.ToDo)
	}
	t.revisions[e.ID], t.deliveries[e.ID] = e.Revision, delivery{e.Delivery, e.State == engine.Running}
	if !ok { // not selected: only deliveryEnded needs its delivery
		return true
	}
	last, running := t.running[e.ID]
	worker, _, _ := strings.Cut(e.Owner, "/")
	switch {
	case e.Terminal():
		delete(t.running, e.ID)
		if !t.ended[e.ID] {
			t.ended[e.ID] = true
			t.recordEnd(e, job)
		}
	case e.State == engine.Running:
		delete(t.ended, e.ID)
		t.running[e.ID] = execution{engine.WorkerID(worker), time.Now(), e.Delivery}
		if !running || last.delivery != e.Delivery {
			b.JobStarted(job, e.Delivery, observe.InWorker)
		}
	default:
		delete(t.ended, e.ID)
		delete(t.running, e.ID)
		if running && e.Cause != "" {
			b.JobRetried(job, e.Cause, time.Until(e.Due))
		}
		b.Activities.Leave(e.ID)
	}
	return len(t.ended) < len(b.ToDo)
}

// recordEnd records the result of a job, if the job ended under this coordinator.
func (t *tracker) recordEnd(e engine.Entry, job schemas.Job) {
	b := t.batch
	if e.Revision <= t.since {
		return // given up under an earlier coordinator, and not retried
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

// deliveryEnded reports whether no worker executes a delivery of a job any longer: the job has ended,
// waits in the queue or has been delivered again.
func (t *tracker) deliveryEnded(episode string, number int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	d, known := t.deliveries[episode]
	return known && (d.number > number || d.number == number && !d.running)
}
