package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/internal/pipelinetest"
	"github.com/tracesmith/tracesmith/pipeline"
	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/pipeline/fleet"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/schemas"
)

// runWithWorkers coordinates a run that one worker per connection executes, and returns the result
// of the coordinator. It fails the test if a worker returns an error.
func (h *harness) runWithWorkers(t *testing.T, conns ...*engine.Conn) result {
	t.Helper()
	end := h.coordinateAndWatchBudget(t, conns[0])
	var workers sync.WaitGroup
	for i, conn := range conns {
		workers.Go(func() {
			if err := h.join(t.Context(), conn, fmt.Sprintf("w%d", i)); err != nil {
				t.Errorf("worker %d: %v", i, err)
			}
		})
	}
	got := <-end
	workers.Wait()
	return got
}

// budgetReader is an observer that reads the budget from the cluster whenever a job has ended.
type budgetReader struct {
	observe.Silent
	read func() *observe.Budget
	mu   sync.Mutex
	last *observe.Budget
}

func (r *budgetReader) JobFinished(schemas.Job, observe.Episode) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = r.read()
}

// coordinateAndWatchBudget coordinates a run in the background. The result contains the shared
// budget as it was after the last job, because a complete run removes it.
func (h *harness) coordinateAndWatchBudget(t *testing.T, conn *engine.Conn) <-chan result {
	t.Helper()
	reader := &budgetReader{read: func() *observe.Budget {
		s, ok, err := fleet.ReadStatus(t.Context(), conn, h.Config.RunID, time.Now())
		if err != nil || !ok {
			t.Errorf("reading the budget: %+v, %v", s, err)
		}
		return s.Budget
	}}
	h.ChangeDeps = func(d *pipeline.Deps) { d.Observer = reader }
	end := h.coordinate(t.Context())
	h.ChangeDeps = nil
	out := make(chan result, 1)
	go func() {
		got := <-end
		reader.mu.Lock()
		defer reader.mu.Unlock()
		got.budget = reader.last
		out <- got
	}()
	return out
}

// checkBudget compares the shared budget of a run with its report.
func checkBudget(t *testing.T, conn *engine.Conn, got result) {
	t.Helper()
	rep := got.rep
	s, ok, err := fleet.ReadStatus(t.Context(), conn, rep.RunID, time.Now())
	if err != nil || !ok || s.Budget == nil && got.budget == nil {
		t.Fatalf("%+v, %v", s, err)
	}
	if s.Phase == string(engine.Completed) {
		s.Budget = got.budget
	}
	if b := s.Budget; b == nil || math.Abs(b.SpentUSD-rep.Calls.Spent()) > 1e-9 || b.ReservedUSD != 0 || b.LostUSD != 0 || b.UsedUp != (rep.ExitCode == 5) {
		t.Errorf("the cluster has the budget %+v, the report has the calls %+v", b, rep.Calls)
	}
}

// Several worker processes together keep the budget of a run: they never exceed it, leave less of
// it than the worst case of one call, and the run ends as it does without a cluster. With a higher
// limit the run resumes, and the earlier calls count.
func TestRunBudgetHoldsOnCluster(t *testing.T) {
	t.Parallel()
	alone := newHarness(filepath.Join(t.TempDir(), "run"), 24)
	alone.Config.Workers, alone.Config.MaxCost = 12, 0.6
	want, wantErr := alone.Run(t.Context())

	h, conn := newFleet(t, 24)
	h.Config.Workers, h.Config.MaxCost = 4, 0.6
	got := h.runWithWorkers(t, conn, dialNATS(t, conn.Place()), dialNATS(t, conn.Place()))
	if pipelinetest.ExitCode(t, got.err) != pipelinetest.ExitCode(t, wantErr) || got.rep.Verdict != want.Verdict || got.rep.FlagToRaise != want.FlagToRaise || got.rep.Hint != want.Hint {
		t.Errorf("%v (%s), without a cluster %v (%s)", got.err, got.rep.Verdict, wantErr, want.Verdict)
	}
	if message, want := got.err.Error(), wantErr.Error(); message[:strings.Index(message, "$")] != want[:strings.Index(want, "$")] {
		t.Errorf("%q, without a cluster %q", message, want)
	}
	if c := got.rep.Calls; c.Spent() > 0.6+1e-9 || c.Spent() <= 0.6-callWorst {
		t.Errorf("%+v", c)
	}
	h.CheckCalls(t, got.rep, 0, 0)
	checkBudget(t, conn, got)
	h.Config.MaxCost = 100
	last := h.runWithWorkers(t, conn, dialNATS(t, conn.Place()))
	if last.err != nil || h.Count("ask ") != 24*turns || len(h.Staged(t)) != 24 {
		t.Errorf("%v: %d model calls, %d staged", last.err, h.Count("ask "), len(h.Staged(t)))
	}
	h.CheckCalls(t, last.rep, 0, 0)
	checkBudget(t, conn, last)
}

