package synth

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/tracesmith/tracesmith/env/tasks/taskfile"
	"github.com/tracesmith/tracesmith/internal/suite"
)

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
