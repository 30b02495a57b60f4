package pipeline_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/pipeline"
	"github.com/tracesmith/tracesmith/pipeline/engine"
)

func TestRunDirectoryRefusesAnotherRun(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	h := newHarness(dir, 2)
	h.mustRun(t)
	old, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	h.cfg.Identity = map[string]string{"agent": "scripted", "model": "fake-2"}
	h.tasks = 3
	_, err = h.run(t.Context())
	if code := exitCode(t, err); code != 2 {
		t.Errorf("exit %d", code)
	}
	for _, want := range []string{"model: fake-1 -> fake-2", "tasks: 2 tasks", "-> 3 tasks"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %q", want, err)
		}
	}
	if now, _ := os.ReadFile(filepath.Join(dir, "run.json")); string(now) != string(old) {
		t.Error("run.json changed")
	}

	h.cfg.Fresh = true
	if l := ledger(t, h.mustRun(t)); l.Ran != 3 {
		t.Errorf("%+v", l)
	}
	if moved, err := os.ReadFile(filepath.Join(dir+".1", "run.json")); err != nil || string(moved) != string(old) {
		t.Errorf("the old run is not where it was moved: %v", err)
	}
}

func TestForeignDirectoryIsRefusedUntouched(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.tex"), []byte("years"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, fresh := range []bool{false, true} {
		h := newHarness(dir, 1)
		h.cfg.Fresh = fresh
		_, err := h.run(t.Context())
		if code := exitCode(t, err); code != 2 || !strings.Contains(err.Error(), "thesis.tex") {
			t.Errorf("exit %d: %v", code, err)
		}
		entries, _ := os.ReadDir(dir)
		if len(entries) != 1 {
			t.Errorf("the directory was touched: %v", entries)
		}
	}
}

func TestLockedDirectoryIsRefused(t *testing.T) {
	t.Parallel()
	h := newHarness(filepath.Join(t.TempDir(), "run"), 1)
	if err := os.MkdirAll(h.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	lock, err := engine.LockDir(h.dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.run(t.Context())
	if code := exitCode(t, err); code != 9 {
		t.Errorf("exit %d: %v", code, err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	h.mustRun(t)
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
		change(&h.cfg)
		_, err := h.run(t.Context())
		if code := exitCode(t, err); code != 2 {
			t.Errorf("%s: exit %d: %v", name, code, err)
		}
		if _, err := os.Stat(h.dir); !os.IsNotExist(err) {
			t.Errorf("%s: the run directory was made", name)
		}
	}
}