// The attempts at a task together keep the budget of the task, even if different workers execute
// them. The run continues.
func TestTaskBudgetHoldsOnCluster(t *testing.T) {
	t.Parallel()
	h, conn := newFleet(t, 3)
	h.Config.Workers, h.Config.Attempts, h.Config.TaskCost = 2, 3, 0.06
	h.OnVerify = func(schemas.Task) (schemas.Verdict, error) { return schemas.Verdict{}, nil }
	got := h.runWithWorkers(t, conn, dialNATS(t, conn.Place()))
	l := pipelinetest.Ledger(t, got.rep)
	if got.err != nil || l.Ran != 9 || l.Outcomes[schemas.OutcomeLimit] == 0 || l.Outcomes[schemas.OutcomeLimit]+l.Outcomes[schemas.OutcomeResolved] != 9 {
		t.Errorf("%v: %+v", got.err, l)
	}
	spent := map[string]float64{}
	for _, e := range got.rep.Episodes {
		spent[e.Instance] += e.Calls.Spent()
	}
	for task, usd := range spent {
		if usd > 0.06+1e-9 || usd <= 0.06-callWorst {
			t.Errorf("%s: $%.4f", task, usd)
		}
	}
	h.CheckCalls(t, got.rep, 0, 0)
	checkBudget(t, conn, got)
}

