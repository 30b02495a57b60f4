package selection_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/pipeline/selection"
	"github.com/tracesmith/tracesmith/schemas"
)

// saveSelection returns the text of a selection file with the decisions of r about rows.
func saveSelection(t *testing.T, r *selection.Recipe, rows []schemas.EpisodeRow) string {
	t.Helper()
	res := apply(t, r, rows)
	h := selection.NewHeader(r, res)
	h.Dataset, h.Version = "traces", "0123456789abcdef"
	var b bytes.Buffer
	if err := selection.Write(&b, h, res.Rows); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const halves = "name: halves\npredicates: [{name: even, expr: 'attempt % 2 == 0'}]\ncaps: {repo: 2}\nseed: 3\nselect: first\nreport: [resolved]\n"

func twentyEpisodes() []schemas.EpisodeRow {
	rows := episodes(20)
	for i := range rows {
		rows[i].Attempt = int32(i)
	}
	return rows
}

func TestFileRepeatsDecisions(t *testing.T) {
	rows := twentyEpisodes()
	r := load(t, halves)
	want := apply(t, r, rows)
	text := saveSelection(t, r, rows)
	f, err := selection.ParseFile("picked.jsonl", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(rows)
	got := apply(t, f, rows)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the file makes other decisions:\n%s", diff)
	}
	if again := saveSelection(t, r, rows); again != text {
		t.Error("the same decisions give different bytes")
	}
	if f.Header.Expr != "attempt % 2 == 0" || f.Header.Info().SHA256 != r.SHA256() || f.Header.Kept != len(want.Kept) || f.Header.Seed != 3 {
		t.Errorf("header = %+v", f.Header)
	}
	// There are 10 even attempts, 2 in each of 5 repositories, so the cap rejects none.
	if n := len(want.Kept); n != 10 {
		t.Errorf("%d kept, want 10", n)
	}
	other := load(t, strings.Replace(halves, "repo: 2", "repo: 1", 1))
	g, err := selection.ParseFile("p", strings.NewReader(saveSelection(t, other, rows)))
	if err != nil || g.SHA256() == f.SHA256() {
		t.Errorf("other decisions have the same hash, or %v", err)
	}
}

func TestFileRefusesOtherEpisodes(t *testing.T) {
	rows := twentyEpisodes()
	f, err := selection.ParseFile("picked.jsonl", strings.NewReader(saveSelection(t, load(t, halves), rows)))
	if err != nil {
		t.Fatal(err)
	}
	changed := slices.Clone(rows)
	changed[3].ContentSHA256 = new("other")
	foreign := slices.Clone(rows)
	for i := range foreign {
		foreign[i].EpisodeID = "x" + foreign[i].EpisodeID[1:]
	}
	for want, rows := range map[string][]schemas.EpisodeRow{
		"belongs to dataset traces, version 0123456789abcdef: none of its 20 episodes are here":          foreign,
		"names 3 episodes that are missing here, such as " + f.Rows[0].EpisodeID:                         without(rows, f.Rows[0].EpisodeID, f.Rows[5].EpisodeID, f.Rows[9].EpisodeID),
		"says nothing about 1 of the 21 episodes here":                                                   append(slices.Clone(rows), episodes(21)[20]),
		"is for episodes with the same IDs but different content: make one for these episodes with trac": changed,
	} {
		_, err := f.Apply(t.Context(), source(rows))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "picked.jsonl") {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

func without(rows []schemas.EpisodeRow, ids ...string) []schemas.EpisodeRow {
	return slices.DeleteFunc(slices.Clone(rows), func(e schemas.EpisodeRow) bool { return slices.Contains(ids, e.EpisodeID) })
}

func TestDamagedFilesAreExplained(t *testing.T) {
	text := saveSelection(t, load(t, halves), twentyEpisodes())
	lines := strings.SplitAfter(text, "\n")
	for want, text := range map[string]string{
		"line 1: not the header":                 "{\"schema\":",
		"line 1: schema is":                      "{\"schema\":\"tracesmith.filter/1\"}\n",
		"line 1: name is":                        strings.Replace(text, `"name":"halves",`, `"name":"../halves",`, 2),
		"line 3: not a decision":                 lines[0] + lines[1] + "{\n",
		"line 2: episode_id is missing":          lines[0] + "{}\n",
		"occurs twice":                           lines[0] + lines[1] + lines[1],
		"either kept or have reasons against it": lines[0] + `{"episode_id":"a","kept":true,"reasons":["x"]}` + "\n",
		"decides about 1 episodes and keeps":     lines[0] + lines[1],
		"p.jsonl is empty":                       "",
	} {
		_, err := selection.ParseFile("p.jsonl", strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "p.jsonl") {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func FuzzFile(f *testing.F) {
	f.Add("")
	f.Add("{}\n{}")
	f.Add(`{"schema":"tracesmith.selection/1","name":"x","episodes":1,"kept":1,"recipe":{"name":"x"}}` + "\n" + `{"episode_id":"a","kept":true,"reasons":[]}`)
	f.Add(`{"schema":"tracesmith.selection/1","name":"x","recipe":null,"funnel":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		file, err := selection.ParseFile("f", strings.NewReader(text))
		if err != nil {
			return
		}
		if len(file.Rows) != file.Header.Episodes {
			t.Errorf("%d rows, but the header says %d", len(file.Rows), file.Header.Episodes)
		}
		_ = file.About()
		if _, err := file.Apply(t.Context(), source(episodes(2))); err == nil && len(file.Rows) != 2 {
			t.Error("a file for other episodes was applied")
		}
	})
}

func FuzzExpression(f *testing.F) {
	for _, s := range []string{
		"resolved && n_turns > 3", "uses_debugger(2)", "calls.exists(s, is_pdb(s))", "pass_at(n_turns) > 0.5", "known(reward)", "solved",
		"pass_at(0) > 0.1", "steps.all(solved, solved.train)", "before('x')", "is_pdb(1)", "steps[99].train", "has(steps[0].score_after)",
	} {
		f.Add(s)
	}
	e := episodes(1)[0]
	f.Fuzz(func(t *testing.T, expr string) {
		if len(expr) > 200 { // longer expressions only take more time
			return
		}
		r, err := selection.FromExpr(expr)
		if err != nil {
			if strings.Contains(err.Error(), "panic") {
				t.Error(err)
			}
			return
		}
		got, err := r.Apply(t.Context(), one(e, withCalls("view", "pdb b 3", "edit")))
		if err == nil {
			wantSums(t, 1, got)
		}
	})
}
