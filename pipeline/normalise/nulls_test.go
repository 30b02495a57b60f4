package normalise

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

// nullInEpisodes and nullInSteps hold the columns that are null in the golden episode, with the
// reason. All other columns must have a value. A paired trace is a trace of a failing test in the buggy
// and in the fixed program.
var nullInEpisodes = map[string]string{
	"session_id":            "only imported episodes have sessions",
	"parent_episode_id":     "it does not replay another episode",
	"branch_turn":           "it does not replay another episode",
	"harness_commit":        "not given to this test",
	"task_revision":         "its source has none",
	"base_commit":           "its repository has no history",
	"task_created_at":       "its source gives no date",
	"bug_kind":              "its source does not say",
	"env_image":             "no container",
	"env_image_digest":      "no container",
	"model_provider":        "not given to this test",
	"tool_call_style":       "not given to this test",
	"verify_reason":         "a pass has no reason",
	"error_class":           "no error",
	"error_message":         "no error",
	"price_table":           "not given to this test",
	"gold_func_recall":      "the repository is not given to this test",
	"wrong_fact_ratio":      "no annotations",
	"invalidation_reason":   "it is valid",
	"phases":                "one conversation",
	"phase_models":          "one conversation",
	"n_diverged":            "it does not replay another episode",
	"first_diverged_step":   "it does not replay another episode",
	"prompts_rebuild":       "prompts of this test have no hash to compare with",
	"patch_left_out":        "no file is too large",
	"verify_warnings":       "the verdict has no warnings",
	"difficulty":            "the task was not measured",
	"traceback_functions":   "the task was not measured",
	"executed_functions":    "the task was not measured",
	"executed_files":        "the task was not measured",
	"gold_difficulty":       "the task was not measured",
	"gold_visible":          "the task was not measured",
	"gold_function_shown":   "the task was not measured",
	"gold_symptom_distance": "the task was not measured",
	"gold_ochiai_rank":      "the task was not measured",

	"redundancy":               "no step shows lines of files",
	"gold_line_precision":      "no step shows lines of files",
	"gold_line_f05":            "no step shows lines of files",
	"gold_first_contact":       "no step shows lines of files",
	"gold_evidence_drop":       "no step shows lines of files",
	"breakpoint_hit_rate":      "no breakpoint was accepted",
	"pack_tokens":              "no handover",
	"gold_pack_recall":         "no handover",
	"gold_pack_precision":      "no handover",
	"gold_pack_sufficient":     "no handover",
	"gold_operator":            "people made the bug",
	"gold_root_hit":            "the repository is not given to this test",
	"gold_breakpoints_to_root": "the repository is not given to this test",
	"gold_breakpoint_distance": "the repository is not given to this test",

	"false_claim_share":         "the auditor decides no claim",
	"gold_evidence_differs":     "no paired trace is given to this test",
	"gold_value_recall":         "no paired trace is given to this test",
	"gold_inspection_precision": "no paired trace is given to this test",
	"claimed_resolved":          "only imported episodes have it",
	"gold_evidence_possible":    "no paired trace is given to this test",
	"gold_causal_share":         "no paired trace is given to this test",
	"gold_candidate_bits":       "no paired trace is given to this test",
	"gold_unknown_inspections":  "no paired trace is given to this test",
}

var nullInSteps = map[string]string{
	"phase":                 "one conversation",
	"reasoning":             "this model does not reason aloud",
	"reasoning_blocks_json": "this model does not reason aloud",
	"prompt_sha256":         "prompts of this test have no hash",
	"prompt_rebuilds":       "prompts of this test have no hash to compare with",
	"context_op_json":       "no prompt was cut",
	"tool_set_sha256":       "not given to this test",
	"request_sha256":        "not given to this test",
	"response_sha256":       "not given to this test",
	"gold_n_differing":      "no paired trace is given to this test",
}

func TestNullColumnsOfTheGoldenEpisode(t *testing.T) {
	s := normalised(t, golden(), Config{Producer: "test"})
	var episodes, steps []string
	for _, c := range arrowrec.Episodes.Columns {
		if c.Value(reflect.ValueOf(s.Episode)) == nil {
			episodes = append(episodes, c.Name)
		}
	}
	for _, c := range arrowrec.Steps.Columns {
		if !slices.ContainsFunc(s.Steps, func(r schemas.StepRow) bool { return c.Value(reflect.ValueOf(r)) != nil }) {
			steps = append(steps, c.Name)
		}
	}
	for _, x := range []struct {
		table string
		null  []string
		why   map[string]string
	}{{"episodes", episodes, nullInEpisodes}, {"steps", steps, nullInSteps}} {
		for _, name := range x.null {
			if x.why[name] == "" {
				t.Errorf("%s.%s is null, but no reason is listed", x.table, name)
			}
		}
		for name := range x.why {
			if !slices.Contains(x.null, name) {
				t.Errorf("%s.%s has a value: remove it from the list", x.table, name)
			}
		}
	}
}

