package provenance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/env/tasks/provenance/overlap"
	"github.com/tracesmith/tracesmith/schemas"
)

const someCommit = "0123456789abcdef0123456789abcdef01234567"

func task(instance, repo, commit, words string) schemas.Task {
	return schemas.Task{Source: "file", InstanceID: instance, Repo: repo, BaseCommit: commit, Instructions: words}
}

func issue(about string) string {
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, "%s%d ", about, i)
	}
	return b.String()
}

func comparison(t *testing.T, tasks ...schemas.Task) *Comparison {
	t.Helper()
	var l Library
	l.Add(RepoHashes{Repo: "github.com/only/code", Benchmark: "bench"})
	for _, one := range tasks {
		if err := l.AddTask(TaskHashesOf(one, "bench")); err != nil {
			t.Fatal(err)
		}
	}
	return l.Comparison()
}

func TestTasksOfBenchmarksAreFoundByName(t *testing.T) {
	c := comparison(t,
		task("acme__calc-12", "acme/calc", someCommit, ""), task("two-fer", "exercism/python", "", ""),
		task("own-1", "local/own", "", ""))
	for name, want := range map[string]struct {
		Names
		found []string
	}{
		"the task":                 {Names{"acme__calc-12", "github.com/acme/calc", someCommit}, []string{"instance acme__calc-12", "commit " + someCommit, "repo github.com/acme/calc"}},
		"under another source":     {Names{"acme__calc-12", "", ""}, []string{"instance acme__calc-12", "commit github.com/acme/calc#12"}},
		"another of its commit":    {Names{"x", "github.com/acme/calc", someCommit}, []string{"commit " + someCommit, "repo github.com/acme/calc"}},
		"a short commit":           {Names{"x", "", someCommit[:12]}, nil},
		"another request":          {Names{"acme__calc-13", "github.com/acme/calc", ""}, []string{"repo github.com/acme/calc"}},
		"a common id":              {Names{"two-fer", "github.com/my/exercises", ""}, nil},
		"its repository too":       {Names{"two-fer", "github.com/exercism/python", ""}, []string{"instance two-fer", "repo github.com/exercism/python"}},
		"a directory of that name": {Names{"other", "local/own", ""}, nil},
		"code without tasks":       {Names{"x", "github.com/only/code", ""}, []string{"repo github.com/only/code"}},
		"nothing":                  {Names{"x", "github.com/my/own", strings.Repeat("f", 40)}, nil},
	} {
		var got []string
		for _, f := range c.Names(want.Names) {
			got = append(got, f.Test+" "+f.Original)
		}
		if !slices.Equal(got, want.found) {
			t.Errorf("%s: %q, want %q", name, got, want.found)
		}
	}
}

func TestTextsOfBenchmarksAreFound(t *testing.T) {
	a, b := task("a", "x/a", "", issue("alpha")), task("b", "x/b", "", issue("beta"))
	b.GoldPatch = "--- a/lib/calc.py\n+++ b/lib/calc.py\n@@ -1,2 +1,2 @@\n-    return sum(values) / count if count else None\n+    return sum(values) / max(count, 1) if values else 0\n around\n"
	c := comparison(t, a, b)
	if got := c.Benchmarks[0].Counts; got != (KnownCounts{Repos: 3, Tasks: 2, Statements: 2, NearStatements: 2, Patches: 1, NearPatches: 1}) {
		t.Errorf("%+v", got)
	}
	found := func(kind int, text string) (out []string) {
		for _, f := range c.Text(kind, overlap.TextHashesOf(text)) {
			if f.Share >= Bound(f.Test) {
				out = append(out, f.Test+" "+f.Original)
			}
		}
		return out
	}
	if got := found(Statements, "Please fix this: "+issue("beta")); !slices.Equal(got, []string{"statement_13gram b", "statement_minhash b"}) {
		t.Errorf("a statement: %q", got)
	}
	elsewhere := strings.ReplaceAll(strings.ReplaceAll(b.GoldPatch, "@@ -1,2 +1,2 @@", "@@ -41,2 +43,2 @@"), "around", "other lines")
	if got := found(Patches, overlap.Changed(elsewhere)); !slices.Equal(got, []string{"patch_13gram b", "patch_minhash b"}) {
		t.Errorf("a patch: %q", got)
	}
	if got := found(Patches, issue("alpha")); got != nil {
		t.Errorf("a patch that contains a statement's words, which only statements are compared with: %q", got)
	}
}

// The same tasks give the same comparison in any order and with repetitions. A file of an older
// version can be read.
func TestTaskHashesGiveTheSameComparison(t *testing.T) {
	repo := RepoHashes{Schema: RepoHashesSchema, Repo: "github.com/x/a", Benchmark: "bench", Functions: hashes(0, 3)}
	one, two := TaskHashesOf(task("a", "x/a", someCommit, issue("alpha")), "bench"), TaskHashesOf(task("b", "x/b", "", issue("beta")), "bench")
	read := func(repos []RepoHashes, tasks ...TaskHashes) *Comparison {
		file := filepath.Join(t.TempDir(), "x.hashes")
		var l Library
		for range 2 {
			if err := WriteHashes(file, repos, tasks); err != nil {
				t.Fatal(err)
			}
			if err := l.ReadHashes(file); err != nil {
				t.Fatal(err)
			}
		}
		return l.Comparison()
	}
	x, y := read([]RepoHashes{repo}, one, two), read([]RepoHashes{repo}, two, one)
	if x.Identity != y.Identity || x.Identity == read([]RepoHashes{repo}, one).Identity || x.Benchmarks[0].Counts.Tasks != 2 {
		t.Errorf("%s, %s", x.Identity, y.Identity)
	}
	if read(nil, one).Identity != read([]RepoHashes{repo}, one).Identity {
		t.Error("functions, which are not compared, change the identity of the comparison")
	}
	if old := read([]RepoHashes{repo}); len(old.Benchmarks) != 1 || old.Benchmarks[0].Counts != (KnownCounts{Repos: 1}) {
		t.Errorf("without tasks: %+v", old.Benchmarks)
	}

	line, err := json.Marshal(one)
	if err != nil {
		t.Fatal(err)
	}
	good := string(line)
	other := strings.Replace(good, someCommit, strings.Repeat("e", 40), 1)
	for name, c := range map[string]struct{ text, want string }{
		"good":    {good + "\n" + good, ""},
		"no name": {strings.Replace(good, `"instance_id":"a"`, `"instance_id":""`, 1), "line 1: it lacks a repo, a benchmark or an instance_id"},
		"later":   {strings.Replace(good, "task/1", "task/2", 1), `line 1: its schema is "tracesmith.hashes.task/2"`},
		"unknown": {strings.Replace(good, "base_commit", "commit", 1), "unknown field"},
		"grams":   {strings.Replace(good, `"grams":"`, `"grams":"!`, 1), "grams are not hashes"},
		"other":   {good + "\n" + other, "line 2: task a of bench occurs twice with different texts"},
		"two":     {good + good, "unexpected text"},
	} {
		file := filepath.Join(t.TempDir(), "x.hashes")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := new(Library).ReadHashes(file)
		if (err == nil) != (c.want == "") || err != nil && !(strings.Contains(err.Error(), c.want) && strings.Contains(err.Error(), file)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
