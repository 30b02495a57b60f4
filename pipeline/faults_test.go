package pipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/internal/pipelinetest"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/schemas"
)

// When a job reaches its wall-clock limit, its running call is canceled and the job ends
// with the outcome "limit". The other jobs end as usual.
func TestWallLimitEndsOnlyItsJob(t *testing.T) {
	t.Parallel()
	h := newHarness(filepath.Join(t.TempDir(), "run"), 4)
	h.Config.Limits.Wall, h.Config.Unsynced = 6*time.Second, true // long enough for the other jobs on a busy machine
	var hung atomic.Int32
	h.OnStep = func(ctx context.Context, j schemas.Job, _ schemas.ToolCall) error {
		if j.Instance == "bug-01" {
			hung.Add(1)
			<-ctx.Done() // a tool that hangs
			return fmt.Errorf("running it: %w", ctx.Err())
		}
		return nil
	}
	h.OnVerify = func(task schemas.Task) (schemas.Verdict, error) {
		if task.InstanceID == "bug-01" {
			return schemas.Verdict{Resolved: new(false), Status: schemas.VerifiedFail, Reason: "test_add fails"}, nil
		}
		return schemas.Verdict{}, nil
	}
	rep := h.MustRun(t)
	if l := pipelinetest.Ledger(t, rep); l.Outcomes["limit"] != 1 || l.Outcomes["resolved"] != 3 || rep.Friction.InfraRetries != 0 || hung.Load() != 1 {
		t.Errorf("%+v, %d retries, %d calls hung", l, rep.Friction.InfraRetries, hung.Load())
	}
	for _, s := range h.Staged(t) {
		if s.Episode.InstanceID != "bug-01" {
			continue
		}
		last := s.Steps[len(s.Steps)-1]
		if s.Episode.ExitReason != schemas.ExitWallTimeout || last.ErrorClass == nil || *last.ErrorClass != schemas.ErrNotExecuted {
			t.Errorf("exit %s, last step %+v", s.Episode.ExitReason, last)
		}
	}
}

// A job whose reset fails is retried. If its resets keep failing, here by a panic, it is
// given up. The other jobs continue.
func TestFailedResetsFailOnlyTheirJob(t *testing.T) {
	t.Parallel()
	h := newHarness(filepath.Join(t.TempDir(), "run"), 3)
	var once atomic.Bool
	var tries atomic.Int32
	h.OnReset = func(_ context.Context, j schemas.Job) error {
		switch {
		case j.Instance == "bug-00" && once.CompareAndSwap(false, true):
			return errors.New("pulling the image: connection reset")
		case j.Instance == "bug-01":
			tries.Add(1)
			panic("no sandbox")
		}
		return nil
	}
	rep := h.MustRun(t)
	if l := pipelinetest.Ledger(t, rep); l.Outcomes["resolved"] != 2 || l.Outcomes["infra"] != 1 || rep.ExitCode != 3 || tries.Load() < 2 {
		t.Errorf("%+v, exit %d, %d tries", l, rep.ExitCode, tries.Load())
	}
	if n := h.Count("ask "); n != 2*turns {
		t.Errorf("%d model calls, want %d", n, 2*turns)
	}
	if n := len(h.Staged(t)); n != 2 || rep.Verdict != observe.WithGaps {
		t.Errorf("%d staged, %s", n, rep.Verdict)
	}
}

// The records of a run contain no diff of a checkout, and no path or name of the host.
func TestRunRecordsContainNoDiffAndNoHostPath(t *testing.T) {
	t.Parallel()
	h := newHarness(filepath.Join(t.TempDir(), "run"), 1)
	h.Config.Resolved = json.RawMessage(`{"run":{"workers":2}}`)
	h.MustRun(t)
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	diff := regexp.MustCompile(`(?m)^\s*"?(diff --git|index [0-9a-f]{7})`)
	check := func(what, text string) {
		for _, place := range []string{h.Dir, home, filepath.Dir(filepath.Dir(here)), name} {
			if len(place) > 3 && strings.Contains(text, place) {
				t.Errorf("%s names %s:\n%s", what, place, text)
			}
		}
	}
	for _, file := range []string{"run.json", "summary.json"} {
		text, err := os.ReadFile(filepath.Join(h.Dir, file))
		if err != nil {
			t.Fatal(err)
		}
		if file == "run.json" {
			check(file, string(text))
		}
		if diff.Match(text) {
			t.Errorf("%s holds a diff:\n%s", file, text)
		}
	}
	for key, s := range h.Staged(t) {
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		check(key, string(text))
	}
}
