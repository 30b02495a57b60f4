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

// Sixteen workers never exceed the budget, and what they leave of it is less than the worst case
// of one call.
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
		t.Errorf("%d model calls, $%f now", n, rep.Effort.SpentNowUSD)
	}
}

// An episode that reaches its own cost limit or that of its task ends and is graded. The run
// continues.
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
				t.Errorf("%d model calls: %s", h.Count("ask "), diff)
			}
			h.CheckCalls(t, rep, 0, 0)
		})
	}
}

// A process that is killed during a call loses only that call. The next process counts it at its
// worst-case cost and repeats it. The child kills itself in its third call: after the announcement
// of the call is logged ("logged-call"), or after the answer arrives and before it is logged
// ("answered-call"). Only in the second case has the provider received the lost call.
func TestCallsLostInFlightKeepTheirWorstCase(t *testing.T) {
	t.Parallel()
	for point, requests := range map[string]int{"logged-call": killTasks * turns, "answered-call": killTasks*turns + 1} {
		t.Run(point, func(t *testing.T) {
			h := newHarness(filepath.Join(t.TempDir(), "run"), killTasks)
			h.Config.RunID = "fixed"
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), childDir+"="+h.Dir, childPoint+"="+point, childNth+"=3")
			out, err := cmd.CombinedOutput()
			if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
				t.Fatalf("the child was not killed: %v\n%s", err, out)
			}
			// Two answers at 0.01 are paid, and one call is lost at its worst case of 0.02.
			h.Config.MaxCost = 0.05
			rep, err := h.Run(t.Context())
			if pipelinetest.ExitCode(t, err) != 5 || rep.Calls.Made != 3 || rep.Calls.LostInFlight != 1 {
				t.Errorf("%v, %+v", err, rep.Calls)
			}
			h.Config.MaxCost = 0
			rep = h.MustRun(t)
			if h.Count("ask ") != requests || rep.Calls.Answered != killTasks*turns {
				t.Errorf("%d model calls, %+v", h.Count("ask "), rep.Calls)
			}
			h.CheckCalls(t, rep, 0, 1)
			if again := h.MustRun(t); !cmp.Equal(rep.Calls, again.Calls, pipelinetest.Cents) {
				t.Errorf("read back: %s", cmp.Diff(rep.Calls, again.Calls))
			}
		})
	}
}

// An answer without a usable reply costs money, so its payment is recorded. The step log gets it
// when the next call of the job starts, or when the job ends without another call.
func TestAnswersWithoutReplyAreRecorded(t *testing.T) {
	t.Parallel()
	h := newHarness(filepath.Join(t.TempDir(), "run"), 1)
	answers := 0
	h.OnAnswer = func(int) (bool, error) {
		if answers++; answers == 1 {
			return true, nil
		}
		return false, &llms.Error{Class: llms.ClassBadRequest, Message: "no good"}
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

// A failed call is recorded before the next one starts, even if the run is canceled, so that the
// next process knows that it repeats the call.
func TestCanceledCallsAreRecorded(t *testing.T) {
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

// A call that a panic interrupts counts at its worst-case cost, and its reservation does not
// block other calls.
func TestPanicInCallIsSettled(t *testing.T) {
	t.Parallel()
	h := newHarness(filepath.Join(t.TempDir(), "run"), 2)
	h.Config.Workers, h.Config.MaxCost = 1, 2*turns*callCost+2*callWorst
	var once atomic.Bool
	h.OnAsk = func(context.Context, schemas.Job, int) error {
		if !once.Swap(true) {
			panic("a bug")
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

// When the provider's account has no credit left, no further call starts. Running calls end and
// are recorded.
func TestExhaustedQuotaStopsNewCalls(t *testing.T) {
	t.Parallel()
	h := newHarness(filepath.Join(t.TempDir(), "run"), 8)
	h.Config.Workers = 4
	var asking, refused atomic.Int32
	exhausted := make(chan struct{})
	var turnContexts sync.Map // by episode: a context that ends when no further call may start
	h.OnTurn = func(ctx context.Context, j schemas.Job, _ int) { turnContexts.Store(j.EpisodeID, ctx) }
	h.OnAsk = func(ctx context.Context, j schemas.Job, turn int) error {
		if turn < 1 {
			return nil
		}
		if asking.Add(1) == 4 { // the other three are in progress
			refused.Add(1)
			close(exhausted)
			return &llms.Error{Class: llms.ClassQuota, Status: 429, Message: "insufficient_quota"}
		}
		<-exhausted
		turnCtx, _ := turnContexts.Load(j.EpisodeID)
		select {
		case <-turnCtx.(context.Context).Done():
		case <-time.After(2 * time.Minute):
			return errors.New("further calls may still start")
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
		t.Errorf("%d model calls, want %d", n, 8*turns)
	}
	h.CheckCalls(t, rep, 1, 0)
}