// A run that was started without limits can get a budget later, which counts the earlier calls.
// It is refused while a worker may be running that does not know about the budget.
func TestBudgetMayBeSetLater(t *testing.T) {
	t.Parallel()
	h, conn := newFleet(t, 6)
	h.Config.Workers = 1
	ctx, cancel := context.WithCancel(t.Context())
	h.OnAsk = func(callCtx context.Context, _ schemas.Job, _ int) error {
		if h.Count("ask ") < 6 { // the third call of the second episode never ends
			return nil
		}
		cancel()
		<-callCtx.Done()
		return context.Cause(callCtx)
	}
	end := h.coordinate(ctx)
	if err := h.join(t.Context(), conn, "w"); err != nil {
		t.Fatal(err)
	}
	if got := <-end; pipelinetest.ExitCode(t, got.err) != 130 {
		t.Fatal(got.err)
	}
	h.OnAsk = nil
	for _, w := range []engine.WorkerEntry{{ID: "w", State: "left"}, {ID: "x", Name: "x", RunID: h.Config.RunID, State: "working"}} {
		if err := conn.PutWorker(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	h.Config.MaxCost = 0.12
	if got := <-h.coordinate(t.Context()); pipelinetest.ExitCode(t, got.err) != 2 || !strings.Contains(got.err.Error(), "worker x may still work") {
		t.Errorf("a budget while a worker may run without one: %v", got.err)
	}
	h.Config.MaxCost = 0 // the remedy of the error: start without these limits, and interrupt
	unlimited, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	end = h.coordinate(unlimited)
	for unlimited.Err() == nil {
		entry, _, err := conn.RunEntry(t.Context(), h.Config.RunID)
		if err == nil && entry.Phase == engine.Working {
			err = conn.PutWorker(t.Context(), engine.WorkerEntry{ID: "x", Name: "x", State: "left"})
			interrupt()
		}
		if err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-end:
			t.Fatalf("without limits, while that worker may run: %v", got.err)
		default:
		}
	}
	if got := <-end; got.err == nil {
		t.Error("the interrupted coordinator returned no error")
	}
	h.Config.MaxCost = 0.12
	got := h.runWithWorkers(t, conn)
	if c := got.rep.Calls; pipelinetest.ExitCode(t, got.err) != 5 || c.Spent() > 0.12+1e-9 || c.Spent() <= 0.12-callWorst {
		t.Errorf("%v: %+v", got.err, c)
	}
	checkBudget(t, conn, got)
	h.Config.MaxCost = 0 // calls are still counted
	got = h.runWithWorkers(t, conn)
	if got.err != nil || len(h.Staged(t)) != 6 {
		t.Errorf("without a limit: %v", got.err)
	}
}

// The budget of an episode holds in addition to that of its run.
func TestEpisodeBudgetHoldsOnCluster(t *testing.T) {
	t.Parallel()
	h, conn := newFleet(t, 4)
	h.Config.EpisodeCost, h.Config.MaxCost = 0.03, 10
	h.OnVerify = func(schemas.Task) (schemas.Verdict, error) { return schemas.Verdict{}, nil }
	got := h.runWithWorkers(t, conn)
	if got.err != nil || got.rep.Ledger.Outcomes[schemas.OutcomeLimit] != 4 || h.Count("ask ") != 4*2 {
		t.Errorf("%v: %+v, %d model calls", got.err, got.rep.Ledger, h.Count("ask "))
	}
	checkBudget(t, conn, got)
}

// The budget counts all recorded calls, including failed ones and answers that did not become a
// reply. An episode that another worker continues keeps its share of the budget.
func TestBudgetCountsAllRecordedCalls(t *testing.T) {
	t.Parallel()
	h, conn := newFleet(t, 3)
	h.Config.Workers, h.Config.MaxCost = 1, 10
	first, kill := context.WithCancelCause(t.Context())
	var repeatOnce, killOnce sync.Once
	h.OnAnswer = func(turn int) (askAgain bool, err error) {
		if turn == 1 {
			repeatOnce.Do(func() { askAgain = true })
		}
		return askAgain, nil
	}
	h.OnStep = func(ctx context.Context, _ schemas.Job, _ schemas.ToolCall) (err error) {
		if h.Count("ask ") < 7 {
			return nil
		}
		killOnce.Do(func() {
			kill(errors.New("pulled the plug"))
			<-ctx.Done()
			err = context.Cause(ctx)
		})
		return err
	}
	end := h.coordinateAndWatchBudget(t, conn)
	if err := h.join(first, conn, "first"); err == nil {
		t.Fatal("the canceled worker returned no error")
	}
	if err := h.join(t.Context(), conn, "second"); err != nil {
		t.Fatal(err)
	}
	got := <-end
	if got.err != nil || h.Count("ask ") != 3*turns+1 {
		t.Errorf("%v: %d model calls", got.err, h.Count("ask "))
	}
	h.CheckCalls(t, got.rep, 0, 0)
	checkBudget(t, conn, got)
}

// Workers start while jobs are still being queued. If the coordinator is interrupted then, its
// report still contains all calls.
func TestInterruptWhileQueueingCountsTheCalls(t *testing.T) {
	t.Parallel()
	h, conn := newFleet(t, 1)
	h.Config.Workers, h.Config.Attempts = 2, 400
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h.OnAsk = func(callCtx context.Context, _ schemas.Job, turn int) error {
		if turn < 1 {
			return nil
		}
		cancel()
		<-callCtx.Done()
		return context.Cause(callCtx)
	}
	end := h.coordinate(ctx)
	if err := h.join(t.Context(), conn, "w"); err != nil {
		t.Fatal(err)
	}
	if first := <-end; pipelinetest.ExitCode(t, first.err) != 130 || first.rep.Calls.Spent() == 0 {
		t.Errorf("%v: %+v", first.err, first.rep.Calls)
	}
}

// A task budget that is set later counts the calls of attempts that are no longer selected.
func TestTaskBudgetCountsUnselectedAttempts(t *testing.T) {
	t.Parallel()
	h, conn := newFleet(t, 1)
	h.Config.Workers, h.Config.Attempts = 2, 2
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stuck := make(chan struct{}, 100)
	h.OnAsk = func(callCtx context.Context, _ schemas.Job, turn int) error {
		if turn < 2 {
			return nil
		}
		stuck <- struct{}{} // the third call of either attempt never ends
		<-callCtx.Done()
		return context.Cause(callCtx)
	}
	go func() { <-stuck; <-stuck; cancel() }()
	end := h.coordinate(ctx)
	if err := h.join(t.Context(), conn, "w"); err != nil {
		t.Fatal(err)
	}
	first := <-end
	if pipelinetest.ExitCode(t, first.err) != 130 || first.rep.Calls.Spent() < 0.04 {
		t.Fatalf("%v: %+v", first.err, first.rep.Calls)
	}
	h.OnAsk = nil
	asked := h.Count("ask ")
	h.Config.Attempts, h.Config.TaskCost = 1, first.rep.Calls.Spent()+callWorst/2
	got := h.runWithWorkers(t, conn)
	if got.err != nil || got.rep.Ledger.Outcomes[schemas.OutcomeLimit] != 1 || h.Count("ask ") != asked {
		t.Errorf("%v: %+v, %d more model calls", got.err, got.rep.Ledger, h.Count("ask ")-asked)
	}
}
