package pipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/internal/pipelinetest"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/pipeline"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// A row contains the settings and limits of its agent.
func TestConfigurationOfTheAgent(t *testing.T) {
	t.Parallel()
	h := newHarness(filepath.Join(t.TempDir(), "run"), 1)
	h.Config.Limits = agents.Limits{MaxSteps: 40, Wall: time.Minute}
	h.MustRun(t)
	want := `{"limits":{"episode_cost_usd":0,"max_format_errors":0,"max_prompt_tokens":0,"max_repeats":0,"max_steps":40,"task_cost_usd":0,"wall_s":60},"settings":{}}`
	for _, s := range h.Staged(t) {
		if diff := cmp.Diff(want, *s.Episode.ConfigJSON); diff != "" || *s.Episode.ConfigSHA256 != schemas.HashBytes([]byte(want)) {
			t.Error(diff)
		}
	}
}

func TestSecondRunExecutesNothing(t *testing.T) {
	t.Parallel()
	h := newHarness(filepath.Join(t.TempDir(), "run"), 3)
	h.Config.Attempts = 2
	rep := h.MustRun(t)
	want := observe.Ledger{Selected: 6, Ran: 6, Outcomes: map[string]int{"resolved": 6}}
	if diff := cmp.Diff(want, pipelinetest.Ledger(t, rep)); diff != "" {
		t.Error(diff)
	}
	if rep.ExitCode != 0 || rep.Verdict != observe.Complete || rep.Outcome.Tasks != 3 || rep.Outcome.ResolvedTasks != 3 {
		t.Errorf("report: %+v", rep)
	}
	staged := h.Staged(t)
	if len(staged) != 6 {
		t.Fatalf("%d objects staged", len(staged))
	}
	for name, s := range staged {
		if s.Episode.EpisodeID+".json.zst" != name || len(s.Steps) != turns+2 || *s.Episode.Outcome != "resolved" || *s.Episode.CostUSD != 0.04 {
			t.Errorf("%s: %+v", name, s.Episode)
		}
	}
	for _, f := range []string{"run.json", "summary.json", "summary.md"} {
		if info, err := os.Stat(filepath.Join(h.Dir, f)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, or others can read it, although a configuration may contain private values", f, err)
		}
	}
	if _, err := os.Stat(filepath.Join(h.Dir, "engine")); !os.IsNotExist(err) {
		t.Errorf("the engine's files are left after a complete run: %v", err)
	}

	before, times := h.Count(""), modTimes(t, h.Dir)
	again := h.MustRun(t)
	if diff := cmp.Diff(observe.Ledger{Selected: 6, Reused: 6, Outcomes: map[string]int{}}, pipelinetest.Ledger(t, again)); diff != "" {
		t.Error(diff)
	}
	if again.ExitCode != 0 || h.Count("") != before {
		t.Errorf("the second run executed something: exit %d, %d more notes", again.ExitCode, h.Count("")-before)
	}
	if diff := cmp.Diff(times, modTimes(t, h.Dir)); diff != "" {
		t.Errorf("staged objects were touched: %s", diff)
	}
	if diff := cmp.Diff(rep.Outcome, again.Outcome); diff != "" {
		t.Error(diff)
	}
}

func modTimes(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	files, _ := filepath.Glob(filepath.Join(dir, "staging", "*", "*"))
	for _, f := range files {
		st, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		out[f] = st.ModTime().UnixNano()
	}
	return out
}

func TestMoreAttemptsExtendARun(t *testing.T) {
	t.Parallel()
	h := newHarness(filepath.Join(t.TempDir(), "run"), 2)
	h.MustRun(t)
	h.Config.Attempts, h.Config.Workers = 3, 4
	l := pipelinetest.Ledger(t, h.MustRun(t))
	if l.Reused != 2 || l.Ran != 4 {
		t.Errorf("%+v", l)
	}
}

