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

// A failed preflight stops the run before any job is taken. A successful one runs once, and not if
// there is nothing to do.
func TestPreflight(t *testing.T) {
	t.Parallel()
	h := newHarness(filepath.Join(t.TempDir(), "run"), 3)
	trouble, asked := errors.New("no sandbox here"), 0
	h.Change = func(d *pipeline.Deps) {
		d.Preflight = func(context.Context) error { asked++; return trouble }
	}
	rep, err := h.Run(t.Context())
	stop, ok := errors.AsType[*pipeline.StopError](err)
	if !ok || stop.Code != 7 || rep.ExitCode != 7 || rep.Verdict != observe.Stopped || rep.Error != trouble.Error() {
		t.Errorf("%v; %+v", err, rep)
	}
	if l := rep.Ledger; l.Missing != 3 || l.Ran != 0 || h.Count("env") != 0 {
		t.Errorf("%+v, %d environments", l, h.Count("env"))
	}
	if _, err := os.Stat(filepath.Join(h.Dir, "engine")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the engine was opened: %v", err)
	}
	trouble = nil
	h.MustRun(t)
	h.MustRun(t)
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
}

// unsafe is a store that ignores conditional writes.
type unsafe struct {
	sinks.Store
	asked *int
}

func (u unsafe) Probe(context.Context) error { *u.asked++; return sinks.ErrUnsafe }

// If episodes could overwrite each other, none starts. The store is not probed if there is nothing
// to do.
func TestUnsafeStagingIsRefused(t *testing.T) {
	t.Parallel()
	h := newHarness(filepath.Join(t.TempDir(), "run"), 2)
	h.Config.Staging, h.Config.RunID = h.Dir, "elsewhere"
	asked := 0
	h.Store = func(s sinks.Store) sinks.Store { return unsafe{s, &asked} }
	_, err := h.Run(t.Context())
	stop, ok := errors.AsType[*pipeline.StopError](err)
	if !ok || stop.Code != 8 || !errors.Is(err, sinks.ErrUnsafe) || h.Count("env") != 0 || asked != 1 {
		t.Errorf("%v; %d environments, asked %d times", err, h.Count("env"), asked)
	}
	h.Store = nil
	h.MustRun(t)
	h.Store = func(s sinks.Store) sinks.Store { return unsafe{s, &asked} }
	if h.MustRun(t); asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}

// The run's own directory is probed as well: its file system may not support hard links.
func TestAnUnsafeRunDirectoryIsRefused(t *testing.T) {
	t.Parallel()
	h := newHarness(filepath.Join(t.TempDir(), "run"), 2)
	asked := 0
	h.Store = func(s sinks.Store) sinks.Store { return unsafe{s, &asked} }
	_, err := h.Run(t.Context())
	stop, ok := errors.AsType[*pipeline.StopError](err)
	if !ok || stop.Code != 8 || !strings.Contains(stop.Remedy, "run.staging") || strings.Contains(err.Error(), "run.staging: ") {
		t.Errorf("got %v, want a stop that names another place", err)
	}
	if n := h.Count("env"); n != 0 || asked != 1 {
		t.Errorf("%d environments, asked %d times", n, asked)
	}
}

// The remedy for a model server depends on its answer.
func TestRemedyFitsTheModelServer(t *testing.T) {
	t.Parallel()
	for class, want := range map[llms.Class]string{
		llms.ClassNotFound:    "models list",
		llms.ClassRefused:     "docs/wire.md",
		llms.ClassUnreachable: "that the model server runs",
	} {
		h := newHarness(filepath.Join(t.TempDir(), "run"), 1)
		h.Change = func(d *pipeline.Deps) {
			d.Preflight = func(context.Context) error { return &agents.FatalError{Class: class, Err: errors.New("no")} }
		}
		_, err := h.Run(t.Context())
		if stop, ok := errors.AsType[*pipeline.StopError](err); !ok || stop.Code != 7 || !strings.Contains(stop.Remedy, want) {
			t.Errorf("%s: %+v, want the remedy %q", class, err, want)
		}
	}
}

// A failure caused by the task is given up at once and runs again when infrastructure failures are
// rerun.
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

func TestBadSettingsAreRefusedBeforeAnythingIsMade(t *testing.T) {
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
			t.Errorf("%s: the run directory was made", name)
		}
	}
}
