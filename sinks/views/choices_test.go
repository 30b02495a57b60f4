package views_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/sinks"
)

// Trimming keeps all calls of the turn that resolved the task, because the model made them in one
// reply. The notes count the omitted turns.
func TestTrimmingKeepsTurnsWhole(t *testing.T) {
	in := withoutGold(shortEpisode(1))
	in.Episode.ResolvedAtStep = new(int32(3)) // the first of two calls
	for _, kind := range []string{"sft-trl", "sft-axolotl", "atif", "sft-negative-pi", "pref-pairs"} {
		if _, err := sinks.Views.Build(kind, nil, sinks.ViewOptions{Trim: sinks.TrimResolved}); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	rows, notes := render(t, "sft-trl", sinks.ViewOptions{Trim: sinks.TrimResolved, Mask: sinks.MaskContext}, in)
	if len(rows) != 1 || roles(rows[0]["completion"]) != "a" || checkCalls(t, rows[0]["completion"], in.Steps) != 2 {
		t.Errorf("%v", rows)
	}
	if diff := cmp.Diff(sinks.Notes{"turns_cut_after_resolved": 5}, notes); diff != "" { // two of them have no call
		t.Error(diff)
	}
	in.Episode.ResolvedAtStep = nil
	rows, notes = render(t, "sft-trl", sinks.ViewOptions{Trim: sinks.TrimResolved, Mask: sinks.MaskContext}, in)
	if n := checkCalls(t, rows[0]["completion"], in.Steps); n != 5 || notes["episodes_not_trimmed"] != 1 {
		t.Errorf("the resolving step is unknown: %d calls, %v", n, notes)
	}
}

// OpenAI's fine-tuning API rejects a whole file because of one call without an answer, so the view drops
// the row. Only calls in the last message of a row may lack one.
func TestOpenAIRowsHaveAllAnswers(t *testing.T) {
	in := withoutGold(shortEpisode(1))
	in.Steps[8].Observation = nil // of the last call, which a message follows
	if rows, notes := render(t, "sft-openai", sinks.ViewOptions{}, in); len(rows) != 0 || notes["rows_dropped_unanswered"] != 1 {
		t.Errorf("%d rows, %v", len(rows), notes)
	}
	in.Steps = in.Steps[:9]
	if rows, notes := render(t, "sft-openai", sinks.ViewOptions{}, in); len(rows) != 1 || notes["rows_dropped_unanswered"] != 0 {
		t.Errorf("%d rows, %v", len(rows), notes)
	}
}

// A format with a single system text gets all system prompts.
func TestShareGPTKeepsEverySystemPrompt(t *testing.T) {
	in := shortEpisode(1)
	in.Steps[1].Source, in.Steps[1].Message = "system", "And be brief."
	rows, _ := render(t, "sft-sharegpt", sinks.ViewOptions{AllowGold: true}, in)
	if got := rows[0]["system"]; got != "You debug.\n\nAnd be brief." {
		t.Errorf("system = %q", got)
	}
}

// Listed directories and files that were not found are not hard negatives.
func TestLocateTakesViewedFiles(t *testing.T) {
	in := withoutGold(shortEpisode(1))
	in.Steps[3].Targets, in.Steps[3].ToolCategory = []string{"."}, new("listdir")
	in.Steps[5].Targets, in.Steps[5].IsError = []string{"cart/missing.py"}, new(true)
	rows, _ := render(t, "infoseek-locate", sinks.ViewOptions{}, in)
	if diff := cmp.Diff([]any{"cart/other.py"}, rows[0]["hard_negatives"]); diff != "" {
		t.Error(diff)
	}
}

// Tests are not hard negatives, because an agent that fixes a bug reads the failing test.
// A file is a test by its name or because a test runner named it.
func TestLocateLeavesOutTests(t *testing.T) {
	for answer, negative := range map[string]bool{
		"FAILED checks/verify_stock.py::test_total - assert 1 == 2":       false,
		"  checks/verify_stock.py::test_total[a-b] (failed)":              false,
		"FAIL: test_total (checks.verify_stock.TotalCase.test_total)":     false,
		"ERROR: test_total (verify_stock.TotalCase)":                      false,
		"The tests do not pass.\n  checks.verify_stock.T.test_a (failed)": false,
		"checks/verify_stock.py, lines 1-3 of 3":                          true,
		"FAIL: test_total (other.verify_stocks.TotalCase.test_total)":     true,
	} {
		in := withoutGold(shortEpisode(1))
		in.Steps[3].Targets = []string{"tests/test_stock.py", "cart/stock_test.py", "conftest.py:1-9", "checks/verify_stock.py::test_total", "cart/price.py"}
		in.Steps[5].Observation = &answer
		rows, _ := render(t, "infoseek-locate", sinks.ViewOptions{}, in)
		want := []any{"cart/price.py", "cart/other.py"}
		if negative {
			want = append([]any{"checks/verify_stock.py"}, want...)
		}
		if diff := cmp.Diff(want, rows[0]["hard_negatives"]); diff != "" {
			t.Errorf("%q: %s", answer, diff)
		}
	}
}

// Views without conversations refuse the options that would have no effect.
func TestViewsWithoutConversationsRefuseTheirOptions(t *testing.T) {
	for _, kind := range []string{"infoseek-locate", "infoseek-context-patch"} {
		for option, o := range map[string]sinks.ViewOptions{
			"--phase": {Phase: "seek"}, "--system": {System: sinks.SystemDrop}, "--trim": {Trim: sinks.TrimResolved},
		} {
			if _, err := sinks.Views.Build(kind, nil, o); err == nil || !strings.Contains(err.Error(), "omit "+option) {
				t.Errorf("%s %s: %v", kind, option, err)
			}
		}
	}
}

// A pair names its episodes, and the notes count the rows that were dropped because a turn is masked.
func TestPairsNameTheirEpisodes(t *testing.T) {
	in := goldenInput("pref-pairs")
	rows, _ := rowsOf(t, "pref-pairs", sinks.ViewOptions{}, in...)
	if len(rows) != 1 || !cmp.Equal(rows[0].Episodes, []string{in[0].Episode.EpisodeID, in[1].Episode.EpisodeID}) {
		t.Errorf("%+v", rows)
	}
	in[1].Steps[4].Train, in[1].Steps[4].MaskReason = false, new("tool_error")
	if _, notes := rowsOf(t, "pref-pairs", sinks.ViewOptions{Mask: sinks.MaskDropEpisode}, in...); notes["rows_dropped_masked"] != 1 {
		t.Error(notes)
	}
}

// With each option, a view either writes rows with the same calls as without it, or refuses the option and
// says what to do. The calls are not compared for options and views that omit some.
func TestEveryOptionWithEveryView(t *testing.T) {
	all := map[string]sinks.ViewOptions{}
	for _, mask := range sinks.Masks {
		all["--mask "+mask] = sinks.ViewOptions{Mask: mask}
	}
	for flag, o := range map[string]sinks.ViewOptions{
		"--arguments object": {Arguments: sinks.ArgumentsObject}, "--arguments string": {Arguments: sinks.ArgumentsString},
		"--thinking field": {Thinking: sinks.ThinkingField}, "--thinking inline": {Thinking: sinks.ThinkingInline}, "--thinking drop": {Thinking: sinks.ThinkingDrop},
		"--tools list": {Tools: sinks.ToolsList}, "--tools json-string": {Tools: sinks.ToolsJSON},
		"--content-null empty": {ContentNull: sinks.ContentEmpty}, "--content-null omit": {ContentNull: sinks.ContentOmit},
		"--system keep": {System: sinks.SystemKeep}, "--system drop": {System: sinks.SystemDrop},
		"--system replace": {System: sinks.SystemReplace, SystemText: "You are somebody else."},
		"--trim none":      {Trim: sinks.TrimNone}, "--trim after-resolved": {Trim: sinks.TrimResolved}, "--phase": {Phase: "seek"},
		"--chat-template": {ChatTemplate: "qwen3_training"},
	} {
		all[flag] = o
	}
	accepted := map[string]int{}
	for _, kind := range sinks.Views.Kinds() {
		for flag, o := range all {
			o.AllowGold, o.Count = true, words
			option, _, _ := strings.Cut(flag, " ")
			if _, err := sinks.Views.Build(kind, nil, o); err != nil {
				if !strings.Contains(err.Error(), "choose one of ") && !strings.Contains(err.Error(), "omit "+option) {
					t.Errorf("%s %s: %v", kind, flag, err)
				}
				continue
			}
			accepted[option]++
			rows, _ := rowsOf(t, kind, o, goldenInput(kind)...)
			if option == "--phase" || withoutCalls[kind] || callRange[kind] != nil || o.Mask == sinks.MaskSplitRows || o.Mask == sinks.MaskDropEpisode || kind == "sft-text" {
				continue
			}
			if readers[kind] == nil {
				t.Fatalf("readers in roundtrip_test.go has no reader of %s", kind)
			}
			plain, _ := rowsOf(t, kind, sinks.ViewOptions{AllowGold: true}, goldenInput(kind)...)
			if diff := cmp.Diff(readers[kind](t, plain), readers[kind](t, rows)); diff != "" {
				t.Errorf("%s %s: %s", kind, flag, diff)
			}
		}
	}
	for _, option := range []string{"--mask", "--arguments", "--thinking", "--tools", "--content-null", "--system", "--trim", "--phase", "--chat-template"} {
		if accepted[option] == 0 {
			t.Errorf("no view accepts %s", option)
		}
	}
}
