package selection_test

import (
	"context"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/pipeline/selection"
	"github.com/tracesmith/tracesmith/schemas"
)

// call returns a row of the agent: "view", "edit", "pdb b x.py:3", or "" for a reply without a
// call. A prefix *, ?, +, ~ or = sets further columns.
func call(index int, what string) schemas.StepRow {
	s := schemas.StepRow{StepIndex: int32(index), Source: "agent", ActionKind: "think", Synthetic: new(false), IsCopiedContext: new(false)}
	switch {
	case strings.HasPrefix(what, "*"): // copied from another attempt
		s.IsCopiedContext = new(true)
	case strings.HasPrefix(what, "?"): // unknown whether it is synthetic
		s.Synthetic = nil
	case strings.HasPrefix(what, "+"): // a search that finds something new
		s.IsNewInformation, s.ActionKind = new(true), metrics.SeekStatic
	case strings.HasPrefix(what, "~"): // padding
		s.IsPadding, s.GoldNDiffering = new(true), new(int32(0))
	case strings.HasPrefix(what, "="): // a value that differs
		s.IsPadding, s.GoldNDiffering = new(false), new(int32(2))
	}
	tool, command, _ := strings.Cut(strings.TrimLeft(what, "*?+~="), " ")
	if tool == "" {
		return s
	}
	s.ToolName, s.ToolCategory = &tool, new(metrics.Category(tool))
	if word, _, _ := strings.Cut(command, " "); tool == "pdb" && word != "" {
		s.PDBCommand = &word
	}
	return s
}

// withCalls returns the steps of an episode: the first message, which is not a call, and the calls.
func withCalls(calls ...string) []schemas.StepRow {
	steps := []schemas.StepRow{{Source: "user", ActionKind: "none"}}
	for i, c := range calls {
		steps = append(steps, call(i+1, c))
	}
	return steps
}

// one returns a source with one episode.
func one(e schemas.EpisodeRow, steps []schemas.StepRow) selection.Source {
	return func(_ context.Context, withSteps bool) iter.Seq2[selection.Episode, error] {
		episode := selection.Episode{Row: e}
		if withSteps {
			episode.Steps = steps
		}
		return func(yield func(selection.Episode, error) bool) { yield(episode, nil) }
	}
}

// evaluate returns the value of an expression for one episode: yes, no or unknown.
func evaluate(t *testing.T, expr string, e schemas.EpisodeRow, steps []schemas.StepRow) string {
	t.Helper()
	r, err := selection.FromExpr(expr)
	if err != nil {
		t.Fatal(err)
	}
	return evaluateRecipe(t, r, e, steps)
}

func evaluateRecipe(t *testing.T, r *selection.Recipe, e schemas.EpisodeRow, steps []schemas.StepRow) string {
	t.Helper()
	got, err := r.Apply(t.Context(), one(e, steps))
	if err != nil {
		t.Fatal(err)
	}
	switch f := got.Funnel[0]; {
	case f.Out == 1:
		return "yes"
	case f.Unknown == 1:
		return "unknown"
	}
	return "no"
}

