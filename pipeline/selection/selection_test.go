package selection_test

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/internal/sinktest"
	"github.com/tracesmith/tracesmith/pipeline/selection"
	"github.com/tracesmith/tracesmith/schemas"
)

func load(t *testing.T, yaml string) *selection.Recipe {
	t.Helper()
	path := filepath.Join(t.TempDir(), "recipe.yaml")
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := selection.LoadRecipe(path)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// apply applies a selection to rows without steps.
func apply(t *testing.T, r selection.Selector, rows []schemas.EpisodeRow) selection.Result {
	t.Helper()
	got, err := r.Apply(t.Context(), source(rows))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func source(rows []schemas.EpisodeRow) selection.Source {
	return func(context.Context, bool) iter.Seq2[selection.Episode, error] {
		return func(yield func(selection.Episode, error) bool) {
			for _, row := range rows {
				if !yield(selection.Episode{Row: row}, nil) {
					return
				}
			}
		}
	}
}

func episodes(n int) []schemas.EpisodeRow {
	var out []schemas.EpisodeRow
	for i := range n {
		out = append(out, sinktest.Episode("run", i).Episode)
	}
	return out
}

// wantSums checks that the numbers of the funnel add up and agree with the rows.
func wantSums(t *testing.T, n int, r selection.Result) {
	t.Helper()
	for _, f := range r.Funnel {
		if f.In != n || f.Out > f.In || f.Unknown > f.In-f.Out {
			t.Errorf("funnel step %+v does not add up with %d inputs", f, n)
		}
		n = f.Out
	}
	if n != len(r.Kept) {
		t.Errorf("funnel ends with %d, %d kept", n, len(r.Kept))
	}
	kept := []string{}
	for _, row := range r.Rows {
		if row.Kept != (row.FirstReason == nil) || row.Kept != (len(row.Reasons) == 0) {
			t.Errorf("row %+v contradicts itself", row)
		}
		if row.Kept {
			kept = append(kept, row.EpisodeID)
		}
	}
	if !slices.Equal(kept, r.Kept) {
		t.Error("the kept IDs and the rows differ")
	}
}

func TestSuccessV1(t *testing.T) {
	recipe, err := selection.LoadRecipe("success-v1")
	if err != nil {
		t.Fatal(err)
	}
	good := episodes(1)[0]
	bad := map[string]func(e *schemas.EpisodeRow){
		"verified_success":  func(e *schemas.EpisodeRow) { e.Resolved = new(false) },
		"per_test_verdict":  func(e *schemas.EpisodeRow) { e.VerifyMethod = new("exit_code") },
		"fresh_verdict":     func(e *schemas.EpisodeRow) { e.VerdictStale = new(true) },
		"acted":             func(e *schemas.EpisodeRow) { e.NTurns = 0 },
		"no_infra_failure":  func(e *schemas.EpisodeRow) { e.TerminationClass = "infra" },
		"ended_cleanly":     func(e *schemas.EpisodeRow) { e.TerminationClass = "budget" },
		"has_patch":         func(e *schemas.EpisodeRow) { e.PatchBytes = new(int64(65537)) },
		"no_test_edits":     func(e *schemas.EpisodeRow) { e.EditsTests = new(true) },
		"no_leak":           func(e *schemas.EpisodeRow) { e.LeakNetwork = new(true) },
		"no_reward_hack":    func(e *schemas.EpisodeRow) { e.RewardHack = new(true) },
		"turns":             func(e *schemas.EpisodeRow) { e.NTurns = 76 },
		"format_error_rate": func(e *schemas.EpisodeRow) { e.NFormatErrors = new(int32(2)) },
		"no_loops":          func(e *schemas.EpisodeRow) { e.LoopScore = new(0.5) },
		"context_rebuilds":  func(e *schemas.EpisodeRow) { e.ContextTrimmed, e.PromptsRebuild = new(true), new(false) },
		"license_allowed":   func(e *schemas.EpisodeRow) { e.LicenseSPDX = new("AGPL-3.0-only") },
		"not_benchmark":     func(e *schemas.EpisodeRow) { e.Contamination = []string{"SWE-bench/lite:repo"} },
		"within_context":    func(e *schemas.EpisodeRow) { e.SFTTokensJSON = new(`{"cl100k_base":32769}`) },
		"valid":             func(e *schemas.EpisodeRow) { e.Invalidated = new(true) },
	}
	if len(recipe.Predicates) != len(bad) {
		t.Errorf("the recipe has %d predicates, but the test has %d cases", len(recipe.Predicates), len(bad))
	}
	for _, p := range recipe.Predicates {
		change, ok := bad[p.Name]
		if !ok {
			t.Errorf("predicate %s has no case", p.Name)
			continue
		}
		e := good
		change(&e)
		r := apply(t, recipe, []schemas.EpisodeRow{e})
		if len(r.Kept) != 0 || *r.Rows[0].FirstReason != p.Name {
			t.Errorf("%s: kept %v, reasons %v", p.Name, r.Kept, r.Rows[0].Reasons)
		}
		wantSums(t, 1, r)
	}
	empty := good // a failed demonstration that is resolved, for example because of a flaky test
	empty.ExitReason = schemas.ExitNoEvidence
	for _, name := range []string{"success-v1", "debugging-v1", "infoseek-v1", "band"} {
		success, err := selection.LoadRecipe(name)
		if err != nil {
			t.Fatal(err)
		}
		if r := apply(t, success, []schemas.EpisodeRow{empty}); len(r.Kept) != 0 || !slices.Contains(r.Rows[0].Reasons, "ended_cleanly") {
			t.Errorf("%s keeps a failed demonstration: %v", name, r.Rows[0].Reasons)
		}
	}
	cut := good // the prompts were trimmed, but follow from the rows
	cut.ContextTrimmed, cut.PromptsRebuild = new(true), new(true)
	for name, e := range map[string]schemas.EpisodeRow{"clean": good, "cut": cut} {
		if r := apply(t, recipe, []schemas.EpisodeRow{e}); len(r.Kept) != 1 {
			t.Errorf("the %s episode was rejected: %v", name, r.Reasons())
		}
	}
}

func TestNullIsUnknown(t *testing.T) {
	r := load(t, `
name: nulls
predicates:
  - {name: a, expr: 'resolved'}
  - {name: b, expr: '!edits_tests || n_turns > 0'}
  - {name: c, expr: 'known(reward) || true'}
  - {name: d, expr: '!known(score)'}
  - {name: e, expr: 'size(tool_names) > 0 && reward > 0.5'}
`)
	e := episodes(2)
	e[0].Resolved = nil
	e[1].EditsTests, e[1].Reward = nil, nil
	got := apply(t, r, e)
	wantSums(t, 2, got)
	var funnel []string
	for _, f := range got.Funnel {
		funnel = append(funnel, fmt.Sprintf("%s %d>%d ?%d", f.Predicate, f.In, f.Out, f.Unknown))
	}
	want := []string{"a 2>1 ?1", "b 1>1 ?0", "c 1>1 ?0", "d 1>1 ?0", "e 1>0 ?1"}
	if diff := cmp.Diff(want, funnel); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int{"a": 1, "e": 1}, got.Reasons()); diff != "" {
		t.Error(diff)
	}
}

func TestDedupAndCaps(t *testing.T) {
	r := load(t, "name: x\ndedup: [content_sha256]\ncaps: {instance_id: 2}\nseed: 24\n")
	e := episodes(30)
	for i := range e {
		e[i].InstanceID = fmt.Sprint("i", i%3)
	}
	e[4].ContentSHA256 = e[1].ContentSHA256 // same instance
	e[5].ContentSHA256, e[8].ContentSHA256 = nil, nil
	got := apply(t, r, e)
	wantSums(t, 30, got)
	if got.Funnel[0].Out != 29 || got.Funnel[1].Out != 6 {
		t.Errorf("funnel = %+v, want 29 after dedup and 6 after the cap", got.Funnel)
	}
	shuffled := slices.Clone(e)
	slices.Reverse(shuffled)
	again := apply(t, r, shuffled)
	if diff := cmp.Diff(got, again); diff != "" {
		t.Errorf("the order of the input changes the result:\n%s", diff)
	}
	r.Seed = 25
	other := apply(t, r, e)
	if slices.Equal(other.Kept, got.Kept) {
		t.Error("the seed changes nothing")
	}
}

func TestBadRecipesAreExplained(t *testing.T) {
	for yaml, want := range map[string]string{
		"name: x\npredicates: [{name: p, expr: 'resolvd'}]":                              "resolvd",
		"name: x\npredicates: [{name: p, expr: 'n_turns + 1'}]":                          "want bool",
		"name: x\npredicates: [{name: p, expr: 'n_turns > \"a\"'}]":                      "p:",
		"name: x\npredicates: [{name: p, expr: 'known(nope)'}]":                          "no such column",
		"name: x\npredicates: [{name: p, expr: 'true'}, {name: p, expr: 'true'}]":        "used twice",
		"name: x\ncaps: {n_turns: 3}":                                                    "not a text column",
		"name: x\ncaps: {repo: 0}":                                                       "at least 1",
		"name: ../x":                                                                     "file name",
		"name: x\nfilters: []":                                                           "filters",
		"name: x\npredicates: [{name: p, expr: 'satisfied_criteria.exists(c, c == 1)'}]": "p:",
	} {
		path := filepath.Join(t.TempDir(), "r.yaml")
		if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := selection.Load(path); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s\ngot %v, want an error with %q and the file", yaml, err, want)
		}
	}
	if _, err := selection.Load("success-v9"); err == nil || !strings.Contains(err.Error(), "success-v1") {
		t.Errorf("unknown name: %v", err)
	}
}
