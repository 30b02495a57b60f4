package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/internal/pipelinetest"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// Any number of workers use the budget up to less than one call's worst case and never exceed it.
func TestBudgetHoldsWithSixteenWorkers(t *testing.T) {
	t.Parallel()
	h := newHarness(filepath.Join(t.TempDir(), "run"), 40)
	h.Config.Workers, h.Config.MaxCost = 16, 1
	rep, err := h.Run(t.Context())
	if pipelinetest.ExitCode(t, err) != 5 || rep.Calls.Spent() > 1 || rep.Calls.Spent() < 1-callWorst {
		t.Errorf("%v, %+v", err, rep.Calls)
	}
	h.CheckCalls(t, rep, 0, 0)
	h.Config.MaxCost = 100
	rep = h.MustRun(t)
	h.CheckCalls(t, rep, 0, 0)
	if n := h.Count("ask "); n != 40*turns || math.Abs(rep.Effort.SpentNowUSD-(rep.Calls.CostUSD-float64(100)*callCost)) > 2*callWorst {
		t.Errorf("%d questions, $%f now", n, rep.Effort.SpentNowUSD)
	}
}

// An episode at its limit, or its task's, ends and is graded; the run continues.
func TestBudgetsOfEpisodesAndTasks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		task, episode float64
		asked         int
		outcomes      map[string]int
	}{
		"episode": {0, 0.03, 4 * 2, map[string]int{"limit": 4}},
		"task":    {0.06, 0, 2 * 5, map[string]int{"limit": 2, "resolved": 2}},
		"both":    {0.10, 0.05, 4 * 4, map[string]int{"resolved": 4}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(filepath.Join(t.TempDir(), "run"), 2)
			h.Config.Workers, h.Config.Attempts, h.Config.TaskCost, h.Config.EpisodeCost = 1, 2, c.task, c.episode
			h.OnVerify = func(schemas.Task) (schemas.Verdict, error) { return schemas.Verdict{}, nil }
			rep := h.MustRun(t)
			if diff := cmp.Diff(c.outcomes, pipelinetest.Ledger(t, rep).Outcomes); diff != "" || h.Count("ask ") != c.asked {
				t.Errorf("%d questions: %s", h.Count("ask "), diff)
			}
			h.CheckCalls(t, rep, 0, 0)
		})
	}
}

// A process that is killed during a call loses only that call, which counts with its worst case as
// soon as the next process starts.
func TestCallsLostInFlightKeepTheirWorstCase(t *testing.T) {
	t.Parallel()
	for point, asked := range map[string]int{"logged-call": killTasks * turns, "answered-call": killTasks*turns + 1} {
		t.Run(point, func(t *testing.T) {
			h := newHarness(filepath.Join(t.TempDir(), "run"), killTasks)
			h.Config.RunID = "fixed"
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), childDir+"="+h.Dir, childPoint+"="+point, childNth+"=3")
			out, err := cmd.CombinedOutput()
			if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
				t.Fatalf("the child was to be killed, but: %v\n%s", err, out)
			}
			// Two answers are paid, one call is lost: 0.04 are gone.
			h.Config.MaxCost = 0.05
			rep, err := h.Run(t.Context())
			if pipelinetest.ExitCode(t, err) != 5 || rep.Calls.Made != 3 || rep.Calls.LostInFlight != 1 {
				t.Errorf("%v, %+v", err, rep.Calls)
			}
			h.Config.MaxCost = 0
			rep = h.MustRun(t)
			if h.Count("ask ") != asked || rep.Calls.Answered != killTasks*turns {
				t.Errorf("%d questions, %+v", h.Count("ask "), rep.Calls)
			}
			h.CheckCalls(t, rep, 0, 1)
			if again := h.MustRun(t); !cmp.Equal(rep.Calls, again.Calls, pipelinetest.Cents) {
				t.Errorf("read back: %s", cmp.Diff(rep.Calls, again.Calls))
			}
		})
	}
}

// Answers that contain no reply are paid for, so they are recorded: with the call that repeats
// them, and at the end of the job.
func TestAnswersWithoutAReplyAreOnRecord(t *testing.T) {
	t.Parallel()
	h := newHarness(filepath.Join(t.TempDir(), "run"), 1)
	answers := 0
	h.OnAnswer = func(int) (bool, error) {
		if answers++; answers == 1 {
			return true, nil
		}
		return false, &llms.Error{Class: llms.ClassRefused, Message: "no good"}
	}
	rep, err := h.Run(t.Context())
	if pipelinetest.ExitCode(t, err) != 7 || rep.Calls.Answered != 2 {
		t.Errorf("%v, %+v", err, rep.Calls)
	}
	h.OnAnswer = nil
	rep = h.MustRun(t)
	if rep.Calls.Answered != 2+turns || rep.Calls.Prompt != int64(100*(2+turns)) {
		t.Errorf("%+v", rep.Calls)
	}
	h.CheckCalls(t, rep, 0, 0)
}

