package selection_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/pipeline/selection"
	"github.com/tracesmith/tracesmith/schemas"
)

type example struct {
	expr  string // expression that uses the predicate
	set   func(e *schemas.EpisodeRow)
	calls string // in the form of call, separated by |; "-" for no steps
	want  string
}

func set[T any](field func(*schemas.EpisodeRow) *T, v T) func(*schemas.EpisodeRow) {
	return func(e *schemas.EpisodeRow) { *field(e) = v }
}

// threeExamples returns a positive, a negative and a null example of a predicate that uses
// one column.
func threeExamples[T any](expr string, field func(*schemas.EpisodeRow) *T, yes, no, null T) []example {
	return []example{{expr, set(field, yes), "-", "yes"}, {expr, set(field, no), "-", "no"}, {expr, set(field, null), "-", "unknown"}}
}

type row = schemas.EpisodeRow

var (
	resolved = func(e *row) **bool { return &e.Resolved }
	class    = func(e *row) *string { return &e.TerminationClass }
	turns    = func(e *row) *int32 { return &e.NTurns }
)

func applyAll(fs ...func(*row)) func(*row) {
	return func(e *row) {
		for _, f := range fs {
			f(e)
		}
	}
}

func day(t *testing.T, s string) *time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return &at
}

func trustExamples() [][]example {
	return [][]example{
		threeExamples("verified_success", resolved, new(true), new(false), nil),
		{{"verified_success", set(func(e *row) *string { return &e.VerifyStatus }, "not_run"), "-", "no"}},
		threeExamples("per_test_verdict", func(e *row) **string { return &e.VerifyMethod }, new("pytest"), new("exit_code"), nil),
		threeExamples("fresh_verdict", func(e *row) **bool { return &e.VerdictStale }, new(false), new(true), nil),
		threeExamples("acted", turns, 1, 0, 0)[:2],
		threeExamples("tests_hidden", func(e *row) **string { return &e.TestVisibility }, new("hidden"), new("visible"), nil),
		threeExamples("agent_ended", class, "agent", "budget", "")[:2],
		{
			{"ended_cleanly", set(class, "agent"), "-", "yes"},
			{"ended_cleanly", applyAll(set(class, "agent"), set(func(e *row) *string { return &e.ExitReason }, schemas.ExitNoEvidence)), "-", "no"},
			{"ended_cleanly", applyAll(set(class, "budget"), set(func(e *row) **int32 { return &e.ResolvedAtStep }, new(int32(4)))), "-", "yes"},
			{"ended_cleanly", set(class, "budget"), "-", "no"}, // null in resolved_at_step means that it was not resolved before
			{"ended_cleanly", applyAll(set(class, "budget"), set(resolved, nil), set(func(e *row) **int32 { return &e.ResolvedAtStep }, new(int32(4)))), "-", "unknown"},
		},
		threeExamples("gold_evidence", func(e *row) **bool { return &e.GoldEvidenceDiffers }, new(true), new(false), nil),
		threeExamples("little_padding", func(e *row) **float64 { return &e.PaddingShare }, new(0.2), new(0.3), nil),
		threeExamples("no_infra_failure", class, "budget", "infra", "")[:2],
		{
			{"valid", set(func(e *row) **bool { return &e.Invalidated }, nil), "-", "yes"},
			{"valid", set(func(e *row) **bool { return &e.Invalidated }, new(false)), "-", "yes"},
			{"valid", set(func(e *row) **bool { return &e.Invalidated }, new(true)), "-", "no"},
		},
		threeExamples("no_gold", func(e *row) *bool { return &e.GoldUsed }, false, true, false)[:2],
		threeExamples("has_patch", func(e *row) **int64 { return &e.PatchBytes }, new(int64(65536)), new(int64(0)), nil),
		threeExamples("has_patch(10)", func(e *row) **int64 { return &e.PatchBytes }, new(int64(10)), new(int64(11)), nil),
		threeExamples("no_test_edits", func(e *row) **bool { return &e.EditsTests }, new(false), new(true), nil),
		threeExamples("no_leak", func(e *row) **bool { return &e.LeakNetwork }, new(false), new(true), nil),
		{{"no_leak", applyAll(set(func(e *row) **bool { return &e.LeakNetwork }, nil), set(func(e *row) **bool { return &e.LeakGitHistory }, new(true))), "-", "no"}},
		threeExamples("no_reward_hack", func(e *row) **bool { return &e.RewardHack }, new(false), new(true), nil),
		{
			{"not_copying_gold", set(func(e *row) **float64 { return &e.GoldPatchSimilarity }, new(0.99)), "-", "yes"}, // without reading the git history
			{"not_copying_gold", applyAll(set(func(e *row) **float64 { return &e.GoldPatchSimilarity }, new(0.98)), set(func(e *row) **bool { return &e.LeakGitHistory }, new(true))), "-", "no"},
			{"not_copying_gold", set(func(e *row) **bool { return &e.LeakGitHistory }, nil), "-", "unknown"},
		},
	}
}

