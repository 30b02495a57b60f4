package normalise

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
	"github.com/tracesmith/tracesmith/sinks/formats"
)

// seeking returns an episode whose steps show, debug, edit and hand over code of calc.py.
func seeking() *schemas.Episode {
	ep := golden()
	ep.Task.Workdir, ep.Task.Origin = "/testbed", &schemas.Origin{Operator: "a1"}
	show := func(i int, tool, args, text string, targets ...string) {
		s := &ep.Steps[i]
		s.ToolCall.Name, s.ToolCall.Arguments = tool, json.RawMessage(args)
		s.Observation.Text, s.Observation.Targets, s.Observation.Source = text, targets, tool
	}
	show(2, "view", `{"path":"calc.py"}`, "calc.py, lines 1-2 of 2\n    1  def add(a, b):\n    2      return a - b\n", "calc.py:1-2")
	show(3, "pdb", `{"command":"b calc.py:2"}`, "Breakpoint 1 set at calc.py:2")
	show(9, "handover", `{"cause":"add subtracts","files":[{"path":"calc.py","start":2,"step":2}]}`, "Handed over.")
	return ep
}

// Metrics that are computed again from the rows of a Parquet file equal those of the live run.
func TestRecomputedMetricsEqualLiveOnes(t *testing.T) {
	ep := seeking()
	functions := map[string][]metrics.Function{"calc.py": metrics.Functions("def add(a, b):\n    return a - b\n")}
	live := normalised(t, ep, Config{Producer: "test", Functions: functions})
	e := live.Episode
	for name, isSet := range map[string]bool{
		"gold_line_recall": e.GoldLineRecall != nil && *e.GoldLineRecall == 1, "gold_func_recall": e.GoldFuncRecall != nil && *e.GoldFuncRecall == 1,
		"gold_root_hit": e.GoldRootHit != nil && *e.GoldRootHit, "breakpoint_hit_rate": e.BreakpointHitRate != nil && *e.BreakpointHitRate == 1,
		"gold_pack_sufficient": e.GoldPackSufficient != nil && *e.GoldPackSufficient, "pack_tokens": e.PackTokens != nil && *e.PackTokens > 0,
		"gold_operator": e.GoldOperator != nil && *e.GoldOperator == "a1", "gold_first_contact": e.GoldFirstContact != nil && *e.GoldFirstContact == 1,
	} {
		if !isSet {
			t.Errorf("%s is wrong: %s", name, schemas.Value(e.GoldSeekingJSON))
		}
	}
	dir := t.TempDir()
	episodes, steps := filepath.Join(dir, "episodes.parquet"), filepath.Join(dir, "steps.parquet")
	if err := formats.WriteBare(episodes, arrowrec.Episodes, [][]schemas.EpisodeRow{{e}}); err != nil {
		t.Fatal(err)
	}
	if err := formats.WriteBare(steps, arrowrec.Steps, [][]schemas.StepRow{live.Steps}); err != nil {
		t.Fatal(err)
	}
	again := readAll[schemas.EpisodeRow](t, episodes, arrowrec.Episodes)[0]
	rows := readAll[schemas.StepRow](t, steps, arrowrec.Steps)
	for i := range rows {
		rows[i].LinesShown, rows[i].LinesNew, rows[i].GoldLinesNew = nil, nil, nil
	}
	patch, err := metrics.ParsePatch([]byte(*again.Patch))
	if err != nil {
		t.Fatal(err)
	}
	gold, err := metrics.ParsePatch([]byte(ep.Task.GoldPatch))
	if err != nil {
		t.Fatal(err)
	}
	var empty schemas.EpisodeRow
	if err := metrics.Seek(metrics.Read(rows, "/testbed"), metrics.Evidence{Patch: &patch, Gold: &gold, Functions: functions}).Fill(&empty, rows); err != nil {
		t.Fatal(err)
	}
	want := schemas.EpisodeRow{
		Redundancy: e.Redundancy, BreakpointValidity: e.BreakpointValidity, BreakpointHitRate: e.BreakpointHitRate, DeadInspections: e.DeadInspections,
		InvalidCallRate: e.InvalidCallRate, MaxCommandRun: e.MaxCommandRun, MaxCallRun: e.MaxCallRun, NBlindEdits: e.NBlindEdits,
		GoldFuncRecall: e.GoldFuncRecall, GoldLineRecall: e.GoldLineRecall, GoldLinePrecision: e.GoldLinePrecision, GoldLineF05: e.GoldLineF05,
		GoldFirstContact: e.GoldFirstContact, GoldRecallArea: e.GoldRecallArea, GoldEvidenceDrop: e.GoldEvidenceDrop, GoldDeclaredFileF1: e.GoldDeclaredFileF1,
		GoldRootHit: e.GoldRootHit, GoldRootLineHit: e.GoldRootLineHit, GoldBreakpointsToRoot: e.GoldBreakpointsToRoot,
		GoldBreakpointDistance: e.GoldBreakpointDistance, GoldUsefulSteps: e.GoldUsefulSteps, GoldPackRecall: e.GoldPackRecall,
		GoldPackPrecision: e.GoldPackPrecision, GoldPackSufficient: e.GoldPackSufficient, GoldSeekingJSON: e.GoldSeekingJSON,
	}
	if diff := cmp.Diff(want, empty); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(live.Steps, rows); diff != "" {
		t.Error(diff)
	}
}

func readAll[T any](t *testing.T, path string, table *arrowrec.Table) []T {
	t.Helper()
	var out []T
	for row, err := range formats.Read[T](path, table) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, row)
	}
	return slices.Clip(out)
}

// An episode that another program recorded does not say which calls failed.
func TestInvalidCallsOfImportsAreUnknown(t *testing.T) {
	ep := seeking()
	ep.EnvKey = schemas.EnvKey{}
	if e := normalised(t, ep, Config{}).Episode; e.InvalidCallRate != nil {
		t.Errorf("%v", *e.InvalidCallRate)
	}
}
