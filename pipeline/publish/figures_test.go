package publish_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/internal/sinktest"
	"github.com/tracesmith/tracesmith/pipeline/publish"
	"github.com/tracesmith/tracesmith/schemas"
)

// Figures come from the tables, which contain all episodes of all published runs, including
// failures.
func TestFiguresIncludeEveryRun(t *testing.T) {
	first, second := stage(t, "run-a", 0, 4), stage(t, "run-b", 4, 3)
	failed := sinktest.Episode("run-b", 30)
	failed.Episode.Resolved, failed.Episode.Outcome, failed.Episode.AgentName, failed.Episode.ExitReason = new(false), new("limit"), "react", schemas.ExitMaxSteps
	for i := range failed.Steps {
		failed.Steps[i].Resolved = new(false)
	}
	put(t, second, failed)
	dest := dir(t, filepath.Join(t.TempDir(), "dataset"))
	run(t, config(t, dest, first, second))
	d, err := publish.Open(t.Context(), dest)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	tally := publish.NewTally()
	for tr, err := range d.Trajectories(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		tally.Add(tr.Episode, tr.Steps)
	}
	s := tally.Stats()
	// The episodes of stage used the gold patch, so Resolved does not count them.
	if s.Episodes != 8 || s.Resolved != 0 || s.ResolvedGold != 7 || s.Unresolved != 1 || s.Steps != 80 {
		t.Errorf("%d episodes: resolved %d, with the gold patch %d, unresolved %d; %d steps", s.Episodes, s.Resolved, s.ResolvedGold, s.Unresolved, s.Steps)
	}
	for what, diff := range map[string]string{
		"outcomes": cmp.Diff(map[string]int{"resolved": 7, "limit": 1}, s.Outcomes),
		"agents":   cmp.Diff(map[string]int{"oracle": 7, "react": 1}, s.Agents),
		"exits":    cmp.Diff(map[string]int{"submitted": 7, schemas.ExitMaxSteps: 1}, s.ExitReasons),
	} {
		if diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
}
