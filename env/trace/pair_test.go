package trace

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/internal/suite"
	"github.com/tracesmith/tracesmith/schemas"
)

// with returns a copy of the project in which the first from in a file is replaced by to.
func (p project) with(name, from, to string) project {
	out := project{}
	for n, text := range p {
		out[n] = text
	}
	out[name] = strings.Replace(out[name], from, to, 1)
	if out[name] == p[name] {
		panic(name + " has no " + from)
	}
	return out
}

func patch(t testing.TB, from, to project) []byte {
	t.Helper()
	store, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	if err := to.tree(t).WriteTar(&buf); err != nil {
		t.Fatal(err)
	}
	p, _, _, err := store.Diff(t.Context(), from.tree(t), &buf)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestEachPythonFindsWhereValuesDiffer(t *testing.T) {
	fixed := patch(t, till, till.with("till.py", "prices[1:]", "prices"))
	for version, python := range pythons(t) {
		for name, c := range map[string]struct{ entry, id string }{
			"unittest": {"python3 -m unittest", "test_till.TillTest.test_sum"},
			"pytest":   {"python3 -m pytest -q", "test_till.py::TillTest::test_sum"},
		} {
			if name == "pytest" && version != "system" {
				continue
			}
			t.Run(name+" "+version, func(t *testing.T) {
				t.Parallel()
				p, err := Compare(t.Context(), verifier(t, python), task(c.entry), till.tree(t), nil, fixed, c.id)
				if err != nil {
					t.Fatal(err)
				}
				if p.FirstDivergence == nil || p.Failure == nil {
					t.Fatalf("no divergence or failure: %+v", p)
				}
				want := Divergence{Kind: ValueDivergence, Place: Place{"till.py", "total", 7}, After: 6, Event: p.FirstDivergence.Event, Depth: 3,
					Vars: []Difference{{"price", "4", "3"}}, Visible: 3}
				if diff := cmp.Diff(want, *p.FirstDivergence); diff != "" {
					t.Errorf("FirstDivergence (-want +got):\n%s", diff)
				}
				if p.Failure.Type != "AssertionError" || p.Failure.Places[0] != (Place{"test_till.py", "TillTest.test_sum", 19}) {
					t.Errorf("failure %+v", p.Failure)
				}
				// From the divergence to the failure, two frames up: lines 7, 6, 8, return, line 21 in sum, return, exception.
				if p.FrameDistance != 2 || p.EventDistance < 5 || p.EventDistance > 8 || p.Length >= p.FixedLength+4 || p.Length < 15 || p.Cut || p.Unstable {
					t.Errorf("distance %d events, %d frames; lengths %d, %d", p.EventDistance, p.FrameDistance, p.Length, p.FixedLength)
				}
				want2 := []string{"test_till.py:TillTest.setUp", "test_till.py:TillTest.test_sum", "till.py:Till.__init__",
					"till.py:Till.add", "till.py:Till.sum", "till.py:total"}
				if diff := cmp.Diff(want2, p.Executed); diff != "" {
					t.Errorf("executed (-want +got):\n%s", diff)
				}
			})
		}
	}
}

var ledger = project{
	"ledger.py": `import time


class Book:
    def __init__(self):
        self.at = time.time()
        self.token = object()
        self.entries = {}

    def post(self, name, amount):
        stamp = time.perf_counter()
        if amount < 0:
            raise ValueError(name)
        self.entries[name] = self.entries.get(name, 0) + amount
        return stamp

    def balance(self):
        out = 0
        for i in range(30000):
            out += i % 2
        return out - 15000 + sum(self.entries.values())
`,
	"test_ledger.py": `import pytest
import ledger


def test_refuses():
    with pytest.raises(ValueError):
        ledger.Book().post("a", -1)


def test_balance():
    book = ledger.Book()
    book.post("a", 1)
    assert book.balance() == 1
`,
}

func compare(t *testing.T, buggy, fixed project, id string) Pair {
	t.Helper()
	// The tree is the fixed version and the patch adds the bug, as in tasks with injected bugs.
	p, err := Compare(t.Context(), verifier(t, ""), task("python3 -m pytest -q"), fixed.tree(t), patch(t, fixed, buggy), nil, "test_ledger.py::"+id)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPairFindsWhereControlFlowDiffers(t *testing.T) {
	buggy := ledger.with("ledger.py", "        if amount < 0:\n            raise ValueError(name)\n", "")
	p := compare(t, buggy, ledger, "test_refuses")
	d := p.FirstDivergence
	if d == nil || d.Kind != FlowDivergence || d.After != 11 || d.Line != 12 || d.Other == nil || d.Other.Line != 12 {
		t.Fatalf("FirstDivergence %+v", d)
	}
	if p.Failure == nil || !strings.Contains(p.Failure.Type, "Failed") || !slices.Contains(p.Masked, "ledger.py:Book.post stamp") || !slices.Contains(p.Masked, "ledger.py:Book.__init__ self.at") {
		t.Errorf("failure %+v, masked %v", p.Failure, p.Masked)
	}
}

// The first difference is several windows after the start of the runs. The trace is long, so the
// test is in the suite Factory, as the prefix of its name says.
func TestFactoryPairReadsSeveralWindows(t *testing.T) {
	suite.Factory.Require(t)
	p := compare(t, ledger.with("ledger.py", "out - 15000", "out - 14999"), ledger, "test_balance")
	d := p.FirstDivergence
	if d == nil || d.Function != "Book.balance" || d.Event < 2*window || d.Vars[0].Name != "<return>" {
		t.Fatalf("FirstDivergence %+v of %d events", d, p.Length)
	}
	if d.Vars[0].Buggy != "2" || d.Vars[0].Fixed != "1" || p.FrameDistance != 1 {
		t.Errorf("%+v, %d frames", d.Vars, p.FrameDistance)
	}
}

// In the comparison that the bug factory makes, a window ends early if its values are large.
func TestPairLimitsTheCostOfLargeValues(t *testing.T) {
	large := project{"test_ledger.py": `class Book:
    def __init__(self):
        self.pages = [[[i, j] for j in range(20)] for i in range(20)]
        self.n = 0

    def turn(self):
        self.n += 1
        return self.n

def test_book():
    book = Book()
    for i in range(1500):
        book.turn()
    wrong = 1
    assert book.n == 1500 * wrong
`}
	s, _, err := traceSteps(t.Context(), verifier(t, ""), task("python3 -m pytest -q"), large.tree(t), nil, "test_ledger.py::test_book", recording{size: window, brief: true})
	if err != nil || len(s.events) > 2000 || s.count < 7000 {
		t.Errorf("%d events of %d in the window, %v", len(s.events), s.count, err)
	}
	p := compare(t, large.with("test_ledger.py", "wrong = 1", "wrong = 2"), large, "test_book")
	if d := p.FirstDivergence; d == nil || d.Line != 15 || d.Vars[0].Name != "wrong" {
		t.Errorf("FirstDivergence %+v", d)
	}
}

func TestPairOfEqualVersionsHasNoDivergence(t *testing.T) {
	p, err := Compare(t.Context(), verifier(t, ""), task("python3 -m pytest -q"), ledger.tree(t), nil, nil, "test_ledger.py::test_refuses")
	if err != nil || p.FirstDivergence != nil || p.Unstable {
		t.Errorf("%+v, %v", p, err)
	}
	_, err = Compare(t.Context(), verifier(t, ""), task("python3 -m pytest -q"), ledger.tree(t), nil, nil, "test_ledger.py::test_none")
	if !errors.Is(err, ErrNoTrace) {
		t.Errorf("a test that does not exist: %v", err)
	}
}

// What a test runner notes about a test is not a value of the program.
func TestPairIgnoresTestRunners(t *testing.T) {
	first := project{
		"conftest.py":    "def pytest_collection_modifyitems(items):\n    for item in items:\n        item.note = 'first'\n",
		"test_ledger.py": "import unittest\n\nclass LedgerTest(unittest.TestCase):\n    def test_sum(self):\n        x = 1\n        self.assertEqual(x, 1)\n",
	}
	second := first.with("conftest.py", "first", "second")
	if p := compare(t, second, first, "LedgerTest::test_sum"); p.FirstDivergence != nil || p.Length == 0 {
		t.Errorf("%d events, divergence %+v", p.Length, p.FirstDivergence)
	}
}

// The probe calls no code of the program to format values.
func TestProbeRunsNoCodeOfTheProgram(t *testing.T) {
	rude := project{"test_ledger.py": `class Rude:
    seen = []
    def __init__(self): self.x = [1, {2: (3, None)}, {"b", "a"}]
    def __repr__(self): Rude.seen.append(1); raise SystemExit
    def __getattribute__(self, name): Rude.seen.append(2); return object.__getattribute__(self, name)
    __len__ = __iter__ = __bool__ = __eq__ = __hash__ = __repr__

class List(list):
    def __iter__(self): Rude.seen.append(3); raise SystemExit
    __len__ = __getitem__ = __repr__ = __iter__

def test_rude():
    a = Rude()
    b = List([1, a])
    c = "x" * 100000
    d = [[[[[1]]]]]
    d.append(d)
    Rude.seen.clear()
    e = 1
    assert Rude.seen  # fails, because the probe has called nothing
`}
	s, _, err := traceSteps(t.Context(), verifier(t, ""), task("python3 -m pytest -q"), rude.tree(t), nil, "test_ledger.py::test_rude", recording{size: window})
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for _, e := range s.events {
		if e.function == "test_rude" {
			for name, v := range e.changes {
				values[name] = schemas.Value(v)
			}
		}
	}
	if f := s.testFailure(); f == nil || f.Type != "AssertionError" {
		t.Errorf("failure %+v: want an AssertionError, because the probe must call nothing", f)
	}
	for name, want := range map[string]string{
		"a": "test_ledger.Rude(x=[1, {2: tuple of 2}, {'a', 'b'}])",
		"b": "test_ledger.List [1, test_ledger.Rude(x=[1, dict of 1, set of 2])]",
		"d": "[[[list of 1]], [[list of 1], [list of 1, list of 2]]]",
	} {
		if values[name] != want {
			t.Errorf("%s = %s, want %s", name, values[name], want)
		}
	}
	for name, v := range values {
		if len(v) > 200 {
			t.Errorf("%s has %d bytes", name, len(v))
		}
	}
}

func TestLineMaps(t *testing.T) {
	maps, err := parseLineMaps([]byte("--- a/f.py\n+++ b/f.py\n@@ -2,3 +2,4 @@\n a\n-b\n+B\n+new\n c\n@@ -10,2 +11 @@\n x\n-y\n"))
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[int]int{1: 1, 2: 2, 3: 3, 4: 0, 5: 4, 6: 5, 11: 10, 12: 12, 20: 20} {
		if got := maps["f.py"].oldLine(line); got != want {
			t.Errorf("line %d maps to %d, want %d", line, got, want)
		}
	}
}

func FuzzReadSteps(f *testing.F) {
	f.Add([]byte(`["call",0,"f.py","g",1,1,1,{"x":"1","y":null}]` + "\n" + `["failure",[[0,1,"E",[["f.py","g",1,1]]]]]` + "\n" + `["end",1,["f.py:g"],false]`))
	f.Add([]byte(`["failure",[[0,1,"E",[[]]]]]` + "\n" + `["end"]` + "\n" + `["function","a",5]`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, _ := readSteps(raw)
		mask, stable := maskOf(&s, &s)
		c := comparison{sides: [2]side{{steps: &s}, {steps: &s}}, stable: [2]int{stable, stable}, mask: mask}
		c.alignment = align(c.sides[0], c.sides[1], mask)
		if p := c.pair(); p.FirstDivergence != nil || len(mask) > 0 {
			t.Errorf("a run differs from itself: %+v", p.FirstDivergence)
		}
	})
}
