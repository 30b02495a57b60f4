package synth

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tracesmith/tracesmith/env/tasks/taskfile"
	"github.com/tracesmith/tracesmith/internal/suite"
)

// workerFor returns a worker that has surveyed a repository and has a sandbox for it until the end of the test.
func workerFor(t *testing.T, r Repo) (*worker, *repoState) {
	t.Helper()
	cfg, err := configOf(t, filepath.Join(t.TempDir(), "out"), r).withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	st, s := surveyed(t, cfg)
	w := &worker{factory: st}
	t.Cleanup(func() { w.leave(context.WithoutCancel(t.Context())) })
	if err := w.enter(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return w, s
}

// Three tests that share a cache: with the bug, the first of them passes in any order and the others fail. The factory
// rejects this bug: the test that runs between the others in both orders passes alone.
func TestFactoryFailingTestsFailAlone(t *testing.T) {
	suite.Factory.Require(t)
	t.Parallel()
	tests := "import names\n"
	for _, name := range []string{"a", "b", "c"} {
		tests += "\n\ndef test_" + name + "():\n    assert names.find('x') is None\n"
	}
	for _, name := range []string{"d", "e", "f"} {
		tests += "\n\ndef test_" + name + "():\n    assert names.cache is not None\n"
	}
	w, s := workerFor(t, healthy(t, "names", "python -m pytest -q", map[string]string{
		"names.py": `cache = {}


def find(name):
    if name not in cache:
        cache[name] = None
        return None
    if cache[name] is None:
        return None
    return len(cache[name])
`, "test_names.py": tests,
	}))
	const patch = "--- a/names.py\n+++ b/names.py\n@@ -8 +8 @@\n-    if cache[name] is None:\n+    if cache[name] == 0:\n"
	files, err := s.changedFiles(patch)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 4 {
		b, c := "test_names.py::test_b", "test_names.py::test_c"
		trial := &Trial{Repo: "names", Key: fmt.Sprint(n), Patch: patch, Outcome: Valid, Runs: 2, FailToPass: []string{b, c}, Verdicts: nonPassing{b: "failed", c: "failed"}}
		if err := w.runAll(t.Context(), s, trial, files); err != nil || trial.Outcome != Flaky {
			t.Errorf("%v %+v", err, trial)
		}
		w.journal.unreliableTests = map[string][]*unreliable{}
	}
}

// Many tests that fail because of a bug leave a setting behind, so a test that never executes the bug fails in almost any
// order. It passes alone, and is in no task.
func TestFactoryTestsThatOthersBreakFailNoTask(t *testing.T) {
	suite.Factory.Require(t)
	t.Parallel()
	tests, failing := "import shop\n", nonPassing{}
	for n := range 8 {
		name := fmt.Sprintf("test_%d", n)
		failing["test_shop.py::"+name] = "failed"
		tests += fmt.Sprintf("\n\ndef %s():\n    shop.LIMIT = 5\n    assert shop.total([%d, 7]) == %d\n    shop.LIMIT = 10\n", name, n, n+12)
	}
	tests += "\n\ndef test_limit():\n    assert shop.limit() == 10\n"
	for n := range 12 {
		tests += fmt.Sprintf("\n\ndef test_empty_%d():\n    assert shop.total([]) == 0\n", n)
	}
	w, s := workerFor(t, healthy(t, "shop", "python -m pytest -q", map[string]string{
		"shop.py": "LIMIT = 10\n\n\ndef limit():\n    return LIMIT\n\n\ndef total(prices):\n    out = LIMIT if prices else 0\n    return sum(prices) + out - 0\n", "test_shop.py": tests,
	}))
	const patch = "--- a/shop.py\n+++ b/shop.py\n@@ -9,2 +9,2 @@\n     out = LIMIT if prices else 0\n-    return sum(prices) + out - 0\n+    return sum(prices) - out - 0\n"
	files, err := s.changedFiles(patch)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		trial := &Trial{Repo: "shop", Key: fmt.Sprint(n), Patch: patch, Outcome: Valid, Runs: 2, FailToPass: slices.Sorted(maps.Keys(failing)), Verdicts: maps.Clone(failing)}
		if err := w.runAll(t.Context(), s, trial, files); err != nil || trial.Outcome != Valid || len(trial.FailToPass) != 8 || slices.Contains(trial.FailToPass, "test_shop.py::test_limit") {
			t.Errorf("%v %+v", err, trial)
		}
		w.journal.unreliableTests = map[string][]*unreliable{}
	}
}

// A test that fails because of a bug may not undo what it has changed. A test that never executes the bug then fails if it
// runs later, which no run in the usual order shows. Such a test is in no task.
func TestFactoryTestsWithoutCleanUpBreakNoVerdict(t *testing.T) {
	suite.Factory.Require(t)
	t.Parallel()
	cfg := configOf(t, filepath.Join(t.TempDir(), "out"), healthy(t, "shop", "python -m pytest -q", map[string]string{
		"shop.py": "LIMIT = 10\n\n\ndef limit():\n    return LIMIT\n\n\ndef total(prices):\n    out = 0\n    for price in prices:\n        out += min(price, LIMIT)\n    return out\n",
		"test_shop.py": `import shop


def test_a_limit():
    assert shop.limit() == 10


def test_b_nothing():
    assert shop.limit


def test_c_nothing():
    assert shop.total


def test_d_empty():
    assert shop.total([]) == 0


def test_e_one():
    assert shop.total([3]) == 3


def test_f_total():
    shop.LIMIT = 5
    assert shop.total([3, 7]) == 8
    shop.LIMIT = 10
`,
	}))
	cfg.Kinds, cfg.Candidates = []string{KindSingle}, 0
	sum, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := taskfile.Read(t.Context(), sum.File, t.TempDir())
	if err != nil || len(entries) == 0 || sum.Unreliable == 0 {
		t.Fatalf("%d tasks, %v: %+v", len(entries), err, sum)
	}
	for _, e := range entries {
		if tests := e.Task.Tests; slices.Contains(tests.PassToPass, "test_shop.py::test_a_limit") {
			t.Errorf("%s: %+v", e.Task.BugPatch, tests)
		}
	}
}