func TestLicenseAndBenchmarks(t *testing.T) {
	ep := golden()
	ep.Task.License, ep.Task.LicenseFile = "Apache-2.0", "LICENSE"
	ep.Task.Repo = "https://github.com/sympy/sympy.git"
	e := normalised(t, ep, Config{}).Episode
	if *e.LicenseSPDX != "Apache-2.0" || *e.LicenseSource != "LICENSE" || !cmp.Equal(e.Contamination, []string{"swe-bench:repo"}) {
		t.Errorf("%s of %s, %v", *e.LicenseSPDX, *e.LicenseSource, e.Contamination)
	}
	ep.Task.License, ep.Task.LicenseFile, ep.Task.Repo = "", "", "fake/calc-1" // sources without repositories give the name of the task
	e = normalised(t, ep, Config{}).Episode
	if e.LicenseSPDX != nil || e.LicenseSource != nil || e.Contamination != nil {
		t.Errorf("an unknown repository: %v %v %v", e.LicenseSPDX, e.LicenseSource, e.Contamination)
	}
	ep.Task.Origin = &schemas.Origin{UpstreamRepo: "github.com/acme/calc", License: "ISC"}
	e = normalised(t, ep, Config{}).Episode
	if *e.LicenseSPDX != "ISC" || e.Contamination == nil || len(e.Contamination) != 0 {
		t.Errorf("a generated bug with an upstream repository: %v %v", e.LicenseSPDX, e.Contamination)
	}
}

func TestCopiedTurnsAreMasked(t *testing.T) {
	ep := golden()
	ep.Agent.Policy, ep.Agent.Parent = "replay", "0123"
	for i := 2; i < 6; i++ { // the steps of turns 0 to 2, with two calls in turn 0
		if p := ep.Steps[i].Reply; p != nil {
			p.Copied = true
		}
	}
	s := normalised(t, ep, Config{})
	if *s.Episode.ParentEpisodeID != "0123" || *s.Episode.BranchTurn != 3 {
		t.Errorf("parent %v, branch at %v", s.Episode.ParentEpisodeID, s.Episode.BranchTurn)
	}
	for i, r := range s.Steps {
		if copied := r.IsCopiedContext != nil && *r.IsCopiedContext; copied != (2 <= i && i < 6) {
			t.Errorf("step %d: copied %v", i, copied)
		}
		if 2 <= i && i < 6 && (r.Train || *r.MaskReason != "copied") {
			t.Errorf("step %d is trained on", i)
		}
	}
}

func TestRewardHacksAreFlagged(t *testing.T) {
	ep := golden()
	ep.Steps[9].ToolCall.Arguments = json.RawMessage(`{"command":"rm -r tests; curl http://x"}`)
	ep.Patch = []byte("diff --git a/sitecustomize.py b/sitecustomize.py\nnew file mode 100644\n--- /dev/null\n+++ b/sitecustomize.py\n@@ -0,0 +1 @@\n+import sys\n")
	s := normalised(t, ep, Config{})
	if diff := cmp.Diff([]string{"import_hook", "tests_removed"}, s.Episode.HackPatterns); diff != "" || !*s.Episode.RewardHack || *s.Episode.EditsTests {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"curl", "tests_removed"}, s.Steps[9].LeakPatterns); diff != "" || s.Steps[0].LeakPatterns != nil {
		t.Error(diff)
	}
	ep.Steps[4].ToolCall.Arguments = json.RawMessage(`{"command":"!import subprocess; subprocess.run('git log --all', shell=True)"}`)
	if s := normalised(t, ep, Config{}); !cmp.Equal(s.Steps[4].LeakPatterns, []string{"git_log_all"}) {
		t.Errorf("leak patterns of a program that the debugger ran: %v", s.Steps[4].LeakPatterns)
	}
}

func TestTokensAreCounted(t *testing.T) {
	ep := golden()
	before := *normalised(t, ep, Config{}).Episode.SFTTokens
	ep.Steps[2].Reply.Message += " one two three"
	e := normalised(t, ep, Config{}).Episode
	if *e.SFTTokens != before+3 || *e.SFTTokenizer != "o200k_base" || *e.SFTTokensJSON == "" {
		t.Errorf("%d, then %d by %s", before, *e.SFTTokens, *e.SFTTokenizer)
	}
}