// The values of the twelve criteria were computed by hand.
func TestCriteriaByHand(t *testing.T) {
	e := episodes(1)[0]
	for _, c := range []struct {
		calls string // separated by |
		expr  string
		want  string
	}{
		{"view|pdb b 3|pdb c|view|pdb p x", "has_consecutive_pdb_calls(2)", "yes"},
		{"view|pdb b 3|pdb c|view|pdb p x", "has_consecutive_pdb_calls(3)", "no"},
		{"view|pdb b 3|pdb c|pdb p x", "has_consecutive_pdb_calls(3)", "yes"},
		{"view|view", "has_consecutive_pdb_calls", "no"},
		{"pdb pp x", "uses_pdb_print_commands", "yes"},
		{"pdb print(x)", "uses_pdb_print_commands", "no"}, // the first word is print(x)
		{"pdb w|bash p", "uses_pdb_print_commands", "no"},
		{"pdb w|view", `uses_specific_pdb_command("w")`, "yes"},
		{"pdb w|view", `uses_specific_pdb_command("where")`, "no"},
		{"edit|pdb w", "has_rewrite_after_pdb", "no"},
		{"pdb w|view|rewrite", "has_rewrite_after_pdb", "yes"},
		{"pdb w||||edit", "has_rewrite_soon_after_pdb(4)", "yes"}, // the edit is the 4th call after it
		{"pdb w||||edit", "has_rewrite_soon_after_pdb(3)", "no"},
		{"pdb w|pdb n|edit|pdb w", "debug_to_code_patterns() == 2", "yes"},
		{"pdb w|pdb n|edit|pdb w", "debug_to_code_patterns(1) == 1", "yes"},
		{"pdb w|pdb n|edit|pdb w", "has_sufficient_debug_to_code_patterns(2)", "yes"},
		{"pdb w|pdb n|edit|pdb w", "has_sufficient_debug_to_code_patterns(2, 1)", "no"},
		{"pdb w|view", "count_debug_to_code_patterns", "no"},
		{"pdb c|pdb b 3", "has_continue_after_setting_breakpoints", "no"},
		{"pdb tbreak 3|view|pdb cont", "has_continue_after_setting_breakpoints", "yes"},
		{"pdb b 3|pdb p x|pdb c", "follows_proper_debugging_workflow", "no"},
		{"pdb b 3|pdb p x|pdb c|pdb p x", "follows_proper_debugging_workflow", "yes"},
		{"view|view|view", "has_minimum_trajectory_length", "no"}, // three calls and the reset
		{"view|view|view|", "has_minimum_trajectory_length", "yes"},
		{"view|view|view", "has_minimum_trajectory_length(4)", "yes"},
		{"edit|view|edit", "has_sufficient_code_changes(2)", "yes"},
		{"edit|view|edit", "has_sufficient_code_changes(3)", "no"},
	} {
		if got := evaluate(t, c.expr, e, withCalls(strings.Split(c.calls, "|")...)); got != c.want {
			t.Errorf("%s of %s: %s, want %s", c.expr, c.calls, got, c.want)
		}
	}
}

// The definitions of the criteria agree with metrics.Criteria, which fills the column satisfied_criteria.
func TestCriteriaAgreeWithTheColumn(t *testing.T) {
	criteria := []string{
		"has_successful_outcome", "has_consecutive_pdb_calls", "uses_pdb_print_commands", "has_rewrite_after_pdb", "has_rewrite_soon_after_pdb",
		"count_debug_to_code_patterns", "has_sufficient_debug_to_code_patterns", "has_continue_after_setting_breakpoints",
		"follows_proper_debugging_workflow", "has_minimum_trajectory_length", "has_sufficient_code_changes", `uses_specific_pdb_command("w")`,
	}
	recipes := map[string]*selection.Recipe{}
	for _, c := range criteria {
		r, err := selection.FromExpr(c)
		if err != nil {
			t.Fatal(err)
		}
		recipes[c] = r
	}
	kinds := []string{
		"", "view", "edit", "rewrite", "eval", "pdb", "pdb w", "pdb b 3", "pdb break 3", "pdb tbreak 4", "pdb c", "pdb cont", "pdb continue", "pdb p x", "pdb pp x", "pdb print x",
	}
	rng := rand.New(rand.NewPCG(1, 2))
	metCount := 0
	for n := range 16 * 16 {
		var calls []string
		for range n % 16 {
			calls = append(calls, kinds[rng.IntN(len(kinds))])
		}
		steps := withCalls(calls...)
		e := episodes(1)[0]
		e.Resolved = new(rng.IntN(2) == 0)
		met := metrics.Criteria(steps, e.Resolved)
		for _, c := range criteria {
			name := strings.ReplaceAll(c, `"`, "")
			want := "no"
			if slices.Contains(met, name) {
				want = "yes"
				metCount++
			}
			if got := evaluateRecipe(t, recipes[c], e, steps); got != want {
				t.Errorf("%s of %q: %s, the column says %s", c, calls, got, want)
			}
		}
	}
	if metCount < 100 {
		t.Errorf("only %d criteria were met, want at least 100 for a meaningful test", metCount)
	}
}

