package pipeline_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tracesmith/tracesmith/internal/pipelinetest"
	"github.com/tracesmith/tracesmith/pipeline"
	"github.com/tracesmith/tracesmith/sinks"
)

// countingStore counts the staged objects that a run creates.
type countingStore struct {
	sinks.Store
	n *atomic.Int32
}

func (c countingStore) Create(ctx context.Context, key string, body []byte) error {
	if strings.HasPrefix(key, "staging/") {
		c.n.Add(1)
	}
	return c.Store.Create(ctx, key, body)
}

// A job that is delivered again after its episode was staged adopts that episode: nothing is
// run, graded, normalized or written again.
func TestStagedEpisodeIsAdopted(t *testing.T) {
	t.Parallel()
	h := newHarness(filepath.Join(t.TempDir(), "run"), 1)
	var staged, created atomic.Int32
	h.WrapStore = func(s sinks.Store) sinks.Store { return countingStore{s, &created} }
	h.ChangeDeps = func(d *pipeline.Deps) {
		d.Hooks = pipelinetest.Hooks(func(point string) {
			if point == "staged" && staged.Add(1) == 1 {
				panic("between staging and settling")
			}
		})
	}
	rep := h.MustRun(t)
	if l := pipelinetest.Ledger(t, rep); l.Missing != 0 || l.Outcomes["resolved"] != 1 {
		t.Errorf("ledger: %+v", l)
	}
	if n := created.Load(); n != 1 {
		t.Errorf("the episode was written %d times", n)
	}
	for what, want := range map[string]int{"env ": 1, "verify ": 1, "ask ": turns} {
		if got := h.Count(what); got != want {
			t.Errorf("%d notes of %q, want %d", got, what, want)
		}
	}
}
