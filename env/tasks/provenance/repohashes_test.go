package provenance

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/env/tasks/provenance/overlap"
)

func hashes(from, to int) (out []string) {
	for n := from; n < to; n++ {
		out = append(out, fmt.Sprintf("%064x", n))
	}
	return out
}

func TestCopyNeedsHalfOfTheFunctions(t *testing.T) {
	var l Library
	if repo, _, n := l.CopiedFrom(hashes(0, 9)); repo != "" || n != 0 {
		t.Errorf("an empty library has %q", repo)
	}
	l.Add(RepoHashes{Repo: "a/one", Benchmark: "swe-bench", Functions: hashes(0, 100)})
	l.Add(RepoHashes{Repo: "a/one", Benchmark: "swe-bench", Functions: hashes(90, 110)}) // another version of a/one
	l.Add(RepoHashes{Repo: "b/two", Benchmark: "bugsinpy", Functions: hashes(100, 200)})
	for name, c := range map[string]struct {
		functions []string
		repo      string
		shared    int
	}{
		"all of it":        {hashes(10, 20), "a/one", 10},
		"of two versions":  {hashes(85, 110), "a/one", 25},
		"a half":           {append(hashes(0, 5), hashes(500, 505)...), "a/one", 5},
		"less than a half": {append(hashes(0, 4), hashes(500, 505)...), "", 0},
		"two functions":    {hashes(0, 2), "", 0},
		"halves of two":    {append(hashes(0, 10), hashes(150, 160)...), "a/one", 10},
		"none":             {hashes(900, 950), "", 0},
		"no functions":     {nil, "", 0},
	} {
		repo, benchmark, shared := l.CopiedFrom(c.functions)
		if repo != c.repo || shared != c.shared || (benchmark == "") != (repo == "") {
			t.Errorf("%s: %d of %q (%s), want %d of %q", name, shared, repo, benchmark, c.shared, c.repo)
		}
	}
}

func TestReadHashesChecksFiles(t *testing.T) {
	line, err := json.Marshal(RepoHashes{Schema: RepoHashesSchema, Repo: "a/b", Benchmark: "x", Trees: 1, Functions: hashes(0, 3)})
	if err != nil {
		t.Fatal(err)
	}
	good := string(line)
	for name, c := range map[string]struct{ text, want string }{
		"good":    {good + "\n" + good + "\n", ""},
		"empty":   {"", "is empty"},
		"text":    {good + "\nhello\n", "line 2: not a line of hashes"},
		"schema":  {strings.Replace(good, "hashes/1", "hashes/9", 1), `line 1: its schema is "tracesmith.hashes/9"`},
		"no name": {strings.Replace(good, "a/b", "", 1), "lacks a repo"},
		"hash":    {strings.Replace(good, strings.Repeat("0", 64), "x", 1), `"x" is not the hash of a function`},
		"unknown": {strings.Replace(good, "trees", "tree", 1), "unknown field"},
		"two":     {good + good, "unexpected text"},
	} {
		file := filepath.Join(t.TempDir(), "x.jsonl")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		var l Library
		err := l.ReadHashes(file)
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), file)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if err == nil && l.Repos() != 1 {
			t.Errorf("%s: %d repositories", name, l.Repos())
		}
	}
	var l Library
	if err := l.ReadHashes(t.TempDir()); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a directory: %v", err)
	}
}

func FuzzHashes(f *testing.F) {
	line, _ := json.Marshal(RepoHashes{Schema: RepoHashesSchema, Repo: "a/b", Benchmark: "x", Functions: hashes(0, 2)})
	f.Add(string(line) + "\n")
	f.Add("{}\nnull\n[]")
	line, _ = json.Marshal(TaskHashesOf(task("acme__calc-12", "acme/calc", someCommit, issue("alpha")), "x"))
	f.Add(string(line) + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		var l Library
		if n, err := l.read(strings.NewReader(text)); err != nil || n == 0 {
			return
		}
		c := l.Comparison()
		if len(c.Benchmarks) == 0 {
			t.Error("lines and no benchmark")
		}
		c.Names(Names{"acme__calc-12", "github.com/acme/calc", someCommit})
		for _, f := range c.Text(Statements, overlap.TextHashesOf(text)) {
			if f.Share <= 0 || f.Share > 1 {
				t.Errorf("a share of %g", f.Share)
			}
		}
	})
}

func TestCopiedRepositoriesAreGrouped(t *testing.T) {
	got := Groups(map[string][]string{"f": {"c", "b"}, "g": {"b", "d"}, "h": {"x", "y"}, "i": {"alone"}, "j": {"d", "a"}})
	want := map[string]string{"a": "a", "b": "a", "c": "a", "d": "a", "x": "x", "y": "x"}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