// The values were computed by hand. Task a has 4 attempts, 1 of them resolved; b has 2 of 2. c has 1 of 1 and
// an infrastructure failure, which does not count. d has no verdict.
func TestGroups(t *testing.T) {
	var rows []schemas.EpisodeRow
	add := func(group string, resolved ...*bool) {
		for _, r := range resolved {
			e := episodes(len(rows) + 1)[len(rows)]
			e.GroupID, e.Resolved, e.InstanceID, e.Repo = group, r, group, "r"
			if r == nil {
				e.TerminationClass = "infra"
			}
			rows = append(rows, e)
		}
	}
	yes, no := new(true), new(false)
	add("a", no, yes, no, no)
	add("b", yes, yes)
	add("c", nil, yes)
	add("d", nil)
	for _, c := range []struct {
		expr    string
		groups  string // one letter per kept episode
		unknown int
	}{
		{"solved", "aaaabbcc", 1},
		{"0 < avg && avg < 1", "aaaa", 1},
		{"difficulty_band(0.2, 0.3)", "aaaa", 1},
		{"avg == 0.25", "aaaa", 1},
		{"n == 1", "cc", 0},
		{"n_correct == 2", "bb", 0},
		{"best == 1.0 && avg < 0.5", "aaaa", 1},
		{"worst == 1.0", "bbcc", 1},
		// 1 - C(3,2)/C(4,2) = 1 - 3/6
		{"pass_at(2) == 0.5", "aaaa", 3}, // c and d have fewer than 2 attempts
		{"pass_at(1) > 0.249 && pass_at(1) < 0.251", "aaaa", 1},
		{"pass_at(4) == 1.0", "aaaa", 5},
		{"!resolved && solved", "aaa", -1}, // the number of unknown values is not checked
	} {
		r, err := selection.FromExpr(c.expr)
		if err != nil {
			t.Fatal(err)
		}
		got := apply(t, r, rows)
		wantSums(t, len(rows), got)
		var groups []string
		for _, row := range rows {
			if slices.Contains(got.Kept, row.EpisodeID) {
				groups = append(groups, row.GroupID)
			}
		}
		slices.Sort(groups)
		if strings.Join(groups, "") != c.groups {
			t.Errorf("%s keeps %v, want %s", c.expr, groups, c.groups)
		}
		if c.unknown >= 0 && got.Funnel[0].Unknown != c.unknown {
			t.Errorf("%s: %d unknown, want %d", c.expr, got.Funnel[0].Unknown, c.unknown)
		}
	}
}

// The three attempts of one task have 900, 500 and 700 tokens. The second attempt failed.
func TestSelect(t *testing.T) {
	rows := episodes(3)
	for i := range rows {
		rows[i].GroupID, rows[i].Attempt, rows[i].Split, rows[i].Repo, rows[i].InstanceID = "g", int32(2-i), "train", "r", "i"
		rows[i].CompletionTokens = new([]int64{900, 500, 700}[i])
		rows[i].Resolved = new(i != 1)
	}
	for yaml, want := range map[string][]int{
		"select: shortest":          {1},
		"select: best":              {2},
		"select: first":             {2}, // attempt 0
		"select: best\nbest: 2":     {0, 2},
		"select: shortest\nbest: 3": {0, 1, 2},
		"select: best-2":            {0, 2},
		"select: correct":           {0, 2},
		"select: all":               {0, 1, 2},
	} {
		got := apply(t, load(t, "name: x\n"+yaml+"\n"), rows)
		wantSums(t, 3, got)
		var ids []string
		for _, i := range want {
			ids = append(ids, rows[i].EpisodeID)
		}
		slices.Sort(ids)
		if !slices.Equal(got.Kept, ids) {
			t.Errorf("%s keeps %v, want %v", yaml, got.Kept, ids)
		}
	}
	rows[1].CompletionTokens = nil // without all token counts, the number of turns decides
	rows[0].NTurns = 2
	if got := apply(t, load(t, "name: x\nselect: shortest\n"), rows); !slices.Equal(got.Kept, []string{rows[0].EpisodeID}) {
		t.Errorf("kept %v, want the attempt with the fewest turns", got.Kept)
	}
}

// Fractions can be compared with whole numbers with == and !=, not only with <.
func TestFractionsEqualWholeNumbers(t *testing.T) {
	e := episodes(1)[0]
	e.Reward = new(1.0)
	for expr, want := range map[string]string{
		"reward == 1": "yes", "1 == reward": "yes", "reward != 1": "no", "reward - 1.0 == 0": "yes", "score == 1": "unknown",
		"best == 1 && avg < 0.5": "no", "pass_at(1) == 1": "yes", "[2].exists(reward, reward == 2)": "yes", "double(n_turns) / 2.0 == 0": "no",
	} {
		if got := evaluate(t, expr, e, nil); got != want {
			t.Errorf("%s: %s, want %s", expr, got, want)
		}
	}
}

