package pipeline_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/internal/pipelinetest"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/pipeline"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// A failed preflight stops the run before any job is taken. Each invocation calls Preflight once,
// or not at all if there is nothing to do.
func TestPreflight(t *testing.T) {
	t.Parallel()
	h := newHarness(filepath.Join(t.TempDir(), "run"), 3)
	failure, calls := errors.New("no sandbox here"), 0
	h.ChangeDeps = func(d *pipeline.Deps) {
		d.Preflight = func(context.Context) error { calls++; return failure }
	}
	rep, err := h.Run(t.Context())
	stop, ok := errors.AsType[*pipeline.StopError](err)
	if !ok || stop.Code != 7 || rep.ExitCode != 7 || rep.Verdict != observe.Stopped || rep.Error != failure.Error() {
		t.Errorf("%v; %+v", err, rep)
	}
	if l := rep.Ledger; l.Missing != 3 || l.Ran != 0 || h.Count("env") != 0 {
		t.Errorf("%+v, %d environments", l, h.Count("env"))
	}
	if _, err := os.Stat(filepath.Join(h.Dir, "engine")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the engine was opened: %v", err)
	}
	failure = nil
	h.MustRun(t)
	h.MustRun(t)
	if calls != 2 {
		t.Errorf("Preflight was called %d times, want 2", calls)
	}
}

// unsafeStore is a store whose Probe finds that it ignores conditional writes.
type unsafeStore struct {
	sinks.Store
	probes *int
}

func (u unsafeStore) Probe(context.Context) error { *u.probes++; return sinks.ErrUnsafe }

// If episodes could overwrite each other, no episode starts. The store is not probed if there is
// nothing to do.
func TestUnsafeStagingIsRefused(t *testing.T) {
	t.Parallel()
	h := newHarness(filepath.Join(t.TempDir(), "run"), 2)
	h.Config.Staging, h.Config.RunID = h.Dir, "elsewhere"
	probes := 0
	h.WrapStore = func(s sinks.Store) sinks.Store { return unsafeStore{s, &probes} }
	_, err := h.Run(t.Context())
	stop, ok := errors.AsType[*pipeline.StopError](err)
	if !ok || stop.Code != 8 || !errors.Is(err, sinks.ErrUnsafe) || h.Count("env") != 0 || probes != 1 {
		t.Errorf("%v; %d environments, probed %d times", err, h.Count("env"), probes)
	}
	h.WrapStore = nil
	h.MustRun(t)
	h.WrapStore = func(s sinks.Store) sinks.Store { return unsafeStore{s, &probes} }
	if h.MustRun(t); probes != 1 {
		t.Errorf("probed %d times", probes)
	}
}

// The run's own directory is probed as well: its file system may not support hard links.
func TestUnsafeRunDirectoryIsRefused(t *testing.T) {
	t.Parallel()
	h := newHarness(filepath.Join(t.TempDir(), "run"), 2)
	probes := 0
	h.WrapStore = func(s sinks.Store) sinks.Store { return unsafeStore{s, &probes} }
	_, err := h.Run(t.Context())
	stop, ok := errors.AsType[*pipeline.StopError](err)
	if !ok || stop.Code != 8 || !strings.Contains(stop.Remedy, "run.staging") || strings.Contains(err.Error(), "run.staging: ") {
		t.Errorf("got %v, want an error with exit code 8 whose remedy names run.staging", err)
	}
	if n := h.Count("env"); n != 0 || probes != 1 {
		t.Errorf("%d environments, probed %d times", n, probes)
	}
}

// The remedy for a failed preflight depends on the class of the model server's error.
func TestRemedyFitsTheModelError(t *testing.T) {
	t.Parallel()
	for class, want := range map[llms.Class]string{
		llms.ClassNotFound:    "models list",
		llms.ClassBadRequest:  "docs/wire.md",
		llms.ClassUnreachable: "that the model server runs",
	} {
		h := newHarness(filepath.Join(t.TempDir(), "run"), 1)
		h.ChangeDeps = func(d *pipeline.Deps) {
			d.Preflight = func(context.Context) error { return &agents.FatalError{Class: class, Err: errors.New("no")} }
		}
		_, err := h.Run(t.Context())
		if stop, ok := errors.AsType[*pipeline.StopError](err); !ok || stop.Code != 7 || !strings.Contains(stop.Remedy, want) {
			t.Errorf("%s: %+v, want the remedy %q", class, err, want)
		}
	}
}

// A job that fails because of its task is given up at once. It runs again if the run retries
// infrastructure failures.
func TestTaskErrorsAreNotRetried(t *testing.T) {
	t.Parallel()
	h := newHarness(filepath.Join(t.TempDir(), "run"), 3)
	broken := true
	h.OnVerify = func(task schemas.Task) (schemas.Verdict, error) {
		if broken && task.InstanceID == "bug-01" {
			return schemas.Verdict{}, &pipeline.TaskError{Err: errors.New("no tests")}
		}
		return schemas.Verdict{}, nil
	}
	rep := h.MustRun(t)
	if rep.ExitCode != 3 || rep.Ledger.Outcomes["infra"] != 1 || rep.Ledger.Outcomes["resolved"] != 2 || rep.Friction.InfraRetries != 0 || h.Count("verify bug-01") != 1 {
		t.Errorf("%+v", rep)
	}
	broken = false
	h.Config.Retry = []string{schemas.OutcomeInfra}
	if rep := h.MustRun(t); rep.Verdict != observe.Complete || rep.Ledger.Reused != 2 || rep.Ledger.Outcomes["resolved"] != 1 {
		t.Errorf("%+v", rep)
	}
}

func TestBadSettingsAreRefusedBeforeTheRunDirectoryExists(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*pipeline.Config){
		"run id":       func(c *pipeline.Config) { c.RunID = "my run" },
		"retry":        func(c *pipeline.Config) { c.Retry = []string{"limit"} },
		"attempts":     func(c *pipeline.Config) { c.Attempts = -1 },
		"unknown task": func(c *pipeline.Config) { c.Tasks = []string{"bug-99"} },
	} {
		h := newHarness(filepath.Join(t.TempDir(), "run"), 1)
		change(&h.Config)
		_, err := h.Run(t.Context())
		if code := pipelinetest.ExitCode(t, err); code != 2 {
			t.Errorf("%s: exit %d: %v", name, code, err)
		}
		if _, err := os.Stat(h.Dir); !os.IsNotExist(err) {
			t.Errorf("%s: the run directory was created", name)
		}
	}
}