// A failed call is recorded before the next one begins, even if it ends with its run, so the next
// process knows that it repeats the call.
func TestCancelledCallsAreOnRecord(t *testing.T) {
	t.Parallel()
	h := newHarness(filepath.Join(t.TempDir(), "run"), 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h.OnAsk = func(ctx context.Context, _ schemas.Job, _ int) error {
		cancel()
		return ctx.Err()
	}
	rep, err := h.Run(ctx)
	if pipelinetest.ExitCode(t, err) != 130 || rep.Calls.Failed != 1 {
		t.Errorf("%v, %+v", err, rep.Calls)
	}
	h.OnAsk = nil
	rep = h.MustRun(t)
	if rep.Calls.Retried != 1 {
		t.Errorf("%+v", rep.Calls)
	}
	h.CheckCalls(t, rep, 1, 0)
}

// A call that a panic interrupts counts with its worst case, and its reservation blocks no other
// call.
func TestPanicInACallIsSettled(t *testing.T) {
	t.Parallel()
	h := newHarness(filepath.Join(t.TempDir(), "run"), 2)
	h.Config.Workers, h.Config.MaxCost = 1, 2*turns*callCost+2*callWorst
	var once atomic.Bool
	h.OnAsk = func(context.Context, schemas.Job, int) error {
		if !once.Swap(true) {
			panic("a bug of ours")
		}
		return nil
	}
	rep := h.MustRun(t)
	c := rep.Calls
	if diff := cmp.Diff(callWorst, c.AtRiskUSD, pipelinetest.Cents); diff != "" || c.Made != c.Answered+c.Failed || c.Failed != 1 || c.Answered != 2*turns {
		t.Errorf("%+v %s", c, diff)
	}
	if again := h.MustRun(t); !cmp.Equal(c, again.Calls, pipelinetest.Cents) {
		t.Errorf("read back: %s", cmp.Diff(c, again.Calls))
	}
}

// When the provider's credit ends, no further call begins. Running calls end and are recorded.
func TestQuotaClosesTheQueue(t *testing.T) {
	t.Parallel()
	h := newHarness(filepath.Join(t.TempDir(), "run"), 8)
	h.Config.Workers = 4
	var asking, refused atomic.Int32
	out := make(chan struct{})
	var closed sync.Map // by episode: a context that ends when no call is begun any more
	h.OnTurn = func(ctx context.Context, j schemas.Job, _ int) { closed.Store(j.EpisodeID, ctx) }
	h.OnAsk = func(ctx context.Context, j schemas.Job, turn int) error {
		if turn < 1 {
			return nil
		}
		if asking.Add(1) == 4 { // the other three are under way
			refused.Add(1)
			close(out)
			return &llms.Error{Class: llms.ClassQuota, Status: 429, Message: "insufficient_quota"}
		}
		<-out
		until, _ := closed.Load(j.EpisodeID)
		select {
		case <-until.(context.Context).Done():
		case <-time.After(2 * time.Minute):
			return errors.New("the queue stays open")
		}
		if ctx.Err() != nil {
			return fmt.Errorf("a paid call was cut off: %w", ctx.Err())
		}
		return nil
	}
	rep, err := h.Run(t.Context())
	if pipelinetest.ExitCode(t, err) != 5 || !strings.Contains(err.Error(), "insufficient_quota") || refused.Load() != 1 {
		t.Errorf("%v, %d refused", err, refused.Load())
	}
	if c := rep.Calls; c.Failed != 1 || c.Answered != 4+3 || asking.Load() != 4 {
		t.Errorf("%+v, %d asked after their first turn", c, asking.Load())
	}
	h.CheckCalls(t, rep, 1, 0)
	h.OnTurn, h.OnAsk = nil, nil
	rep = h.MustRun(t)
	if n := h.Count("ask "); n != 8*turns {
		t.Errorf("%d questions, want %d", n, 8*turns)
	}
	h.CheckCalls(t, rep, 1, 0)
}
