package specimen_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/internal/specimen"
	"github.com/tracesmith/tracesmith/pipeline/normalise"
)

// Episodes of the same seed and number are equal. They can be normalized, have different IDs, and have about as many
// calls and as long observations as real ones.
func TestEpisodesHaveTheShapeOfRealOnes(t *testing.T) {
	const n = 30
	steps, bytes, ids, repos := 0, 0, map[string]bool{}, map[string]bool{}
	for i := range n {
		ep := specimen.Episode("r", 1, i)
		if diff := cmp.Diff(ep, specimen.Episode("r", 1, i)); diff != "" {
			t.Fatal(diff)
		}
		s, err := normalise.Episode(ep, normalise.Config{Producer: "test"})
		if err != nil {
			t.Fatal(err)
		}
		ids[s.Episode.EpisodeID], repos[s.Episode.Repo] = true, true
		for _, st := range s.Steps {
			if st.Observation != nil {
				steps++
				bytes += len(*st.Observation)
			}
		}
	}
	if len(ids) != n || len(repos) != 2 {
		t.Errorf("%d ids and %d repositories of %d episodes", len(ids), len(repos), n)
	}
	if per := steps / n; per < 30 || per > 45 {
		t.Errorf("%d calls in an episode", per)
	}
	if mean := bytes / steps; mean < 1800 || mean > 4000 {
		t.Errorf("observations of %d bytes", mean)
	}
}
