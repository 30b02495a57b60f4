//go:build !race

// Not under the race detector, which takes memory of its own.

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

// perEpisode is what publishing may keep of an episode in memory, bytes: its keys
// and what was decided about it, no text of it.
const perEpisode = 2048

// made is staging of n episodes that are made when they are read. Their rows hold
// long texts.
type made struct {
	sinks.Store
	n    int
	like sinks.Staged // what they are made from
}

func (m *made) URI() string { return "made:" }

func (m *made) List(context.Context, string) iter.Seq2[sinks.Object, error] {
	return func(yield func(sinks.Object, error) bool) {
		for i := range m.n {
			if !yield(sinks.Object{Key: fmt.Sprintf("staging/run/%08d.json.zst", i)}, nil) {
				return
			}
		}
	}
}

func (m *made) Get(_ context.Context, key string) ([]byte, error) {
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

// Between the stages of a publish, memory grows by a few hundred bytes per episode: no row and no
// step is kept.
func TestMemoryDoesNotGrowWithWhatIsPublished(t *testing.T) {
	held := func(episodes int) (most int64) {
		cfg := config(t, dir(t, filepath.Join(t.TempDir(), "dataset")), &made{n: episodes, like: sinktest.Episode("run", 0)})
		cfg.Benchmarks = toy(t)
		cfg.Progress = func(string) {
			runtime.GC()
			runtime.GC() // what pools hold outlives the first
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, int64(m.HeapAlloc))
		}
		rep, err := publish.Publish(t.Context(), cfg)
		if err != nil || rep.Steps != int64(10*episodes) {
			t.Fatalf("%d steps of %d episodes, %v", rep.Steps, episodes, err)
		}
		return most
	}
	const few, many = 100, 600
	held(few) // allocates what is allocated only once
	less, more := held(few), held(many)
	t.Logf("%d KiB with %d episodes, %d KiB with %d", less>>10, few, more>>10, many)
	if grown := (more - less) / (many - few); grown > perEpisode {
		t.Errorf("%d bytes more for each episode, %d are the bound", grown, perEpisode)
	}
}