func formExamples() [][]example {
	return [][]example{
		threeExamples("within_context", func(e *row) **string { return &e.SFTTokensJSON }, new(`{"a":32768}`), new(`{"a":32769}`), nil),
		threeExamples(`within_context(10, "b")`, func(e *row) **string { return &e.SFTTokensJSON }, new(`{"a":11,"b":10}`), new(`{"a":1,"b":11}`), new(`{"a":1}`)),
		threeExamples("min_turns", turns, 3, 2, 0)[:2],
		threeExamples("min_turns(5)", turns, 5, 4, 0)[:2],
		threeExamples("max_turns", turns, 75, 76, 0)[:2],
		threeExamples("format_error_rate", func(e *row) **int32 { return &e.NFormatErrors }, new(int32(1)), new(int32(2)), nil), // of 6 turns
		threeExamples("error_rate(0.5)", func(e *row) **int32 { return &e.NErrors }, new(int32(3)), new(int32(4)), nil),
		threeExamples("no_loops", func(e *row) **int32 { return &e.MaxRepeatRun }, new(int32(3)), new(int32(4)), nil),
		threeExamples("no_loops(4, 0.5)", func(e *row) **float64 { return &e.LoopScore }, new(0.4), new(0.5), nil),
		threeExamples("untrimmed_context", func(e *row) **bool { return &e.ContextTrimmed }, new(false), new(true), nil),
		{
			{"context_rebuilds", set(func(e *row) **bool { return &e.ContextTrimmed }, new(false)), "-", "yes"},
			{"context_rebuilds", applyAll(set(func(e *row) **bool { return &e.ContextTrimmed }, new(true)), set(func(e *row) **bool { return &e.PromptsRebuild }, new(true))), "-", "yes"},
			{"context_rebuilds", set(func(e *row) **bool { return &e.ContextTrimmed }, new(true)), "-", "no"},
			{"context_rebuilds", set(func(e *row) **bool { return &e.ContextTrimmed }, nil), "-", "unknown"},
		},
		threeExamples("uses_debugger", func(e *row) **int32 { return &e.NPDB }, new(int32(1)), new(int32(0)), nil),
		threeExamples("uses_debugger(3)", func(e *row) **int32 { return &e.NPDB }, new(int32(3)), new(int32(2)), nil),
		threeExamples("seeks_before_edit(2)", func(e *row) **int32 { return &e.NExploreBeforeEdit }, new(int32(2)), new(int32(1)), nil),
	}
}

