package trace

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/env/verify"
)

// shapes has functions whose lines are easy to miss: functions on one line, generators that a later
// test resumes, branches that only some calls take, and code in threads.
var shapes = project{
	"shapes.py": `import threading

def one(x): return x + 1
double = lambda x: x * 2

def sign(x, zero=0):
    for _ in range(3):
        if x < 0:
            return -1
        if x > 0:
            return 1
    return zero

def numbers():
    yield 1
    yield 2
    yield 3

kept = numbers()

def nested(n):
    def inner(m):
        if m == 0:
            return 0
        return inner(m - 1)
    return [inner(k)
            for k in range(n)]

def work(out):
    out.append(1)

def threaded():
    out = []
    t = threading.Thread(target=work, args=(out,))
    t.start()
    t.join()
    return out
`,
	"test_shapes.py": `import unittest
import shapes

class ShapesTest(unittest.TestCase):
    def test_1(self):
        shapes.one(1); shapes.double(2); next(shapes.kept)
    def test_2(self):
        shapes.one(1); next(shapes.kept); shapes.sign(0)
    def test_3(self):
        shapes.sign(1); shapes.sign(-1); next(shapes.kept)
    def test_4(self):
        shapes.nested(2)
    def test_5(self):
        shapes.threaded()
    def test_6(self):
        shapes.sign(1); shapes.sign(1)
`,
}

func TestEachPythonCoverageOfUnusualFunctions(t *testing.T) {
	for version, python := range pythons(t) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			got, run, err := Cover(t.Context(), verifier(t, python), task("python3 -m unittest"), shapes.tree(t), nil, verify.Variant{})
			if err != nil {
				t.Fatalf("%v\n%s", err, run.Output)
			}
			lines := map[string][]int{}
			for id, files := range got.Tests {
				lines[id[len(id)-1:]] = files["shapes.py"]
			}
			want := map[string][]int{
				"1": {3, 4, 15}, "2": {3, 7, 8, 10, 12, 16}, "3": {7, 8, 9, 10, 11, 17}, "4": {22, 23, 24, 25, 26, 27},
				"5": {30, 33, 34, 35, 36, 37}, "6": {7, 8, 10, 11},
			}
			if diff := cmp.Diff(want, lines); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}
