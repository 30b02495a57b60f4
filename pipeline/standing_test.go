package pipeline_test

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/pipeline/rundir"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks/stores"
)

// standing reads how the run of a harness stands, and adds it up.
func (h *harness) standing(t *testing.T) (observe.Status, error) {
	t.Helper()
	store, err := stores.Open(t.Context(), h.dir, stores.S3Config{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := rundir.ReadStatus(t.Context(), h.dir, store)
	if err == nil && (s.Selected != s.Reused+s.Ran+s.Missing || s.Selected != s.Waiting+s.Running+s.Done+s.Failed ||
		min(s.Reused, s.Ran, s.Missing, s.Waiting, s.Running, s.Done, s.Failed) < 0) {
		t.Errorf("it does not add up: %+v", s)
	}
	return s, err
}

// The status of a run adds up whenever somebody looks: while jobs run, fail and
// are tried again, when one is given up, after the end, and when the run goes on.
func TestStatusOfARunningRunAddsUp(t *testing.T) {
	t.Parallel()
	h := newHarness(filepath.Join(t.TempDir(), "run"), 12)
	h.cfg.Workers = 3
	if _, err := h.standing(t); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("before it began: %v", err)
	}
	h.onReset = func(_ context.Context, j schemas.Job) error {
		if j.Instance == "bug-04" {
			return errors.New("no sandbox")
		}
		return nil
	}
	end := make(chan error, 1)
	go func() {
		_, err := h.run(t.Context())
		end <- err
	}()
	looks, seen := 0, 0
	for ended := false; !ended; looks++ {
		select {
		case err := <-end:
			if ended = true; err != nil {
				t.Fatal(err)
			}
		default:
		}
		s, err := h.standing(t)
		switch {
		case errors.Is(err, fs.ErrNotExist) && seen == 0:
			continue
		case err != nil:
			t.Fatal(err)
		}
		if s.Done < seen || s.Done > len(h.staged(t)) || s.Running > 3 || s.Selected != 12 {
			t.Errorf("%d done before, %d staged now: %+v", seen, len(h.staged(t)), s)
		}
		seen = s.Done
	}
	s, err := h.standing(t)
	if err != nil || s.Phase != "stopped" || s.Done != 11 || s.Failed != 1 || s.Ran != 12 || s.Running != 0 {
		t.Errorf("at its end, after %d looks: %+v, %v", looks, s, err)
	}
	h.mustRun(t) // what was given up is not tried again
	if s, err = h.standing(t); err != nil || s.Reused != 11 || s.Failed != 1 || s.Ran != 0 || s.Missing != 1 {
		t.Errorf("again: %+v, %v", s, err)
	}
	h.onReset, h.cfg.Retry = nil, []string{"infra"}
	h.mustRun(t)
	if s, err = h.standing(t); err != nil || s.Phase != "completed" || s.Reused != 11 || s.Done != 12 || s.Ran != 1 {
		t.Errorf("with --retry infra: %+v, %v", s, err)
	}
}

// checkKilled holds the status of a run whose process was killed to what is staged.
func checkKilled(t *testing.T, h *harness) {
	t.Helper()
	s, err := h.standing(t)
	if err != nil || s.Phase != rundir.Killed || s.Selected != killTasks || s.Done != len(h.staged(t)) || s.Running != 0 {
		t.Errorf("of a killed run: %+v, %v, %d staged", s, err, len(h.staged(t)))
	}
}
