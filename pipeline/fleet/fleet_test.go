package fleet_test

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/internal/pipelinetest"
	"github.com/tracesmith/tracesmith/pipeline"
	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/pipeline/fleet"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

func TestWorkersExecuteAndTheCoordinatorRecords(t *testing.T) {
	t.Parallel()
	h, conn := newFleet(t, 12)
	end := h.coordinate(t.Context())
	var workers sync.WaitGroup
	for _, name := range []string{"a", "b"} {
		workers.Go(func() {
			if err := h.join(t.Context(), conn, name); err != nil {
				t.Errorf("worker %s: %v", name, err)
			}
		})
	}
	got := <-end
	workers.Wait()
	if got.err != nil {
		t.Fatal(got.err)
	}
	l := pipelinetest.Ledger(t, got.rep)
	if l.Selected != 12 || l.Ran != 12 || l.Outcomes[schemas.OutcomeResolved] != 12 || len(h.Staged(t)) != 12 || h.Count("ask ") != 12*turns {
		t.Errorf("%+v; %d staged, %d asked", l, len(h.Staged(t)), h.Count("ask "))
	}
	if c := got.rep.Calls; c.Made != 12*turns || c.LostInFlight != 0 {
		t.Errorf("calls %+v", c)
	}
	if entry, ok, err := conn.RunEntry(t.Context(), h.Config.RunID); err != nil || !ok || entry.Phase != engine.Completed {
		t.Errorf("in the registry: %+v, %v", entry, err)
	}
	again, err := h.run(t.Context())
	if err != nil || again.Ledger.Reused != 12 || again.Ledger.Ran != 0 {
		t.Errorf("coordinating the complete run again: %+v, %v", again.Ledger, err)
	}
}

// If a worker vanishes during an episode, another one continues from the step log and requests no
// recorded reply again.
func TestWorkerContinuesForVanishedOne(t *testing.T) {
	t.Parallel()
	h, conn := newFleet(t, 1)
	var steps atomic.Int32
	first, kill := context.WithCancelCause(t.Context())
	h.OnStep = func(ctx context.Context, _ schemas.Job, _ schemas.ToolCall) error {
		if steps.Add(1) == 3 { // the worker's third tool call never ends
			kill(errors.New("pulled the plug"))
			<-ctx.Done()
			return context.Cause(ctx)
		}
		return nil
	}
	end := h.coordinate(t.Context())
	if err := h.join(first, conn, "first"); err == nil {
		t.Fatal("the canceled worker returned no error")
	}
	if err := h.join(t.Context(), conn, "second"); err != nil {
		t.Fatal(err)
	}
	got := <-end
	if got.err != nil {
		t.Fatal(got.err)
	}
	if n := h.Count("ask "); n != turns || h.Count("env ") != 2 || len(h.Staged(t)) != 1 {
		t.Errorf("%d model calls, %d environments, %d staged", n, h.Count("env "), len(h.Staged(t)))
	}
}

func TestDrainedCoordinatorWaitsForRunningJobs(t *testing.T) {
	t.Parallel()
	h, conn := newFleet(t, 6)
	drain, reached := make(chan struct{}), make(chan struct{})
	var once sync.Once
	h.Config.Workers = 1
	h.OnStep = func(context.Context, schemas.Job, schemas.ToolCall) error {
		once.Do(func() { close(drain); close(reached) })
		return nil
	}
	h.ChangeDeps = func(d *pipeline.Deps) { d.Drain = drain }
	end := h.coordinate(t.Context())
	h.ChangeDeps = nil
	if err := h.join(t.Context(), conn, "w"); err != nil {
		t.Fatal(err)
	}
	got := <-end
	<-reached
	l := got.rep.Ledger
	if stop, ok := errors.AsType[*pipeline.StopError](got.err); l.Ran < 6 && (!ok || stop.Code != 130) {
		t.Errorf("%v", got.err)
	}
	if l.Selected != l.Reused+l.Ran+l.Missing || l.Ran != len(h.Staged(t)) || l.Ran == 0 {
		t.Errorf("%+v, %d staged", l, len(h.Staged(t)))
	}
}

