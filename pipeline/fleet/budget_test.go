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

// over has a run executed by workers of a cluster and returns what the coordinator
// says; no worker may end with an error.
func (h *harness) over(t *testing.T, conns ...*engine.Conn) result {
	t.Helper()
	end := h.counted(t, conns[0])
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

// cashier reads the budget from the cluster when a job has ended.
type cashier struct {
	observe.Silent
	read func() *observe.Budget
	mu   sync.Mutex
	last *observe.Budget
}

func (c *cashier) JobFinished(schemas.Job, observe.Episode) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = c.read()
}

// counted coordinates a run. It keeps the shared budget as it is after the last job for
// checkBudget, because a complete run removes it.
func (h *harness) counted(t *testing.T, conn *engine.Conn) <-chan result {
	t.Helper()
	at := &cashier{read: func() *observe.Budget {
		s, ok, err := fleet.ReadStatus(t.Context(), conn, h.Config.RunID, time.Now())
		if err != nil || !ok {
			t.Errorf("reading the budget: %+v, %v", s, err)
		}
		return s.Budget
	}}
	h.Change = func(d *pipeline.Deps) { d.Observer = at }
	end := h.coordinate(t.Context())
	h.Change = nil
	out := make(chan result, 1)
	go func() {
		got := <-end
		at.mu.Lock()
		defer at.mu.Unlock()
		got.page = at.last
		out <- got
	}()
	return out
}

// checkBudget compares the shared budget of a run with its report.
func checkBudget(t *testing.T, conn *engine.Conn, got result) {
	t.Helper()
	rep := got.rep
	s, ok, err := fleet.ReadStatus(t.Context(), conn, rep.RunID, time.Now())
	if err != nil || !ok || s.Budget == nil && got.page == nil {
		t.Fatalf("%+v, %v", s, err)
	}
	if s.Phase == string(engine.Completed) {
		s.Budget = got.page
	}
	if b := s.Budget; b == nil || math.Abs(b.SpentUSD-rep.Calls.Spent()) > 1e-9 || b.ReservedUSD != 0 || b.LostUSD != 0 || b.Over != (rep.ExitCode == 5) {
		t.Errorf("%+v on the cluster, reported %+v", b, rep.Calls)
	}
}

// Several processes together keep a limit as one does: less than one call's worst case is left, the
// limit is never exceeded, and the run ends as it does without a cluster. With a higher limit it
// resumes, and what was spent counts.
func TestBudgetHoldsOverACluster(t *testing.T) {
	t.Parallel()
	alone := newHarness(filepath.Join(t.TempDir(), "run"), 24)
	alone.Config.Workers, alone.Config.MaxCost = 12, 0.6
	want, wantErr := alone.Run(t.Context())

	h, conn := newFleet(t, 24)
	h.Config.Workers, h.Config.MaxCost = 4, 0.6
	got := h.over(t, conn, dialNATS(t, conn.Place()), dialNATS(t, conn.Place()))
	if pipelinetest.ExitCode(t, got.err) != pipelinetest.ExitCode(t, wantErr) || got.rep.Verdict != want.Verdict || got.rep.Raise != want.Raise || got.rep.Hint != want.Hint {
		t.Errorf("%v (%s), without a cluster %v (%s)", got.err, got.rep.Verdict, wantErr, want.Verdict)
	}
	if is, was := got.err.Error(), wantErr.Error(); is[:strings.Index(is, "$")] != was[:strings.Index(was, "$")] {
		t.Errorf("%q, without a cluster %q", is, was)
	}
	if c := got.rep.Calls; c.Spent() > 0.6+1e-9 || c.Spent() <= 0.6-callWorst {
		t.Errorf("%+v", c)
	}
	h.CheckCalls(t, got.rep, 0, 0)
	checkBudget(t, conn, got)
	h.Config.MaxCost = 100
	last := h.over(t, conn, dialNATS(t, conn.Place()))
	if last.err != nil || h.Count("ask ") != 24*turns || len(h.Staged(t)) != 24 {
		t.Errorf("%v: %d questions, %d staged", last.err, h.Count("ask "), len(h.Staged(t)))
	}
	h.CheckCalls(t, last.rep, 0, 0)
	checkBudget(t, conn, last)
}

