package synth

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A test that uses too much CPU time times out, in a run and in a pass, and the passes that follow do not
// run. The timeout alone would end it only after the test's own deadline.
func TestEndlessLoopsEndByCPUTime(t *testing.T) {
	t.Parallel()
	body := "import unittest\nimport calc\n\n\nclass T(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(calc.add(1, 2), 3)\n\n    def test_sub(self):\n        self.assertEqual(calc.sub(3, 1), 2)\n"
	loop := map[string]string{"calc.py": "def add(a, b):\n    return 0\n\n\ndef sub(a, b):\n    while True:\n        pass\n"}
	for entrypoint, prefix := range map[string]string{"python -m pytest -q": "test_calc.py::T::", "python -m unittest -q": "test_calc.T."} {
		t.Run(entrypoint, func(t *testing.T) {
			t.Parallel()
			b := benchOf(t, healthy(t, "calc", entrypoint, map[string]string{"calc.py": calc, "test_calc.py": body}))
			all := []string{prefix + "test_add", prefix + "test_sub"}
			for _, passes := range [][]pass{nil, {{Only: all, MaxFailures: 1}, {Only: all, Follows: true}}} {
				q := request{Files: loop, Only: all, Passes: passes}
				q.setTimeout(healthyTimeout, 1)
				r, err := b.run(t.Context(), firstSeed, q)
				if err != nil || !r.verdicts().TimedOut || len(r.passes) > 1 || r.verdicts().tests[all[0]] != "failed" {
					t.Errorf("%d passes: %+v, %v", len(passes), r, err)
				}
			}
		})
	}
}

// Only the files with the requested tests are imported.
func TestOnlyNeededFilesAreCollected(t *testing.T) {
	t.Parallel()
	b := benchOf(t, healthy(t, "calc", "python -m pytest -q", map[string]string{
		"calc.py": calc, "conftest.py": "import sys\n\ndef pytest_sessionfinish():\n    print('IMPORTED', *sorted(n for n in sys.modules if n.startswith('test_')))\n",
		"test_a.py": "def test_a(): pass\n", "test_b.py": "def test_b(): pass\n", "sub/test_c.py": "def test_c(): pass\n",
	}))
	for want, only := range map[string][]string{
		"IMPORTED test_a test_b test_c\n": nil, "IMPORTED test_a test_c\n": {"test_a.py::test_a", "sub/test_c.py::test_c"},
	} {
		r, err := b.run(t.Context(), firstSeed, request{Only: only, Timeout: 60})
		if err != nil || !strings.Contains(r.Log, want) || only != nil && len(r.tests) != len(only) {
			t.Errorf("%v: %v, %q, %v", only, r.tests, r.Log, err)
		}
	}
}

func TestAloneGroupsHaveOneTestOfEachClass(t *testing.T) {
	got := aloneGroups([]string{"a.py::T::test_1[x::y]", "a.py::T::test_1[z]", "a.py::test_2", "b.py::test_3", "b.py::U::test_4", "a.py::T::test_5"})
	want := [][]string{{"a.py::T::test_1[x::y]", "a.py::test_2", "b.py::test_3", "b.py::U::test_4"}, {"a.py::T::test_1[z]"}, {"a.py::T::test_5"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got = aloneGroups([]string{"m.T.test_1", "m.T.test_2", "m.U.test_1"})
	if diff := cmp.Diff([][]string{{"m.T.test_1", "m.U.test_1"}, {"m.T.test_2"}}, got); diff != "" {
		t.Error(diff)
	}
}

// A negative seed gives the opposite of the order of the positive one.
func TestOppositeOrder(t *testing.T) {
	t.Parallel()
	body := "import unittest\n\n\nclass %s(unittest.TestCase):\n    def test_1(self): print('RAN', self.id())\n    def test_2(self): print('RAN', self.id())\n    def test_3(self): print('RAN', self.id())\n"
	files := map[string]string{"calc.py": calc, "test_a.py": strings.ReplaceAll(body, "%s", "A"), "test_b.py": strings.ReplaceAll(body, "%s", "B")}
	for _, entrypoint := range []string{"python -m pytest -q -s", "python -m unittest -q"} {
		b := benchOf(t, healthy(t, "calc", entrypoint, files))
		order := func(seed int64) (out []string) {
			r, err := b.run(t.Context(), firstSeed, request{Timeout: 300, Shuffle: seed})
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(r.Log) {
				if _, id, ok := strings.Cut(line, "RAN "); ok {
					out = append(out, id)
				}
			}
			return out
		}
		forward, backward := order(5), order(-5)
		for i, id := range forward {
			if len(backward) != 6 || len(forward) != 6 || backward[5-i] != id {
				t.Fatalf("%s: %q, %q", entrypoint, forward, backward)
			}
		}
	}
}