// If the coordinator is canceled, the workers return their jobs. Other workers can finish the run
// later.
func TestCanceledCoordinatorMakesWorkersReturnJobs(t *testing.T) {
	t.Parallel()
	h, conn := newFleet(t, 3)
	ctx, cancel := context.WithCancel(t.Context())
	var blocked atomic.Bool
	blocked.Store(true)
	h.OnStep = func(ctx context.Context, _ schemas.Job, _ schemas.ToolCall) error {
		if !blocked.Load() {
			return nil
		}
		cancel()
		<-ctx.Done()
		return context.Cause(ctx)
	}
	end := h.coordinate(ctx)
	if err := h.join(t.Context(), conn, "w"); err != nil {
		t.Errorf("a worker of a stopped run: %v", err)
	}
	got := <-end
	if stop, ok := errors.AsType[*pipeline.StopError](got.err); !ok || stop.Code != 130 || len(h.Staged(t)) != 0 {
		t.Fatalf("%v, %d staged", got.err, len(h.Staged(t)))
	}
	if entry, _, err := conn.RunEntry(t.Context(), h.Config.RunID); err != nil || entry.Phase != engine.Stopped {
		t.Errorf("in the registry: %+v, %v", entry, err)
	}
	blocked.Store(false)
	end = h.coordinate(t.Context())
	if err := h.join(t.Context(), conn, "w2"); err != nil {
		t.Fatal(err)
	}
	if got = <-end; got.err != nil || got.rep.Ledger.Ran != 3 || len(h.Staged(t)) != 3 || h.Count("ask ") != 3*turns {
		t.Errorf("%v: %+v, %d staged, %d asked", got.err, got.rep.Ledger, len(h.Staged(t)), h.Count("ask "))
	}
}

// A worker that cannot reach the cluster for longer than its patience cancels its episode and ends
// with an error.
func TestWorkerEndsWithoutItsCluster(t *testing.T) {
	t.Parallel()
	srv, url := startNATS(t)
	h := newHarness(filepath.Join(t.TempDir(), "run"), 1)
	conn := dialNATS(t, url)
	h.Config.RunID, h.Config.Lease, h.conn = "fleet-1", 4*time.Second, conn
	ctx, cancel := context.WithCancel(t.Context())
	h.OnStep = func(ctx context.Context, _ schemas.Job, _ schemas.ToolCall) error {
		srv.Shutdown()
		<-ctx.Done()
		return context.Cause(ctx)
	}
	end := h.coordinate(ctx)
	impatient, err := engine.Dial(t.Context(), engine.Cluster{URL: url, Patience: 3 * time.Second, CallTimeout: time.Second})
	for err != nil && t.Context().Err() == nil { // a busy machine may be slower
		impatient, err = engine.Dial(t.Context(), engine.Cluster{URL: url, Patience: 3 * time.Second, CallTimeout: time.Second})
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = impatient.Close() }()
	err = h.join(t.Context(), impatient, "w")
	stop, ok := errors.AsType[interface {
		error
		ExitCode() int
		Hint() string
	}](err)
	if !ok || stop.ExitCode() != 7 || stop.Hint() == "" {
		t.Errorf("%v", err)
	}
	cancel()
	_ = conn.Close() // the coordinator would wait for a minute
	<-end
}

func TestWorkerWithoutTheRunsStagingIsRefused(t *testing.T) {
	t.Parallel()
	h, conn := newFleet(t, 1)
	err := h.work(t.Context(), conn, "w")
	stop, ok := errors.AsType[*pipeline.StopError](err)
	if !ok || stop.Code != 2 || !strings.Contains(stop.Remedy, "run.staging") {
		t.Errorf("%v", err)
	}
}

// hookedStore calls beforeMarker before it writes the run's marker, which a coordinator does just
// after it has made its plan.
type hookedStore struct {
	sinks.Store
	beforeMarker func(context.Context) error
}

func (s hookedStore) Create(ctx context.Context, key string, body []byte) error {
	if strings.HasPrefix(key, "fleet/") {
		if err := s.beforeMarker(ctx); err != nil {
			return err
		}
	}
	return s.Store.Create(ctx, key, body)
}

