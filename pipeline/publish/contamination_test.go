package publish_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/env/tasks/provenance"
	"github.com/tracesmith/tracesmith/internal/sinktest"
	"github.com/tracesmith/tracesmith/pipeline/publish"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// fix returns a long patch about something.
func fix(about string) string {
	var b strings.Builder
	b.WriteString("diff --git a/lib/calc.py b/lib/calc.py\n--- a/lib/calc.py\n+++ b/lib/calc.py\n@@ -1,1 +1,30 @@\n-old\n")
	for i := range 30 {
		fmt.Fprintf(&b, "+    %s = %s(%d)\n", about, about, i)
	}
	return b.String()
}

// statement returns a long problem statement about something.
func statement(about string) string {
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, "%s %d is wrong. ", about, i)
	}
	return b.String()
}

// attempt returns an episode of a task with a problem statement and a patch.
func attempt(n int, instance, words, patch string) sinks.Staged {
	s := sinktest.Episode("run", n)
	s.Episode.InstanceID, s.Episode.Contamination = instance, []string{}
	s.Episode.ProblemStatement, s.Episode.Patch, s.Episode.BaseCommit = &words, nil, nil
	s.Steps = slices.Clone(s.Steps)
	for i := range s.Steps {
		s.Steps[i].InstanceID = instance
	}
	if patch != "" {
		s.Episode.Patch, s.Episode.PatchSHA256 = &patch, new(schemas.HashBytes([]byte(patch)))
	}
	return s
}

// toy returns a benchmark with two tasks.
func toy(t *testing.T) *provenance.Comparison {
	t.Helper()
	var l provenance.Library
	for _, about := range []string{"alpha", "beta"} {
		task := schemas.Task{
			Source: "file", InstanceID: "toy-" + about, Repo: "toy/" + about, BaseCommit: schemas.HashBytes([]byte(about))[:40],
			Instructions: statement(about), GoldPatch: fix(about),
		}
		if err := l.AddTask(provenance.TaskHashesOf(task, "toy")); err != nil {
			t.Fatal(err)
		}
	}
	return l.Comparison()
}

// contamination reads the report and the card of a dataset.
func contamination(t *testing.T, root string) (c publish.Contamination, card string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, "reports", "contamination.json"))
	if err == nil {
		err = json.Unmarshal(raw, &c)
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return c, string(text)
}

