package synth

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/tasks/provenance"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/internal/suite"
	"github.com/tracesmith/tracesmith/schemas"
)

// bankElsewhere returns a copy of the bank repository with another layout and other comments.
func bankElsewhere(t *testing.T, name string) Repo {
	t.Helper()
	text := strings.ReplaceAll(bank["bank.py"], "    best = None\n", "    # Nothing yet.\n    best = None\n")
	return healthy(t, name, "PYTHONPATH=src python -m pytest -q", map[string]string{"src/bank.py": text, "tests/test_bank.py": bank["test_bank.py"]})
}

func TestCopiesOfBenchmarksAreRejected(t *testing.T) {
	store, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := FunctionHasher{Store: store, Driver: bubblewrap(t), Spec: env.SandboxSpec{Workdir: schemas.DefaultWorkdir}}
	functions, unparsed, err := p.Functions(t.Context(), healthy(t, "bank", "python -m pytest -q", bank).Tree)
	if err != nil || len(functions) != 5 || unparsed != 0 {
		t.Fatalf("%d functions, %d unparsed, %v", len(functions), unparsed, err)
	}
	benchmark := &provenance.Library{}
	benchmark.Add(provenance.RepoHashes{Repo: "github.com/a/bank", Benchmark: "swe-bench", Functions: functions})
	cfg := configOf(t, filepath.Join(t.TempDir(), "out"), bankElsewhere(t, "till"))
	cfg.Benchmarks = benchmark
	_, err = Run(t.Context(), cfg)
	none, ok := errors.AsType[*NoUsableRepoError](err)
	if want := "till: a public benchmark takes its tasks from it (5 of its 5 functions are in github.com/a/bank, which is in swe-bench)"; !ok || !strings.Contains(none.Refused["till"], want) {
		t.Fatalf("%v, want %s", err, want)
	}
	// The run did nothing, so its output directory must be gone. A directory with results
	// belongs to runs with the same benchmark hashes.
	if _, err := os.Stat(cfg.Out); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a run without usable repositories left %s: %v", cfg.Out, err)
	}
	without := cfg
	without.Benchmarks = nil
	if what := cfg.settings().difference(without.settings()); !strings.HasPrefix(what, "benchmark hashes") {
		t.Errorf("without hashes: %q", what)
	}
}

func TestUnparsableFilesAreCounted(t *testing.T) {
	store, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := FunctionHasher{Store: store, Driver: bubblewrap(t), Spec: env.SandboxSpec{Workdir: schemas.DefaultWorkdir}}
	r := healthy(t, "old", "python -m pytest -q", map[string]string{"old.py": "print 'x'\n", "new.py": "def f(x):\n    a = x\n    b = a\n    return b\n"})
	for range 2 {
		if functions, _, err := p.Functions(t.Context(), r.Tree); err != nil || len(functions) != 1 {
			t.Errorf("%v, %v", functions, err)
		}
	}
	repos := []FixedRepo{
		{Tree: r.Tree, Gold: "--- a/new.py\n+++ b/new.py\n@@ -2,1 +2,1 @@\n-    a = 1\n+    a = x\n"},
		{Tree: r.Tree, Bug: "--- a/new.py\n+++ b/new.py\n@@ -4,1 +4,1 @@\n-    return b\n+    return a\n"},
		{Tree: r.Tree, Gold: "--- a/gone.py\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-a = 1\n"},
		{Tree: r.Tree, Gold: "--- a/old.py\n+++ b/old.py\n@@ -1,1 +1,1 @@\n-print 'y'\n+print 'x'\n"},
		{Tree: r.Tree},
	}
	got, unparsed, err := FixedFunctions(t.Context(), p.Driver, p.Spec, repos)
	if err != nil || unparsed != 1 || len(got) != 5 {
		t.Fatalf("%v, %d unparsed, %v", got, unparsed, err)
	}
	for i, want := range []int{1, 1, 0, 0, 0} {
		if len(got[i]) != want {
			t.Errorf("patch %d: %v, want %d functions", i, got[i], want)
		}
	}
	if got[0][0] != got[1][0] {
		t.Error("the same function has two hashes")
	}
}

// If two repositories share a function, the first gets the tasks.
func TestFactoryMakesOneTaskOfSameBugInTwoRepositories(t *testing.T) {
	suite.Factory.Require(t)
	t.Parallel()
	cfg := configOf(t, filepath.Join(t.TempDir(), "out"), healthy(t, "bank", "python -m pytest -q", bank), bankElsewhere(t, "till"))
	cfg.Kinds, cfg.Operators, cfg.Candidates, cfg.ReleaseRuns = []string{KindSingle}, []string{"r1"}, 0, 2
	sum, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(sum.File)
	if err != nil {
		t.Fatal(err)
	}
	if sum.Tasks == 0 || sum.Outcomes[Duplicate] != sum.Tasks || strings.Contains(string(text), `"instance_id":"till-`) ||
		sum.Reasons[Duplicate]["of a function that is also in another repository"] != sum.Tasks {
		t.Errorf("%+v", sum)
	}
}

// The error names a failing test rather than the consequence, that too few tests are left.
func TestFailingRepositoriesAreReported(t *testing.T) {
	red := strings.ReplaceAll(bank["test_bank.py"], "== 9", "== 8")
	r := healthy(t, "red", "python -m pytest -q", map[string]string{"bank.py": bank["bank.py"], "test_bank.py": red[:strings.Index(red, "def test_limit")] + red[strings.Index(red, "def test_largest"):strings.Index(red, "def test_largest_of_none")]})
	cfg := configOf(t, filepath.Join(t.TempDir(), "out"), r)
	_, err := Run(t.Context(), cfg)
	if err == nil || err.Error() != "red: the tests do not pass (test_bank.py::test_largest failed): use a repository whose tests pass" {
		t.Errorf("%v", err)
	}
}

func TestUnusableOutputDirectoriesAreReported(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Run(t.Context(), configOf(t, filepath.Join(file, "out"), healthy(t, "bank", "python -m pytest -q", bank)))
	if _, ok := errors.AsType[*OutputDirError](err); !ok || !strings.Contains(err.Error(), "use another directory (-o)") {
		t.Errorf("%v", err)
	}
}
