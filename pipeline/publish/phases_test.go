package publish_test

import (
	"path/filepath"
	"testing"

	"github.com/tracesmith/tracesmith/internal/sinktest"
	"github.com/tracesmith/tracesmith/sinks"
)

// If an episode has several conversations with different tools, all tool sets are published, and each step
// refers to its own.
func TestPhasesKeepTheirTools(t *testing.T) {
	phased := sinktest.Phased("run", 21)
	staging := stage(t, "run", 0, 2)
	put(t, staging, phased)
	root := filepath.Join(t.TempDir(), "dataset")
	run(t, config(t, dir(t, root), staging))
	d := wantDataset(t, dir(t, root), append(golden("run", 2), phased)...)
	sets, err := d.ToolSets(t.Context())
	if err != nil || len(sets) != 1+1+3 { // that of the other episodes; all tools of this episode; the three of its phases
		t.Errorf("%d tool sets, %v", len(sets), err)
	}
	var got sinks.Trajectory
	for each, err := range d.Trajectories(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if each.Episode.EpisodeID == phased.Episode.EpisodeID {
			got = each
		}
	}
	for step, want := range map[int]string{2: "view handover", 3: "handover", 6: "edit submit"} {
		names := ""
		for _, tool := range got.ToolsAt(&got.Steps[step]) {
			names += " " + tool.Name
		}
		if names != " "+want {
			t.Errorf("the tools of step %d are%s, want %s", step, names, want)
		}
	}
}
