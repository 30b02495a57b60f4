package synth

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/env/tasks/check"
	"github.com/tracesmith/tracesmith/env/workspace"
)

var slotted = map[string]string{
	"src/slots.py":      "def first(items):\n    return items[0]\n\n\ndef last(items):\n    return items[-1]\n",
	"tests/__init__.py": "",
	"tests/test_slots.py": `import unittest
import slots


class First(unittest.TestCase):
    def test_first(self):
        self.assertEqual(slots.first([1, 2]), 1)

    def test_sub(self):
        for items in ([1], [2, 3]):
            with self.subTest(items=items):
                self.assertEqual(slots.first(items), items[0])

    @unittest.skip("not today")
    def test_skipped(self):
        pass

    @unittest.expectedFailure
    def test_expected(self):
        self.fail("as always")


class Last(unittest.TestCase):
    def test_last(self):
        self.assertEqual(slots.last([1, 2]), 2)

    def test_empty(self):
        with self.assertRaises(IndexError):
            slots.last([])

    def test_one(self):
        self.assertEqual(slots.last([7]), 7)

    def test_words(self):
        self.assertEqual(slots.last("ab"), "b")
`,
}

// The bench and the verifier must use the same names for tests and report the same results.
func TestBenchAgreesWithVerifier(t *testing.T) {
	store, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, entrypoint := range []string{"PYTHONPATH=src python -m unittest -q", "PYTHONPATH=src python -m pytest -q tests", "PYTHONPATH=src pytest tests"} {
		t.Run(entrypoint, func(t *testing.T) {
			r := healthy(t, "slots", entrypoint, slotted)
			suite, err := check.Base(t.Context(), check.Config{Driver: bubblewrap(t), Store: store, Runs: 2, Isolated: -1}, r.Task, r.Tree)
			if err != nil {
				t.Fatal(err)
			}
			b := benchOf(t, r)
			got, err := b.run(t.Context(), firstSeed, request{Timeout: 60})
			if err != nil {
				t.Fatal(err)
			}
			passed := []string{}
			for _, id := range slices.Sorted(maps.Keys(got.tests)) {
				if got.tests[id] == "passed" {
					passed = append(passed, id)
				}
			}
			if diff := cmp.Diff(suite.Kept, passed); diff != "" || len(passed) != 6 {
				t.Fatal(diff, got.Log, got.tests)
			}
			buggy := map[string]string{"src/slots.py": strings.ReplaceAll(slotted["src/slots.py"], "items[0]", "items[1]")}
			if got, err = b.run(t.Context(), "7", request{Timeout: 300, Files: buggy, Only: suite.Kept, Shuffle: 9, Describe: 9}); err != nil {
				t.Fatal(err)
			}
			bad := slices.Sorted(maps.Keys(nonPassingOf(suite.Kept, got)))
			if len(bad) != 2 || !strings.Contains(bad[0], "test_first") || !strings.Contains(bad[1], "test_sub") || len(got.failures) == 0 {
				t.Fatalf("failing: %v\n%s", bad, got.Log)
			}
			first := []string{suite.Kept[len(suite.Kept)-1]}
			for _, shuffle := range []int64{0, 9, -9} { // the usual order, a random one and its opposite
				got, err := b.run(t.Context(), firstSeed, request{Timeout: 300, Files: buggy, Only: suite.Kept, First: first, Shuffle: shuffle})
				if err != nil || len(got.tests) != 1 {
					t.Errorf("shuffle %d: the run did not end after its first test passed: %v %v", shuffle, got.tests, err)
				}
			}
		})
	}
}