// The workers of a lost coordinator continue. The next coordinator completes the run even if they
// end all its jobs before it watches them.
func TestAllJobsEndWhileCoordinatorStarts(t *testing.T) {
	t.Parallel()
	_, url := startNATS(t)
	lost, conn := dialNATS(t, url), dialNATS(t, url)
	h := newHarness(filepath.Join(t.TempDir(), "run"), 2)
	h.Config.RunID, h.Config.Lease, h.conn = "fleet-1", 30*time.Second, lost
	first := h.coordinate(t.Context())

	h.conn = conn
	verifying, release := make(chan struct{}, 2), make(chan struct{})
	h.OnVerify = func(schemas.Task) (schemas.Verdict, error) {
		verifying <- struct{}{}
		<-release
		return schemas.Verdict{}, nil
	}
	workerEnd := make(chan error, 1)
	go func() { workerEnd <- h.join(t.Context(), conn, "w") }()
	<-verifying
	<-verifying
	if err := lost.Close(); err != nil {
		t.Fatal(err)
	}
	if got := <-first; got.err == nil {
		t.Fatal("a coordinator without a connection completed the run")
	}
	h.WrapStore = func(s sinks.Store) sinks.Store {
		return hookedStore{s, func(ctx context.Context) error {
			close(release)
			return waitAllDone(ctx, conn, h.Config.RunID)
		}}
	}
	got := <-h.coordinate(t.Context())
	if got.err != nil || pipelinetest.Ledger(t, got.rep).Reused != 2 {
		t.Errorf("%v: %+v", got.err, got.rep.Ledger)
	}
	if err := <-workerEnd; err != nil {
		t.Error(err)
	}
}

// waitAllDone waits until the records of both jobs of a run say that they are done.
func waitAllDone(ctx context.Context, conn *engine.Conn, run string) (err error) {
	e, err := engine.Open(ctx, engine.Options{RunID: run, Conn: conn, Join: true, AckWait: 30 * time.Second})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	done := map[string]bool{}
	return e.Watch(ctx, func(entry engine.Entry) bool {
		done[entry.ID] = entry.State == engine.Done
		return len(done) < 2 || slices.Contains(slices.Collect(maps.Values(done)), false)
	})
}

// The workers of a lost coordinator do not give up the jobs that the next one adds. They join again.
func TestRunGrowsInTasks(t *testing.T) {
	t.Parallel()
	_, url := startNATS(t)
	lost, conn := dialNATS(t, url), dialNATS(t, url)
	h := newHarness(filepath.Join(t.TempDir(), "run"), 1)
	h.Config.RunID, h.Config.Lease, h.conn, h.spec = "fleet-1", 30*time.Second, lost, "one task"
	first := h.coordinate(t.Context())
	verifying, release := make(chan struct{}, 3), make(chan struct{})
	h.OnVerify = func(schemas.Task) (schemas.Verdict, error) {
		verifying <- struct{}{}
		<-release
		return schemas.Verdict{}, nil
	}
	h.poll = time.Hour // so that the worker hears of the next coordinator only from the jobs
	workerEnd := make(chan error, 1)
	go func() { workerEnd <- h.join(t.Context(), conn, "w") }()
	<-verifying
	if err := lost.Close(); err != nil {
		t.Fatal(err)
	}
	<-first
	h.conn, h.Tasks, h.spec, h.poll = conn, 3, "three tasks", 20*time.Millisecond
	grown := h.coordinate(t.Context())
	close(release)
	if err := <-workerEnd; err != nil {
		t.Fatal(err)
	}
	if err := h.join(t.Context(), conn, "w"); err != nil {
		t.Fatal(err)
	}
	got := <-grown
	if l := pipelinetest.Ledger(t, got.rep); got.err != nil || l.Selected != 3 || l.Missing != 0 || l.Outcomes[schemas.OutcomeInfra] != 0 || h.Count("ask ") != 3*turns {
		t.Errorf("%v: %+v, %d asked", got.err, l, h.Count("ask "))
	}
	// The complete run, whose queue is gone, grows once more.
	h.Tasks, h.spec = 4, "four tasks"
	grown = h.coordinate(t.Context())
	if err := h.join(t.Context(), conn, "w"); err != nil {
		t.Fatal(err)
	}
	if got = <-grown; got.err != nil || got.rep.Ledger.Reused != 3 || got.rep.Ledger.Ran != 1 {
		t.Errorf("%v: %+v", got.err, got.rep.Ledger)
	}
	s, _, err := fleet.ReadStatus(t.Context(), conn, h.Config.RunID, time.Now())
	if err != nil || s.Outcomes[schemas.OutcomeResolved] != 4 || *s.CostUSD != got.rep.Calls.CostUSD {
		t.Errorf("status: %v, %+v", err, s)
	}
}

// A worker that joins a run while the coordinator completes it ends without an error, although
// the streams of the run are gone.
func TestWorkerThatJoinsCompletedRunEnds(t *testing.T) {
	t.Parallel()
	h, conn := newFleet(t, 2)
	end := h.coordinate(t.Context())
	if err := h.join(t.Context(), conn, "first"); err != nil {
		t.Fatal(err)
	}
	if got := <-end; got.err != nil {
		t.Fatal(got.err)
	}
	if err := h.work(t.Context(), conn, "late"); err != nil {
		t.Errorf("the late worker: %v", err)
	}
}