func mixtureExamples(t *testing.T) [][]example {
	return [][]example{
		threeExamples("license_in", func(e *row) **string { return &e.LicenseSPDX }, new("ISC"), new("AGPL-3.0-only"), nil),
		threeExamples(`license_in(["EUPL-1.2"])`, func(e *row) **string { return &e.LicenseSPDX }, new("EUPL-1.2"), new("MIT"), nil),
		threeExamples("not_benchmark", func(e *row) *[]string { return &e.Contamination }, []string{}, []string{"SWE-bench:repo"}, nil),
		threeExamples(`not_benchmark(["bugs"])`, func(e *row) *[]string { return &e.Contamination }, []string{"swe-bench:repo"}, []string{"bugs:instance"}, nil),
		threeExamples(`before("2025-01-31")`, func(e *row) **time.Time { return &e.TaskCreatedAt }, day(t, "2025-01-30T23:59:59Z"), day(t, "2025-01-31T00:00:00Z"), nil),
		threeExamples(`after("2025-01-31")`, func(e *row) **time.Time { return &e.TaskCreatedAt }, day(t, "2025-01-31T00:00:00Z"), day(t, "2025-01-30T23:59:59Z"), nil),
		threeExamples(`model_in(["m"])`, func(e *row) *string { return &e.Model }, "m", "n", "")[:2],
		threeExamples(`agent_in(["react"])`, func(e *row) *string { return &e.AgentName }, "react", "null", "")[:2],
		threeExamples(`language_in(["python"])`, func(e *row) **string { return &e.Language }, new("python"), new("go"), nil),
		threeExamples(`repo_in(["a/b"])`, func(e *row) *string { return &e.Repo }, "a/b", "a/c", "")[:2],
		threeExamples(`bug_kind_in(["real"])`, func(e *row) **string { return &e.BugKind }, new("real"), new("made"), nil),
		{
			{"semi_resolved", applyAll(set(resolved, new(false)), set(func(e *row) **float64 { return &e.GoldEditFileRecall }, new(1.0))), "-", "yes"},
			{"semi_resolved", applyAll(set(resolved, new(false)), set(func(e *row) **float64 { return &e.GoldEditFileRecall }, new(0.5))), "-", "no"},
			{"semi_resolved", applyAll(set(resolved, new(true)), set(func(e *row) **float64 { return &e.GoldEditFileRecall }, new(1.0))), "-", "no"},
			{"semi_resolved", set(resolved, new(false)), "-", "unknown"},
			{"useful_failure", applyAll(set(resolved, new(false)), set(func(e *row) **float64 { return &e.WrongFactRatio }, new(0.8))), "-", "yes"},
			{"useful_failure", applyAll(set(resolved, new(false)), set(func(e *row) **float64 { return &e.WrongFactRatio }, new(0.81))), "-", "no"},
			{"useful_failure", applyAll(set(resolved, new(false)), set(class, "budget")), "-", "no"},
			{"useful_failure", set(resolved, new(false)), "-", "unknown"},
		},
		threeExamples("pass_at(1) > 0.5", resolved, new(true), new(false), nil),
		threeExamples("difficulty_band(0.5, 2)", resolved, new(true), new(false), nil),
		threeExamples(`criteria("c")`, func(e *row) *[]string { return &e.SatisfiedCriteria }, []string{"b", "c"}, []string{"b"}, nil)[:2],
		threeExamples("has_successful_outcome", resolved, new(true), new(false), nil),
	}
}

// Each named predicate has a positive and a negative example, and a null example if its column can be null.
func TestEveryPredicate(t *testing.T) {
	all := slices.Concat(slices.Concat(trustExamples(), formExamples(), mixtureExamples(t))...)
	all = append(all, stepExamples...)
	covered := map[string]map[string]bool{}
	for _, x := range all {
		e := episodes(1)[0]
		if x.set != nil {
			x.set(&e)
		}
		var steps []schemas.StepRow
		if x.calls != "-" {
			steps = withCalls(strings.Split(x.calls, "|")...)
		}
		if got := evaluate(t, x.expr, e, steps); got != x.want {
			t.Errorf("%s: %s, want %s", x.expr, got, x.want)
		}
		for _, p := range selection.Predicates() {
			if strings.Contains(x.expr, p.Name) {
				if covered[p.Name] == nil {
					covered[p.Name] = map[string]bool{}
				}
				covered[p.Name][x.want] = true
			}
		}
	}
	for _, p := range selection.Predicates() {
		if !covered[p.Name]["yes"] || !covered[p.Name]["no"] {
			t.Errorf("%s has no positive or no negative example", p.Name)
		}
	}
}