func TestExpressionsAreExplained(t *testing.T) {
	for expr, want := range map[string][]string{
		"resolvd":                     {`"resolvd"`, `did you mean "resolved"?`, "at character 1", "\n  resolvd\n  ^"},
		"resolved && use_debugger(2)": {`did you mean "uses_debugger"?`, "at character 25"},
		"uses_debugger(1, 2)":         {"uses_debugger takes 0 to 1 arguments, got 2", "uses_debugger(turns=1)"},
		"seeks_before_edit":           {"takes 1 argument, got 0", "seeks_before_edit(seeks)"},
		"n_turns > \"a\"":             {"> does not take (int, string)", "at character 9"},
		"steps.all(s, s.synthetc)":    {"table steps has no column \"synthetc\"", `did you mean "synthetic"?`},
		"reward == null":              {"use known(column)"},
		"n_errors / n_turns < 0.5":    {"drops the fraction", "double(a)", "at character 10"},
		"resolved and true":           {`write && instead of "and"`},
		"n > 1 && not resolved":       {`write ! instead of "not"`, "at character 14"},
		"pass@4 >= 0.5":               {"write pass_at(k) instead of pass@k", "at character 5"},
		" ":                           {"has no expression"},
		"n_turns":                     {"of type int, want bool"},
		"resolved &&":                 {"ends too early"},
		"known(resolvd)":              {`did you mean "resolved"?`},
		"license_in(3)":               {"does not take"},
		"resolved &&\n  nturns > 3":   {"line 2, character 3", `did you mean "n_turns"?`},
		strings.Repeat("resolved && ", 40) + "oh_no": {"…", `"oh_no"`},
	} {
		_, err := selection.FromExpr(expr)
		if err == nil {
			t.Errorf("%s was accepted", expr)
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s\ngot:  %v\nwant: %s", expr, err, w)
			}
		}
	}
	nested := "resolved"
	for range 20 {
		nested = "before(before(" + nested + "))"
	}
	if _, err := selection.FromExpr(nested); err == nil {
		t.Error("deeply nested predicates were accepted")
	}
}

func TestRecipesExtend(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("base.yaml", "name: base\npredicates: [resolved, acted, no_leak]\ncaps: {repo: 2}\nseed: 7\nselect: first\n")
	path := write("sub.yaml", "name: sub\nextends: base.yaml\nwithout: [acted]\npredicates: [uses_debugger(2)]\ncaps: {model: 1}\n")
	r, err := selection.LoadRecipe(path)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range r.Predicates {
		names = append(names, p.Name)
	}
	if !slices.Equal(names, []string{"resolved", "no_leak", "uses_debugger(2)"}) || r.Caps["model"] != 1 || len(r.Caps) != 1 || r.Seed != 7 || r.Select != "first" {
		t.Errorf("sub = %+v", r)
	}
	for text, want := range map[string]string{
		"name: x\nextends: base.yaml\nwithout: [actd]":      `did you mean "acted"?`,
		"name: x\nwithout: [a]":                             "no inherited predicates to leave out",
		"name: x\nextends: x.yaml":                          "cycle",
		"name: x\nextends: sucess-v1":                       "no such file",
		"name: x\nextends: base.yaml\npredicates: [acted]":  "used twice",
		"name: x\nselect: longest":                          "choose one of all, best-N, shortest, best, first, correct",
		"name: x\nselect: best-0":                           "choose one of all",
		"name: x\nselect: correct\nbest: 2":                 "together with shortest",
		"name: x\nbest: 2":                                  "together with shortest",
		"name: x\npredicates: [{name: a, expression: 'b'}]": "not \"expression\"",
		"name: x\ncaps: {instance: 2}":                      `did you mean "instance_id"?`,
	} {
		if _, err := selection.LoadRecipe(write("x.yaml", text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot %v, want %q", text, err, want)
		}
	}
	for _, name := range selection.Builtin() {
		if _, err := selection.LoadRecipe(name); err != nil {
			t.Error(err)
		}
	}
}
