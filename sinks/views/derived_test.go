package views_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/internal/sinktest"
	"github.com/tracesmith/tracesmith/sinks"
)

// If no episode has the data that a view needs, Finish fails and says how to get it.
func TestViewsReportMissingData(t *testing.T) {
	bare := sinktest.Episode("run", 1).Trajectory()
	bare.Episode.Patch = nil
	for kind, want := range map[string]string{
		"infoseek-masked": "is_new_information", "infoseek-next-action": "is_new_information", "infoseek-context-patch": "workspace_sha256",
		"infoseek-locate": "patch", "step-labels": "is_new_information", "sft-negative-pi": "annotations", "pref-pairs": "verified fail",
	} {
		v, err := sinks.Views.Build(kind, nil, sinks.ViewOptions{Count: words, AllowGold: true})
		if err != nil {
			t.Fatal(err)
		}
		if rows, _, err := v.Render(bare); err != nil || len(rows) != 0 {
			t.Errorf("%s: %d rows, %v", kind, len(rows), err)
		}
		_, _, err = v.(sinks.Finisher).Finish()
		missing, ok := errors.AsType[*sinks.MissingError](err)
		if !ok || !strings.Contains(missing.What, want) || missing.Remedy == "" {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// Settings that use the gold patch need AllowGold.
func TestGoldSettingsNeedTheFlag(t *testing.T) {
	for kind, with := range map[string]map[string]any{"step-labels": {"labels": "gold"}, "infoseek-context-patch": {"evidence": "gold-ranked"}} {
		if _, err := sinks.Views.Build(kind, with, sinks.ViewOptions{}); err == nil || !strings.Contains(err.Error(), "--allow-gold") {
			t.Errorf("%s: %v", kind, err)
		}
		if _, err := sinks.Views.Build(kind, with, sinks.ViewOptions{AllowGold: true}); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		for key := range with {
			if _, err := sinks.Views.Build(kind, map[string]any{key: "x"}, sinks.ViewOptions{}); err == nil || !strings.Contains(err.Error(), "choose") {
				t.Errorf("%s: %v", kind, err)
			}
		}
	}
}

// Only turns that found new information are trained on.
func TestInfoseekMaskedTrainsOnNewInformation(t *testing.T) {
	rows, _ := render(t, "infoseek-masked", sinks.ViewOptions{AllowGold: true}, shortEpisode(1))
	if len(rows) != 1 {
		t.Fatalf("%d rows", len(rows))
	}
	var trained []int
	for i, m := range rows[0]["messages"].([]any) {
		if m.(map[string]any)["train"].(bool) {
			trained = append(trained, i)
		}
	}
	if !slices.Equal(trained, []int{2}) {
		t.Errorf("trained messages %v, want the one reply that found new information", trained)
	}
}

func TestNextActionsAreCapped(t *testing.T) {
	in := shortEpisode(1)
	in.Steps[5].IsNewInformation = new(true)
	for n, want := range map[int]string{1: "5", 8: "3 5"} {
		v, err := sinks.Views.Build("infoseek-next-action", map[string]any{"per_episode": n}, sinks.ViewOptions{})
		if err != nil {
			t.Fatal(err)
		}
		rows, notes, err := v.Render(in)
		if err != nil {
			t.Fatal(err)
		}
		var steps []string
		for _, r := range rows {
			var row struct {
				StepIndex  json.Number `json:"step_index"`
				Completion []any
			}
			decode(t, r, &row)
			steps = append(steps, row.StepIndex.String())
			if len(row.Completion) != 1 {
				t.Errorf("completion of %d messages", len(row.Completion))
			}
		}
		if strings.Join(steps, " ") != want || (n == 1) != (notes["rows_dropped_per_episode"] == 1) {
			t.Errorf("%d: steps %v, notes %v", n, steps, notes)
		}
	}
}

// The policy base-state stops at the first change. The others go on to the final edit and
// mark evidence stale if its file changed in between. A budget drops the earliest evidence, or
// the lowest-ranked.
func TestEvidencePolicies(t *testing.T) {
	in := withoutGold(shortEpisode(1))
	later := in.Steps[4] // a look after the first edit
	later.StepIndex, later.Observation, later.WorkspaceSHA256 = 8, new("looked later"), new("w1")
	again := in.Steps[7]
	again.StepIndex, again.ToolCallID = 9, new("again")
	later.Targets, again.FilesChanged = []string{"cart/late.py:1-3"}, []string{"cart/late.py"} // the final edit does not make the evidence for it stale
	in.Steps = append(slices.Clone(in.Steps[:8]), later, again)
	for _, c := range []struct {
		with map[string]any
		want string
	}{
		{map[string]any{"evidence": "base-state"}, "3 fresh;4 fresh;5 fresh"},
		{map[string]any{"evidence": "before-final-edit"}, "3 stale;4 fresh;5 stale;8 fresh"},
		{map[string]any{"evidence": "base-state", "budget": 4}, "4 fresh;5 fresh"},
		{map[string]any{"evidence": "gold-ranked", "budget": 6}, "3 stale"},
	} {
		v, err := sinks.Views.Build("infoseek-context-patch", c.with, sinks.ViewOptions{Count: words, AllowGold: true})
		if err != nil {
			t.Fatal(err)
		}
		rows, notes, err := v.Render(in)
		if err != nil || len(rows) != 1 {
			t.Fatalf("%v: %d rows, %v, %v", c.with, len(rows), notes, err)
		}
		var row struct {
			Evidence string `json:"evidence_json"`
			Source   string `json:"patch_source"`
		}
		decode(t, rows[0], &row)
		var list []struct {
			Step  json.Number `json:"step_index"`
			State string
		}
		if err := json.Unmarshal([]byte(row.Evidence), &list); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range list {
			got = append(got, e.Step.String()+" "+e.State)
		}
		if strings.Join(got, ";") != c.want || row.Source != "agent" {
			t.Errorf("%v: %v of %s, want %s", c.with, got, row.Source, c.want)
		}
	}
}

func TestLocatePairsPlacesWithOtherFiles(t *testing.T) {
	rows, _ := render(t, "infoseek-locate", sinks.ViewOptions{}, withoutGold(shortEpisode(1)))
	raw, err := json.Marshal(map[string]any{"p": rows[0]["positives"], "n": rows[0]["hard_negatives"], "s": rows[0]["patch_source"]})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"n":["cart/other.py"],"p":[{"end":2,"path":"cart/stock.py","start":2}],"s":"agent"}`
	if diff := cmp.Diff(want, string(raw)); diff != "" {
		t.Error(diff)
	}
}

// The prompt lists the facts labeled wrong. It lists those judged with the gold patch only
// with AllowGold, and never shows the evidence for a label.
func TestNegativePIShowsOnlyWrongFacts(t *testing.T) {
	in := goldenInput("sft-negative-pi")
	for gold, want := range map[bool]string{false: "- statement 0\n</information>", true: "- statement 0\n- statement 2\n</information>"} {
		rows, _ := rowsOf(t, "sft-negative-pi", sinks.ViewOptions{AllowGold: gold, Mask: sinks.MaskContext}, in...)
		if len(rows) != 1 {
			t.Fatalf("%d rows", len(rows))
		}
		var row struct {
			Prompt []struct{ Role, Content string }
		}
		decode(t, rows[0], &row)
		if got := row.Prompt[1].Content; !strings.Contains(got, want) || strings.Contains(got, "EVIDENCE") || strings.Contains(got, "statement 1") {
			t.Errorf("gold %v: %q", gold, got)
		}
	}
	in[1].Episode.WrongFactRatio = new(0.9)
	if rows, notes := rowsOf(t, "sft-negative-pi", sinks.ViewOptions{}, in...); len(rows) != 0 || notes["rows_dropped_wrong_facts"] != 1 {
		t.Errorf("%d rows, %v", len(rows), notes)
	}
}

func TestStepLabels(t *testing.T) {
	in := withoutGold(shortEpisode(1))
	in.Steps[8].IsError = new(true)
	rows, _ := render(t, "step-labels", sinks.ViewOptions{}, in)
	raw, _ := json.Marshal(rows[0]["labels"])
	if string(raw) != "[true,false,true,true,false,true]" { // new information, nothing new, a thought, the edit, a failed submit, the last reply
		t.Errorf("labels %s", raw)
	}
}