// stepExamples has examples for predicates that use steps. A reply without a call has no
// category, so it counts neither as a debugger call nor as an edit.
var stepExamples = []example{
	{"steps.exists(s, is_pdb(s))", nil, "view|pdb w", "yes"}, {"steps.exists(s, is_pdb(s))", nil, "view||edit", "no"},
	{"calls.exists(s, is_edit(s))", nil, "rewrite", "yes"}, {"calls.exists(s, is_edit(s))", nil, "|pdb w", "no"},
	{`calls.exists(s, pdb_says(s, ["w", "where"]))`, nil, "pdb where", "yes"}, {`calls.exists(s, pdb_says(s, ["w"]))`, nil, "pdb n||view", "no"},
	{"no_copied_steps", nil, "view|", "yes"}, {"no_copied_steps", nil, "view|*view", "no"}, {"no_copied_steps", nil, "view|?view", "unknown"},
	{"calls.exists(_s, pads(_s))", nil, "=pdb p x|~pdb p x", "yes"}, {"calls.exists(_s, pads(_s))", nil, "=pdb p x|view", "no"},
	{"calls.exists(_s, shows_gold_evidence(_s))", nil, "view|=pdb p x", "yes"}, {"calls.exists(_s, shows_gold_evidence(_s))", nil, "view|~pdb p x", "no"},
	{"seeks_new_information(2)", nil, "+view|view|+grep", "yes"}, {"seeks_new_information(2)", nil, "+view|view", "no"}, // is_new_information of the second call is null
	{"debug_to_code_patterns() == 1", nil, "pdb w|edit", "yes"}, {"debug_to_code_patterns() == 1", nil, "|edit", "no"},
	{"has_consecutive_pdb_calls(2)", nil, "pdb w|pdb n", "yes"}, {"has_consecutive_pdb_calls(2)", nil, "pdb w||pdb n", "no"},
	{"uses_pdb_print_commands", nil, "pdb pp x", "yes"}, {"uses_pdb_print_commands", nil, "pdb|", "no"},
	{`uses_specific_pdb_command("n")`, nil, "pdb n", "yes"}, {`uses_specific_pdb_command("n")`, nil, "pdb|", "no"},
	{"has_rewrite_after_pdb", nil, "pdb w||edit", "yes"}, {"has_rewrite_after_pdb", nil, "edit|pdb w|", "no"},
	{"has_rewrite_soon_after_pdb(1)", nil, "pdb w|edit", "yes"}, {"has_rewrite_soon_after_pdb(1)", nil, "pdb w||edit", "no"},
	{"count_debug_to_code_patterns", nil, "pdb w|edit", "yes"}, {"count_debug_to_code_patterns", nil, "pdb w|", "no"},
	{"has_sufficient_debug_to_code_patterns(2)", nil, "pdb w|pdb n|edit", "yes"}, {"has_sufficient_debug_to_code_patterns(2)", nil, "pdb w||edit", "no"},
	{"has_continue_after_setting_breakpoints", nil, "pdb b 1||pdb c", "yes"}, {"has_continue_after_setting_breakpoints", nil, "pdb b 1|", "no"},
	{"follows_proper_debugging_workflow", nil, "pdb b 1||pdb c|pdb p x", "yes"}, {"follows_proper_debugging_workflow", nil, "pdb b 1|pdb c|", "no"},
	{"has_minimum_trajectory_length(3)", nil, "view|", "yes"}, {"has_minimum_trajectory_length(3)", nil, "view", "no"},
	{"has_sufficient_code_changes", nil, "edit|", "yes"}, {"has_sufficient_code_changes", nil, "view|", "no"},
}