func TestContaminationIsReported(t *testing.T) {
	long := attempt(4, "mine-3", statement("own"), "")
	body := fix("beta") + fix("more")
	long.Episode.Patch, long.Episode.PatchSHA256 = nil, new(schemas.HashBytes([]byte(body)))
	long.Blobs = append(long.Blobs, sinks.Blob{SHA256: *long.Episode.PatchSHA256, Bytes: int64(len(body)), MediaType: "text/x-diff", Content: body})
	listed := attempt(5, "django__django-1", "short", "")
	listed.Episode.Contamination = []string{"swe-bench:instance", "swe-bench:repo"}
	staged := []sinks.Staged{
		attempt(0, "mine-1", statement("alpha"), fix("alpha")), // statement and patch match
		attempt(1, "mine-1", statement("alpha"), fix("else")),  // only the statement matches
		attempt(2, "mine-2", statement("own"), fix("beta")),    // only the patch matches
		attempt(3, "mine-2", statement("own"), ""),             // nothing matches
		long, listed,
	}
	stores := []sinks.Store{dir(t, t.TempDir()), dir(t, t.TempDir())}
	for i, s := range staged {
		put(t, stores[i%2], s)
	}
	put(t, stores[1], staged[0]) // staged twice, but counted once
	root, again := t.TempDir(), t.TempDir()
	cfg := config(t, dir(t, root), stores...)
	cfg.Benchmarks = toy(t)
	run(t, cfg)
	other := config(t, dir(t, again), stores[1], stores[0])
	other.Benchmarks = toy(t)
	run(t, other)
	if a, b := tree(t, root), tree(t, again); len(a) == 0 || fmt.Sprint(a) != fmt.Sprint(b) {
		t.Error("the order of the run directories changes the dataset")
	}

	c, card := contamination(t, root)
	if c.Episodes != 6 || c.Tasks != 4 || c.Hashes == "" {
		t.Errorf("%d episodes of %d tasks", c.Episodes, c.Tasks)
	}
	tests := map[string]publish.TestFound{}
	for _, b := range c.Benchmarks {
		for _, one := range b.Tests {
			tests[b.Benchmark+" "+one.Test] = one
		}
		if b.Benchmark == "toy" && (b.Tasks != 3 || b.Episodes != 4 || b.Share != 0.6667 || b.Hashed.Tasks != 2) {
			t.Errorf("%+v", b)
		}
	}
	for name, want := range map[string][2]int{
		"toy statement_13gram": {1, 2}, "toy statement_minhash": {1, 2}, "toy patch_13gram": {3, 3}, "toy patch_minhash": {2, 2},
		"toy instance": {}, "toy repo": {}, "toy commit": {}, "swe-bench instance": {1, 1}, "swe-bench repo": {1, 1}, "bugsinpy repo": {},
	} {
		if got := tests[name]; [2]int{got.Tasks, got.Episodes} != want || !got.Compared {
			t.Errorf("%s: %+v, want %v", name, got, want)
		}
	}
	if tests["swe-bench statement_13gram"].Compared {
		t.Error("texts of a benchmark without hashes were compared")
	}
	patches := tests["toy patch_13gram"].Found
	if len(patches) != 3 || patches[0].Instance != "mine-1" || patches[0].Original != "toy-alpha" || patches[0].Overlap != 1 ||
		!slices.Equal(patches[0].IDs, []string{staged[0].Episode.EpisodeID}) || patches[2].Instance != "mine-3" || patches[2].Overlap != 1 {
		t.Errorf("%+v", patches)
	}
	for _, want := range []string{"| toy | 2 | 0 / 0 | 0 / 0 | 0 / 0 | 1 / 2 | 1 / 2 | 3 / 3 | 2 / 2 |", "| swe-bench | 0 | 1 / 1 | not compared | 1 / 1 |"} {
		if !strings.Contains(card, want) {
			t.Errorf("the card lacks %s:\n%s", want, card[strings.Index(card, "## Benchmarks"):strings.Index(card, "## Columns")])
		}
	}
	for _, one := range c.Tests {
		switch want := map[string]int{"commit": 3, "statement_13gram": 1, "statement_minhash": 1}[one.Test]; {
		case want > 0 && one.TasksWithout != want, one.Tasks+one.TasksWithout != 4, one.Episodes+one.EpisodesWithout != 6:
			t.Errorf("%+v", one)
		}
	}
}

// Without hashes, the report and the card say that texts were not compared.
func TestReportWithoutHashesSaysNotCompared(t *testing.T) {
	root := t.TempDir()
	run(t, config(t, dir(t, root), stage(t, "run", 0, 2)))
	c, card := contamination(t, root)
	for _, one := range c.Tests {
		names := one.Test == "repo" || one.Test == "instance"
		if !names && (one.With != "nothing" || one.Tasks != 0 || one.EpisodesWithout != 2) || names && one.With != "lists" {
			t.Errorf("%+v", one)
		}
	}
	for _, b := range c.Benchmarks {
		for _, one := range b.Tests {
			if names := one.Test == "repo" || one.Test == "instance"; one.Compared != names {
				t.Errorf("%s: %+v", b.Benchmark, one)
			}
		}
	}
	if !strings.Contains(strings.Join(c.Limits, "\n"), "no hashes of benchmarks were given") || !strings.Contains(card, "| not compared |") || c.Hashes != "" {
		t.Errorf("limits %q", c.Limits)
	}
}

// A withheld episode is not part of the report.
func TestWithheldEpisodesAreNotReported(t *testing.T) {
	staging := dir(t, t.TempDir())
	put(t, staging, attempt(0, "mine-1", "short", ""))
	half := statement("alpha")
	put(t, staging, attempt(1, "mine-2", half[:len(half)/4]+statement("own")+" ghp_"+strings.Repeat("a1B2", 9), ""))
	root := t.TempDir()
	cfg := config(t, dir(t, root), staging)
	cfg.Benchmarks = toy(t)
	rep := run(t, cfg)
	c, _ := contamination(t, root)
	if rep.Withheld != 1 || c.Episodes != 1 || c.Tasks != 1 {
		t.Errorf("%d episodes withheld, %d episodes of %d tasks reported", rep.Withheld, c.Episodes, c.Tasks)
	}
	for _, b := range c.Benchmarks {
		for _, one := range b.Tests {
			if one.Below != 0 {
				t.Errorf("%s: %+v", b.Benchmark, one)
			}
		}
	}
}