func TestInfraFailuresAreRetriedAndThenGivenUp(t *testing.T) {
	t.Parallel()
	h := newHarness(filepath.Join(t.TempDir(), "run"), 2)
	var fails atomic.Int32
	fails.Store(2)
	h.OnVerify = func(task schemas.Task) (schemas.Verdict, error) {
		if task.InstanceID == "bug-01" && fails.Add(-1) >= 0 {
			return schemas.Verdict{Status: schemas.VerifyError, Reason: "sandbox would not start"}, nil
		}
		return schemas.Verdict{}, nil
	}
	rep := h.MustRun(t)
	if l := pipelinetest.Ledger(t, rep); l.Outcomes["resolved"] != 2 || rep.Friction.InfraRetries != 2 {
		t.Errorf("%+v %+v", l, rep.Friction)
	}
	if n := h.Count("ask "); n != 2*turns {
		t.Errorf("%d model calls, want %d: a retry repeats no call", n, 2*turns)
	}

	h = newHarness(filepath.Join(t.TempDir(), "run"), 2)
	h.OnStep = func(_ context.Context, j schemas.Job, _ schemas.ToolCall) error {
		if j.Instance == "bug-00" {
			return errors.New("container vanished")
		}
		return nil
	}
	rep = h.MustRun(t)
	l := pipelinetest.Ledger(t, rep)
	if l.Outcomes["infra"] != 1 || l.Outcomes["resolved"] != 1 || rep.ExitCode != 3 || rep.Verdict != observe.WithGaps {
		t.Errorf("%+v exit %d", l, rep.ExitCode)
	}
	if len(h.Staged(t)) != 1 {
		t.Error("an infrastructure failure was staged")
	}
	letters, err := os.ReadFile(filepath.Join(h.Dir, "dead-letters.jsonl"))
	if err != nil || !strings.Contains(string(letters), "container vanished") {
		t.Errorf("dead letters: %s %v", letters, err)
	}

	rep = h.MustRun(t) // without --retry the job is not run again
	if l := pipelinetest.Ledger(t, rep); l.Reused != 1 || l.Missing != 1 || rep.ExitCode != 3 || !strings.Contains(rep.Missing[0].Reason, "container vanished") {
		t.Errorf("%+v %+v", l, rep.Missing)
	}
	h.OnStep, h.Config.Retry = nil, []string{"infra"}
	rep = h.MustRun(t)
	if l := pipelinetest.Ledger(t, rep); l.Reused != 1 || l.Outcomes["resolved"] != 1 || rep.ExitCode != 0 {
		t.Errorf("%+v", l)
	}
	if _, err := os.Stat(filepath.Join(h.Dir, "dead-letters.jsonl")); !os.IsNotExist(err) {
		t.Errorf("the dead letters were not removed: %v", err)
	}
}

func TestPanicInStageFailsOnlyThatJob(t *testing.T) {
	t.Parallel()
	h := newHarness(filepath.Join(t.TempDir(), "run"), 2)
	h.OnStep = func(_ context.Context, j schemas.Job, _ schemas.ToolCall) error {
		if j.Instance == "bug-00" {
			panic("a bug")
		}
		return nil
	}
	rep := h.MustRun(t)
	if l := pipelinetest.Ledger(t, rep); l.Outcomes["infra"] != 1 || l.Outcomes["resolved"] != 1 {
		t.Errorf("%+v", l)
	}
}

func TestFatalErrorsStopTheRunWithTheirExitCode(t *testing.T) {
	t.Parallel()
	for class, code := range map[llms.Class]int{llms.ClassAuth: 4, llms.ClassQuota: 5, llms.ClassNotFound: 7, llms.ClassUnreachable: 7} {
		t.Run(string(class), func(t *testing.T) {
			h := newHarness(filepath.Join(t.TempDir(), "run"), 3)
			h.Config.Workers = 1
			h.OnAsk = func(context.Context, schemas.Job, int) error { return &llms.Error{Class: class, Message: "no"} }
			rep, err := h.Run(t.Context())
			if got := pipelinetest.ExitCode(t, err); got != code || rep.ExitCode != code {
				t.Errorf("exit %d, report %d, want %d", got, rep.ExitCode, code)
			}
			if l := pipelinetest.Ledger(t, rep); l.Missing != 2 || l.Outcomes["cancelled"] != 1 {
				t.Errorf("%+v", l)
			}
			h.OnAsk = nil
			if l := pipelinetest.Ledger(t, h.MustRun(t)); l.Outcomes["resolved"] != 3 {
				t.Errorf("resumed: %+v", l)
			}
		})
	}
}

func TestBudgetStopsAndResumes(t *testing.T) {
	t.Parallel()
	h := newHarness(filepath.Join(t.TempDir(), "run"), 3)
	h.Config.Workers, h.Config.MaxCost = 1, 0.06
	rep, err := h.Run(t.Context())
	if code := pipelinetest.ExitCode(t, err); code != 5 || rep.Verdict != observe.OverBudget {
		t.Errorf("exit %d, %s", code, rep.Verdict)
	}
	if n := h.Count("ask "); n != 5 { // the sixth could cost 0.02
		t.Errorf("%d calls for 0.06 at 0.01 each", n)
	}
	if _, err := h.Run(t.Context()); pipelinetest.ExitCode(t, err) != 5 || h.Count("ask ") != 5 {
		t.Errorf("the used-up budget paid for %d more calls", h.Count("ask ")-5)
	}
	h.Config.MaxCost = 1
	rep = h.MustRun(t)
	pipelinetest.Ledger(t, rep)
	if n := h.Count("ask "); n != 3*turns || len(h.Staged(t)) != 3 || rep.Calls.LostInFlight != 0 {
		t.Errorf("%d calls in total, want %d; %d lost", n, 3*turns, rep.Calls.LostInFlight)
	}
}