// A task's budget holds for attempts that different workers make; the run continues.
func TestTaskBudgetHoldsOverACluster(t *testing.T) {
	t.Parallel()
	h, conn := newFleet(t, 3)
	h.Config.Workers, h.Config.Attempts, h.Config.TaskCost = 2, 3, 0.06
	h.OnVerify = func(schemas.Task) (schemas.Verdict, error) { return schemas.Verdict{}, nil }
	got := h.over(t, conn, dialNATS(t, conn.Place()))
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

// A run that was begun without limits gets a budget from what its episodes have cost,
// and refuses where a worker may be at work that does not know of it.
func TestBudgetsMayBeSetLater(t *testing.T) {
	t.Parallel()
	h, conn := newFleet(t, 6)
	h.Config.Workers = 1
	ctx, cancel := context.WithCancel(t.Context())
	h.OnAsk = func(calling context.Context, _ schemas.Job, _ int) error {
		if h.Count("ask ") < 6 { // the second episode's third never ends
			return nil
		}
		cancel()
		<-calling.Done()
		return context.Cause(calling)
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
		t.Errorf("beside a worker that counts nothing: %v", got.err)
	}
	h.Config.MaxCost = 0 // as it was told: without these limits, and interrupted
	without, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	end = h.coordinate(without)
	for without.Err() == nil {
		entry, _, err := conn.Run(t.Context(), h.Config.RunID)
		if err == nil && entry.Phase == engine.Working {
			err = conn.PutWorker(t.Context(), engine.WorkerEntry{ID: "x", Name: "x", State: "left"})
			interrupt()
		}
		if err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-end:
			t.Fatalf("without limits, beside that worker: %v", got.err)
		default:
		}
	}
	if got := <-end; got.err == nil {
		t.Error("it was interrupted")
	}
	h.Config.MaxCost = 0.12
	got := h.over(t, conn)
	if c := got.rep.Calls; pipelinetest.ExitCode(t, got.err) != 5 || c.Spent() > 0.12+1e-9 || c.Spent() <= 0.12-callWorst {
		t.Errorf("%v: %+v", got.err, c)
	}
	checkBudget(t, conn, got)
	h.Config.MaxCost = 0 // calls are still counted
	got = h.over(t, conn)
	if got.err != nil || len(h.Staged(t)) != 6 {
		t.Errorf("without a limit: %v", got.err)
	}
}

// The limit of an episode holds beside that of its run.
func TestEpisodeBudgetHoldsOverACluster(t *testing.T) {
	t.Parallel()
	h, conn := newFleet(t, 4)
	h.Config.EpisodeCost, h.Config.MaxCost = 0.03, 10
	h.OnVerify = func(schemas.Task) (schemas.Verdict, error) { return schemas.Verdict{}, nil }
	got := h.over(t, conn)
	if got.err != nil || got.rep.Ledger.Outcomes[schemas.OutcomeLimit] != 4 || h.Count("ask ") != 4*2 {
		t.Errorf("%v: %+v, %d questions", got.err, got.rep.Ledger, h.Count("ask "))
	}
	checkBudget(t, conn, got)
}

// Calls that fail and answers that become no reply cost the budget what is on record
// for them, and an episode that another worker takes up keeps its share.
func TestBudgetCountsAllRecordedCalls(t *testing.T) {
	t.Parallel()
	h, conn := newFleet(t, 3)
	h.Config.Workers, h.Config.MaxCost = 1, 10
	vanish, vanished := context.WithCancelCause(t.Context())
	var once, gone sync.Once
	h.OnAnswer = func(turn int) (again bool, err error) {
		if turn == 1 {
			once.Do(func() { again = true })
		}
		return again, nil
	}
	h.OnStep = func(ctx context.Context, _ schemas.Job, _ schemas.ToolCall) (err error) {
		if h.Count("ask ") < 7 {
			return nil
		}
		gone.Do(func() {
			vanished(errors.New("pulled the plug"))
			<-ctx.Done()
			err = context.Cause(ctx)
		})
		return err
	}
	end := h.counted(t, conn)
	if err := h.join(vanish, conn, "first"); err == nil {
		t.Fatal("the worker was to vanish")
	}
	if err := h.join(t.Context(), conn, "second"); err != nil {
		t.Fatal(err)
	}
	got := <-end
	if got.err != nil || h.Count("ask ") != 3*turns+1 {
		t.Errorf("%v: %d questions", got.err, h.Count("ask "))
	}
	h.CheckCalls(t, got.rep, 0, 0)
	checkBudget(t, conn, got)
}

// Workers start while jobs are still being queued. An interrupt then leaves no call out of the
// report.
func TestAnInterruptWhileQueueingCountsTheCalls(t *testing.T) {
	t.Parallel()
	h, conn := newFleet(t, 1)
	h.Config.Workers, h.Config.Attempts = 2, 400
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h.OnAsk = func(calling context.Context, _ schemas.Job, turn int) error {
		if turn < 1 {
			return nil
		}
		cancel()
		<-calling.Done()
		return context.Cause(calling)
	}
	end := h.coordinate(ctx)
	if err := h.join(t.Context(), conn, "w"); err != nil {
		t.Fatal(err)
	}
	if first := <-end; pipelinetest.ExitCode(t, first.err) != 130 || first.rep.Calls.Spent() == 0 {
		t.Errorf("%v: %+v", first.err, first.rep.Calls)
	}
}

// A budget that is set later counts what attempts have cost that are no longer selected.
func TestATaskPaysForAttemptsThatAreNotSelected(t *testing.T) {
	t.Parallel()
	h, conn := newFleet(t, 1)
	h.Config.Workers, h.Config.Attempts = 2, 2
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stuck := make(chan struct{}, 100)
	h.OnAsk = func(calling context.Context, _ schemas.Job, turn int) error {
		if turn < 2 {
			return nil
		}
		stuck <- struct{}{} // the third call of both never ends
		<-calling.Done()
		return context.Cause(calling)
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
	got := h.over(t, conn)
	if got.err != nil || got.rep.Ledger.Outcomes[schemas.OutcomeLimit] != 1 || h.Count("ask ") != asked {
		t.Errorf("%v: %+v, %d questions more", got.err, got.rep.Ledger, h.Count("ask ")-asked)
	}
}
