package rundir_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/internal/pipelinetest"
	"github.com/tracesmith/tracesmith/pipeline/engine"
)

func TestRunDirectoryRefusesAnotherRun(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	h := newHarness(dir, 2)
	h.MustRun(t)
	old, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	h.Config.Identity = map[string]string{"agent": "scripted", "model": "fake-2"}
	h.Tasks = 3
	_, err = h.Run(t.Context())
	if code := pipelinetest.ExitCode(t, err); code != 2 {
		t.Errorf("exit %d", code)
	}
	if want := "holds another run: model: fake-1 -> fake-2"; !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%q is not the end of %q", want, err)
	}
	if now, _ := os.ReadFile(filepath.Join(dir, "run.json")); string(now) != string(old) {
		t.Error("run.json changed")
	}

	h.Config.Fresh = true
	if l := pipelinetest.Ledger(t, h.MustRun(t)); l.Ran != 3 {
		t.Errorf("%+v", l)
	}
	if moved, err := os.ReadFile(filepath.Join(dir+".1", "run.json")); err != nil || string(moved) != string(old) {
		t.Errorf("the old run was not moved to %s.1 unchanged: %v", dir, err)
	}
}

func TestDirectoryWithOtherFilesIsRefusedUntouched(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "thesis.tex"), []byte("years"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, fresh := range []bool{false, true} {
		h := newHarness(dir, 1)
		h.Config.Fresh = fresh
		_, err := h.Run(t.Context())
		if code := pipelinetest.ExitCode(t, err); code != 2 || !strings.Contains(err.Error(), "thesis.tex") {
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
	if err := os.MkdirAll(h.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	lock, err := engine.LockDir(h.Dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.Run(t.Context())
	if code := pipelinetest.ExitCode(t, err); code != 9 {
		t.Errorf("exit %d: %v", code, err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	h.MustRun(t)
}