func TestCancelKeepsEverythingResumable(t *testing.T) {
	t.Parallel()
	h := newHarness(filepath.Join(t.TempDir(), "run"), 4)
	ctx, cancel := context.WithCancel(t.Context())
	h.OnStep = func(ctx context.Context, _ schemas.Job, c schemas.ToolCall) error {
		if c.Name == "edit" {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}
	rep, err := h.Run(ctx)
	if code := pipelinetest.ExitCode(t, err); code != 130 || rep.Verdict != observe.Interrupted || !errors.Is(err, context.Canceled) {
		t.Errorf("exit %d %s %v", code, rep.Verdict, err)
	}
	if l := pipelinetest.Ledger(t, rep); l.Outcomes["cancelled"] == 0 || l.Missing == 0 {
		t.Errorf("%+v", l)
	}
	h.OnStep = nil
	if l := pipelinetest.Ledger(t, h.MustRun(t)); l.Outcomes["resolved"] != 4 {
		t.Errorf("%+v", l)
	}
	if n := h.Count("ask "); n != 4*turns {
		t.Errorf("%d model calls, want %d", n, 4*turns)
	}
}

func TestDrainFinishesRunningJobs(t *testing.T) {
	t.Parallel()
	h := newHarness(filepath.Join(t.TempDir(), "run"), 5)
	h.Config.Workers = 1
	drain := make(chan struct{})
	h.ChangeDeps = func(d *pipeline.Deps) { d.Drain = drain }
	var once sync.Once
	h.OnStep = func(context.Context, schemas.Job, schemas.ToolCall) error {
		once.Do(func() { close(drain) })
		return nil
	}
	rep, err := h.Run(t.Context())
	if code := pipelinetest.ExitCode(t, err); code != 130 {
		t.Errorf("exit %d", code)
	}
	if l := pipelinetest.Ledger(t, rep); l.Outcomes["resolved"] != l.Ran || l.Ran == 0 || l.Missing == 0 {
		t.Errorf("%+v", l)
	}
}

// flakyStore is a store whose first calls of Create fail with err.
type flakyStore struct {
	sinks.Store
	failures atomic.Int32 // calls that still have to fail
	err      error
}

func (f *flakyStore) Create(ctx context.Context, key string, body []byte) error {
	if f.failures.Add(-1) >= 0 {
		return f.err
	}
	return f.Store.Create(ctx, key, body)
}

func TestStoreErrorsLoseNothing(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		err      error
		failures int32
		code     int // 0: recovers within the run
	}{
		"outage":    {errors.New("503 slow down"), 2, 0},
		"denied":    {sinks.ErrDenied, 1000, 8},
		"disk full": {&os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, 1000, 2},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			h := newHarness(filepath.Join(t.TempDir(), "run"), 2)
			h.Config.Workers = 1
			h.WrapStore = func(s sinks.Store) sinks.Store {
				f := &flakyStore{Store: s, err: c.err}
				f.failures.Store(c.failures)
				return f
			}
			rep, err := h.Run(t.Context())
			pipelinetest.Ledger(t, rep)
			if c.code != 0 {
				if got := pipelinetest.ExitCode(t, err); got != c.code {
					t.Errorf("exit %d, want %d: %v", got, c.code, err)
				}
				h.WrapStore = nil
				rep, err = h.Run(t.Context())
			}
			if err != nil || len(h.Staged(t)) != 2 || h.Count("ask ") != 2*turns || h.Count("verify ") != 2 {
				t.Errorf("%v: %d staged, %d model calls, %d verifications", err, len(h.Staged(t)), h.Count("ask "), h.Count("verify "))
			}
			if rep.ExitCode != 0 {
				t.Errorf("exit %d", rep.ExitCode)
			}
		})
	}
}

func TestSummaryFileMatchesReport(t *testing.T) {
	t.Parallel()
	h := newHarness(filepath.Join(t.TempDir(), "run"), 2)
	rep := h.MustRun(t)
	raw, err := os.ReadFile(filepath.Join(h.Dir, "summary.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got observe.Report
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rep.Ledger, got.Ledger); diff != "" || got.SchemaVersion != observe.ReportVersion {
		t.Errorf("%s %s", diff, got.SchemaVersion)
	}
}
