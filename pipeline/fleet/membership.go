package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tracesmith/tracesmith/pipeline"
	"github.com/tracesmith/tracesmith/pipeline/engine"
)

// membership keeps a worker's entry in the registry and follows the phase of its run.
type membership struct {
	worker   *worker
	self     engine.WorkerEntry
	revision uint64    // of the run's entry
	changed  time.Time // when the revision changed last
	begun    time.Time // when the run's coordinator started
	planning bool      // the coordinator has not published its settings yet
	// over is closed when the run takes no more jobs, cannot be followed, or has another
	// coordinator.
	over chan struct{}
	once sync.Once
}

func newMembership(w *worker, self engine.WorkerEntry) *membership {
	return &membership{worker: w, self: self, changed: time.Now(), over: make(chan struct{})}
}

// waitForPlan polls until the coordinator publishes its settings or claims ends. This is necessary
// because the coordinator may have started after this worker read whether the run has a budget. The
// first poll enters the worker in the registry. waitForPlan returns false if the run cannot be
// followed; then the worker must not claim jobs, and claims has ended.
func (m *membership) waitForPlan(ctx, claims context.Context) bool {
	tick := time.NewTicker(m.worker.cfg.Poll)
	defer tick.Stop()
	for m.poll(ctx, claims) {
		if !m.planning {
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

// pollLoop polls until ctx ends or the run can no longer be followed.
func (m *membership) pollLoop(ctx, claims context.Context) {
	defer m.end()
	tick := time.NewTicker(m.worker.cfg.Poll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !m.poll(ctx, claims) {
			return
		}
	}
}

// poll renews the worker's entry and reads that of the run. It returns false if the run can no
// longer be followed.
func (m *membership) poll(ctx, claims context.Context) bool {
	b, conn := m.worker.batch, m.worker.cfg.Conn
	m.self.State = "working"
	if claims.Err() != nil {
		m.self.State = "draining"
	}
	m.self.RunID, m.self.Slots, m.self.Running, m.self.Load = b.RunID, b.Config.Workers, m.worker.executor.Running(), loadAverage()
	if body, err := json.Marshal(b.Activities.Now()); err == nil {
		m.self.Activity = body
	}
	err := conn.PutWorker(ctx, m.self)
	var entry engine.RunEntry
	if err == nil {
		entry, _, err = conn.RunEntry(ctx, b.RunID)
	}
	switch {
	case ctx.Err() != nil:
		return false
	case err != nil:
		b.Fail(pipeline.WithExitCode(err))
		return false
	case entry.Revision != m.revision:
		m.revision, m.changed = entry.Revision, time.Now()
	case time.Since(m.changed) > conn.Patience():
		b.Fail(&pipeline.StopError{Code: 7, Err: fmt.Errorf("the coordinator of run %s has been silent for %s", b.RunID, conn.Patience()),
			Remedy: "start its command again (it resumes), and this worker"})
		return false
	}
	if m.begun.IsZero() {
		m.begun = entry.Begun
	}
	if !m.begun.Equal(entry.Begun) { // a new coordinator: it may have raised the budget that this worker found used up
		m.end()
	}
	m.follow(entry)
	return true
}

// follow acts on the phase of the run.
func (m *membership) follow(entry engine.RunEntry) {
	b := m.worker.batch
	m.planning = entry.Phase == engine.Planning
	switch entry.Phase {
	case engine.Working:
		var details RunDetails
		if json.Unmarshal(entry.Info, &details) != nil {
			return
		}
		if details.RunSpec != m.worker.cfg.specName() { // another selection or other settings: the worker must join again
			b.Drain(errRunOver)
			m.end()
		}
		if details.Budgeted && m.worker.executor.Budget == nil { // the run has got a budget: the worker must join again
			b.Stop(errRunOver)
			m.end()
		}
	case engine.Planning:
	case engine.Stopping, engine.Stopped: // Stopping may begin and end between two polls
		b.Stop(errRunOver)
		m.end()
	default:
		b.Drain(errRunOver)
		m.end()
	}
}

func (m *membership) end() { m.once.Do(func() { close(m.over) }) }

// leave records in the registry that this worker no longer executes jobs of the run. If that
// fails, the coordinator considers the worker gone after workerTimeout.
func (m *membership) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	m.self.State, m.self.RunID, m.self.Running, m.self.Activity = "waiting", "", nil, nil
	if err := m.worker.cfg.Conn.PutWorker(ctx, m.self); err != nil {
		m.worker.batch.Deps.Log.Debug("leaving the run in the registry", "error", err)
	}
}

// loadAverage returns the load of the machine over the last minute, or 0 if it is unknown.
func loadAverage() float64 {
	body, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(body), " ")
	v, _ := strconv.ParseFloat(first, 64)
	return v
}
