//go:build !race

// This test does not run under the race detector, which uses additional memory.

package publish_test

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/internal/sinktest"
	"github.com/tracesmith/tracesmith/pipeline/publish"
	"github.com/tracesmith/tracesmith/sinks"
)

// perEpisode is how many bytes of memory publishing may use for each episode. That is enough
// for its keys and for the selection's decision, but not for its texts.
const perEpisode = 2048

// generatedStaging is a store with n staged episodes that it generates when they are read.
// Their rows contain long texts.
type generatedStaging struct {
	sinks.Store
	n    int
	like sinks.Staged // template of the episodes
}

func (m *generatedStaging) URI() string { return "generated:" }

func (m *generatedStaging) List(context.Context, string) iter.Seq2[sinks.Object, error] {
	return func(yield func(sinks.Object, error) bool) {
		for i := range m.n {
			if !yield(sinks.Object{Key: fmt.Sprintf("staging/run/%08d.json.zst", i)}, nil) {
				return
			}
		}
	}
}

func (m *generatedStaging) Get(_ context.Context, key string) ([]byte, error) {
	var i int
	if _, err := fmt.Sscanf(key, "staging/run/%d.json.zst", &i); err != nil {
		return nil, sinks.ErrNotFound
	}
	s := m.like
	id := fmt.Sprintf("%032x", i)
	s.Episode.EpisodeID, s.Episode.ContentSHA256 = id, &id
	s.Steps = slices.Clone(s.Steps)
	s.Episode.Patch, s.Episode.ConfigJSON = new(strings.Repeat(fmt.Sprintf("+line %d\n", i), 500)), new(`{"long":"`+strings.Repeat("x", 4096)+`"}`)
	for k := range s.Steps {
		s.Steps[k].EpisodeID = id
		if s.Steps[k].Observation != nil {
			s.Steps[k].Observation = new(fmt.Sprint("seen ", i, k))
		}
	}
	return sinks.EncodeStaged(s)
}

// Between the stages of a publish, memory grows by only a few hundred bytes per episode, because publish
// keeps neither rows nor steps in memory.
func TestMemoryPerEpisodeIsSmall(t *testing.T) {
	peak := func(episodes int) (highest int64) {
		cfg := config(t, dir(t, filepath.Join(t.TempDir(), "dataset")), &generatedStaging{n: episodes, like: sinktest.Episode("run", 0)})
		cfg.Benchmarks = toy(t)
		cfg.Progress = func(string) {
			runtime.GC()
			runtime.GC() // objects in a sync.Pool survive the first collection
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			highest = max(highest, int64(m.HeapAlloc))
		}
		rep, err := publish.Publish(t.Context(), cfg)
		if err != nil || rep.Steps != int64(10*episodes) {
			t.Fatalf("%d steps of %d episodes, %v", rep.Steps, episodes, err)
		}
		return highest
	}
	const few, many = 100, 600
	peak(few) // for allocations that happen only once
	less, more := peak(few), peak(many)
	t.Logf("%d KiB with %d episodes, %d KiB with %d", less>>10, few, more>>10, many)
	if grown := (more - less) / (many - few); grown > perEpisode {
		t.Errorf("%d bytes more for each episode, want at most %d", grown, perEpisode)
	}
}
