package trace

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/verify"
	"github.com/tracesmith/tracesmith/internal/suite"
	"github.com/tracesmith/tracesmith/schemas"
)

// counter counts the test runs of a runner.
type counter struct {
	Runner
	runs int
}

func (c *counter) Observe(ctx context.Context, t schemas.Task, tree env.Tree, patch []byte, variant verify.Variant) (verify.Run, error) {
	c.runs++
	return c.Runner.Observe(ctx, t, tree, patch, variant)
}

// trace returns the paired trace of a test. The fixed version is the buggy one with from replaced by to in the file p.py.
func (p project) trace(t *testing.T, python, id, from, to string) schemas.PairedTrace {
	t.Helper()
	fixed := p.with("p.py", from, to)
	out, err := Trace(t.Context(), verifier(t, python), task("python3 -m unittest"), p.tree(t), nil, patch(t, p, fixed), "test_p.T."+id)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// program returns a project with a program and the body of its test.
func program(source, test string) project {
	return project{"p.py": source, "test_p.py": "import unittest\nimport p\n\n\nclass T(unittest.TestCase):\n    def test(self):\n        " +
		strings.ReplaceAll(strings.TrimSpace(test), "\n", "\n        ") + "\n"}
}

func valueOf(vars []schemas.TraceValue, name string) [2]string {
	for _, v := range vars {
		if v.Name == name {
			return [2]string{v.Buggy, v.Fixed}
		}
	}
	return [2]string{"not", "listed"}
}

// every runs a test on each interpreter that supports paired traces.
func every(t *testing.T, run func(t *testing.T, python string)) {
	for version, python := range pythons(t) {
		if version == "3.6" || version == "3.7" || version == "2.7" {
			continue
		}
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			run(t, python)
		})
	}
}

func TestEachPythonTrace(t *testing.T) {
	p := program(`def add(items, limit):
    total = 0
    for item in items:
        if item > limit:
            total += item
    return total


def report(items):
    total = add(items, 3)
    text = "sum %d" % total
    return text
`, `text = p.report([3, 1, 5])
self.assertEqual(text, "sum 8")`)
	every(t, func(t *testing.T, python string) {
		got := p.trace(t, python, "test", "item > limit", "item >= limit")
		if got.D0 == nil || got.D0.Kind != FlowDivergence || got.D0.Line != 3 || got.D0.FixedLine != 5 || got.Unstable || len(got.Limits) > 0 || got.Runs != 2 {
			t.Fatalf("d0 %+v, unstable %v, limits %v, %d runs", got.D0, got.Unstable, got.Limits, got.Runs)
		}
		if diff := cmp.Diff(map[string]string{"items": "[3, 1, 5]", "limit": "3"}, got.Arguments); diff != "" {
			t.Errorf("arguments (-want +got):\n%s", diff)
		}
		var kinds []string
		for _, link := range got.Chain {
			kinds = append(kinds, link.Kind+" "+link.Function)
		}
		want := []string{"flow add", "return add", "return report", "failure T.test"}
		if diff := cmp.Diff(want, kinds); diff != "" {
			t.Errorf("chain (-want +got):\n%s", diff)
		}
		if v := valueOf(got.Chain[1].Vars, "<return>"); v != [2]string{"5", "8"} {
			t.Errorf("returned %v", v)
		}
		if v := valueOf(got.Failure.Vars, "text"); v != [2]string{"'sum 5'", "'sum 8'"} {
			t.Errorf("at the failure: %v", v)
		}
		// The fixed run makes every stop of the buggy one. In the second and third iteration, total differs.
		for hit, want := range map[int]string{1: "", 2: "3", 3: "3", 4: ""} {
			vars, reached, known := got.At("p.py", "add", 4, hit)
			if known != (hit <= 3) || reached != known || valueOf(vars, "total")[1] != want && want != "" || len(vars) > 0 != (want != "") {
				t.Errorf("hit %d: %v, %v, %v", hit, vars, reached, known)
			}
		}
		if len(got.Causes) == 0 || got.Causes[0].Verdict != schemas.CauseSufficient || got.Causes[0].Method != schemas.CauseValue || got.Shares.Value != len(got.Causes) {
			t.Errorf("causes %+v, shares %+v", got.Causes, got.Shares)
		}
	})
}

// Addresses differ between the two versions: a partial function has one as a member, and programs use id().
func TestEachPythonTraceMasksAddresses(t *testing.T) {
	p := program(`import functools


def add(items, limit):
    key = functools.partial(int, base=10)
    seen = {id(functools): [id(functools.wraps)]}
    total = sum(key(x) for x in items)
    return total - limit
`, `self.assertEqual(p.add(["3", "4"], 2), 9)`)
	every(t, func(t *testing.T, python string) {
		got := p.trace(t, python, "test", "total - limit", "total + limit")
		if got.D0 == nil || got.D0.Kind != ValueDivergence || valueOf(got.D0.Vars, "<return>") != [2]string{"5", "9"} {
			t.Fatalf("d0 %+v", got.D0)
		}
	})
}

// A trace with pytest does not depend on other test files.
func TestTraceCollectsOneFile(t *testing.T) {
	p := project{
		"p.py":          "def f():\n    return 1\n",
		"test_p.py":     "import p\n\n\ndef test_other():\n    assert p.f() == 3\n\n\ndef test_f():\n    x = p.f()\n    assert x == 2\n",
		"test_error.py": "raise RuntimeError\n",
	}
	fixed := patch(t, p, p.with("p.py", "return 1", "return 2"))
	got, err := Trace(t.Context(), verifier(t, ""), task("python3 -m pytest -q"), p.tree(t), nil, fixed, "test_p.py::test_f")
	if err != nil {
		t.Fatal(err)
	}
	if got.D0 == nil || got.D0.Function != "f" || got.Failure == nil || valueOf(got.Failure.Vars, "x") != [2]string{"1", "2"} {
		t.Errorf("d0 %+v, failure %+v", got.D0, got.Failure)
	}
}

// The fixed run is traced about as long as the buggy one.
func TestTraceLimitsTheFixedRun(t *testing.T) {
	p := program(`def count(n):
    total = 0
    for i in range(n):
        total += 1
    return total
`, `total = p.count(50000)
self.assertEqual(total, 50000)`)
	short := p.with("p.py", "range(n)", "range(n - 49999)")
	got := short.trace(t, "", "test", "range(n - 49999)", "range(n)")
	if got.D0 == nil || got.D0.Kind != FlowDivergence || got.FixedLength > 3000 || !slices.Contains(got.Limits, schemas.LimitEvents) {
		t.Errorf("d0 %+v, %d events, limits %v", got.D0, got.FixedLength, got.Limits)
	}
}

func TestEachPythonRefusesTraces(t *testing.T) {
	p := program("def f():\n    return 1\n", "self.assertEqual(p.f(), 2)")
	for version, python := range pythons(t) {
		if version != "3.6" && version != "3.7" {
			continue
		}
		_, err := Trace(t.Context(), verifier(t, python), task("python3 -m unittest"), p.tree(t), nil, nil, "test_p.T.test")
		if old, ok := errors.AsType[*UnsupportedError](err); !ok || !strings.HasPrefix(old.Python, version+".") || !strings.Contains(err.Error(), version) {
			t.Errorf("%s: %v", version, err)
		}
	}
}

func TestTraceOfReturnsAndExceptions(t *testing.T) {
	p := program(`def half(n):
    if n % 2:
        return n // 2
    raise ValueError(n)


def numbers(n):
    for i in range(n):
        yield i + 1


def depth(n):
    return 0 if n == 0 else 1 + depth(n - 1)


class Shop:
    sold = 0

    def sell(self, n):
        Shop.sold += n
        return self
`, `try:
    k = p.half(3)
except ValueError:
    k = -1
total = 0
for n in p.numbers(3):
    total += n
d = p.depth(3)
shop = p.Shop().sell(2)
self.assertEqual([k, total, d, shop.sold], [-1, 9, 3, 2])`)
	got := p.with("p.py", "+= n", "+= n + 1").trace(t, "", "test", "if n % 2:", "if n % 2 == 0:")
	if got.D0 == nil || got.D0.Kind != FlowDivergence || got.D0.Line != 3 {
		t.Fatalf("exception in place of a return: %+v", got.D0)
	}
	link := got.Chain[1]
	if link.Kind != "return" || valueOf(link.Vars, "<exit>") != [2]string{"", "exception"} || valueOf(link.Vars, "<return>") != [2]string{"1", ""} {
		t.Errorf("link %+v", link)
	}
	// After the divergence, the runs are compared again.
	if vars, reached, known := got.At("test_p.py", "T.test", 12, 1); !reached || !known || valueOf(vars, "k") != [2]string{"1", "-1"} {
		t.Errorf("after the divergence: %v, %v, %v", vars, reached, known)
	}

	got = p.trace(t, "", "test", "yield i + 1", "yield i + 2")
	if got.D0 == nil || got.D0.Function != "numbers" || valueOf(got.D0.Vars, "<return>") != [2]string{"1", "2"} {
		t.Errorf("generator: %+v", got.D0)
	}
	got = p.trace(t, "", "test", "return 0 if", "return 1 if")
	if got.D0 == nil || got.D0.Depth != 5 || valueOf(got.D0.Vars, "<return>") != [2]string{"0", "1"} || len(got.Chain) != 5 {
		t.Errorf("recursion: %+v, %d links", got.D0, len(got.Chain))
	}
	got = p.trace(t, "", "test", "Shop.sold += n", "Shop.sold += n + 2")
	if got.D0 == nil || got.D0.Line != 21 || valueOf(got.D0.Vars, "self.sold") != [2]string{"2", "4"} {
		t.Errorf("class attribute: %+v", got.D0)
	}
}

// Variables that differ between two runs of one version are masked.
func TestTraceMasksNoise(t *testing.T) {
	p := program(`import os
import random
import threading
import time


class Job:
    def __init__(self):
        self.at = time.time()
        self.key = id(self)
        self.done = []

    def run(self):
        token = random.random()
        order = [id(x) for x in {object() for _ in range(20)}]
        seen = os.getpid()
        thread = threading.Thread(target=self.work)
        thread.start()
        thread.join()
        return len(self.done)

    def work(self):
        self.done.append(1)
`, `job = p.Job()
self.assertEqual(job.run(), 2)`)
	got := p.trace(t, "", "test", "append(1)", "extend([1, 2])")
	if got.D0 == nil || got.D0.Line < 19 || got.D0.Line > 20 || valueOf(got.D0.Vars, "self.done") != [2]string{"[1]", "[1, 2]"} || len(got.D0.Vars) != 1 {
		t.Errorf("d0 %+v", got.D0)
	}
	for _, name := range []string{"Job.__init__ self.at", "Job.run token", "Job.run seen", "Job.run self.at"} { // key and order have only addresses
		if !slices.Contains(got.Masked, "p.py:"+name) {
			t.Errorf("%s is not masked: %v", name, got.Masked)
		}
	}
	if !slices.Contains(got.Limits, schemas.LimitThreads) {
		t.Errorf("limits %v", got.Limits)
	}
}

// If a test leaves a file behind, its second run is in another sandbox.
func TestTraceRepeatsTestsThatLeaveFiles(t *testing.T) {
	p := program(`import os


def start():
    fresh = not os.path.exists("state.txt")
    with open("state.txt", "w") as f:
        f.write("x")
    return fresh
`, `fresh = p.start()
self.assertEqual((fresh, 1), (True, 2))`)
	got := p.trace(t, "", "test", "return fresh", "return (fresh, 2)")
	if got.Unstable || got.Runs != 4 || got.D0 == nil || valueOf(got.D0.Vars, "<return>") != [2]string{"True", "(True, 2)"} {
		t.Errorf("unstable %v, %d runs, d0 %+v", got.Unstable, got.Runs, got.D0)
	}
}

// For values that cannot be copied, the statement of the fixed version is evaluated in the buggy run.
func TestTraceEvaluatesExpressions(t *testing.T) {
	p := program(`class Locked:
    def __init__(self, n):
        self.n = n

    def __reduce__(self):
        raise TypeError


BOXES = [Locked(n) for n in range(9)]


def choose(n):
    box = BOXES[n + 1]
    return box
`, `box = p.choose(1)
self.assertEqual(box.n, 3)`)
	got := p.trace(t, "", "test", "[n + 1]", "[n + 2]")
	if len(got.Causes) == 0 || got.Causes[0].Method != schemas.CauseExpression || got.Causes[0].Verdict != schemas.CauseSufficient || !slices.Equal(got.Causes[0].Vars, []string{"box"}) {
		for _, q := range got.Points {
			t.Logf("%+v", q)
		}
		t.Errorf("causes %+v", got.Causes)
	}
}

// Runs are compared in detail where they begin to differ, however late.
func TestFactoryTraceZoomsIn(t *testing.T) {
	suite.Factory.Require(t)
	p := program(`def step(i, out):
    n = i % 7
    if i == 19600:
        n = n + 0
    out.append(n)


def work(count):
    out, hidden = [], 0
    for i in range(count):
        hidden += i
    for i in range(count):
        step(i, out)
    return sum(out)
`, `total = p.work(21000)
self.assertEqual(total, 63005)`)
	got := p.trace(t, "", "test", "n + 0", "n + 5")
	if got.D0 == nil || got.D0.Function != "step" || got.D0.Line != 5 || valueOf(got.D0.Vars, "n") != [2]string{"0", "5"} || got.D0.Hit != 19601 {
		t.Fatalf("d0 %+v of %d events, limits %v", got.D0, got.Length, got.Limits)
	}
	if got.Runs > 8 || !slices.Contains(got.Limits, schemas.LimitWindow) || got.Length < 100_000 {
		t.Errorf("%d runs, limits %v, %d events", got.Runs, got.Limits, got.Length)
	}
	if last := got.Chain[len(got.Chain)-1]; last.Kind != "failure" || len(got.Chain) < 3 {
		t.Errorf("chain of %d", len(got.Chain))
	}
}

func TestPairsKeepsTraces(t *testing.T) {
	p := program("def f():\n    return 1\n", "self.assertEqual(p.f(), 2)")
	gold := task("python3 -m unittest")
	gold.GoldPatch = string(patch(t, p, p.with("p.py", "1", "2")))
	runner := &counter{Runner: verifier(t, "")}
	pairs := Pairs{Runner: runner, Dir: t.TempDir()}
	first, err := pairs.Trace(t.Context(), gold, p.tree(t), "test_p.T.test")
	if err != nil || first.D0 == nil {
		t.Fatalf("%+v, %v", first, err)
	}
	runs := runner.runs
	again, err := pairs.Trace(t.Context(), gold, p.tree(t), "test_p.T.test")
	if diff := cmp.Diff(first, again); err != nil || diff != "" || runner.runs != runs {
		t.Errorf("%v, %d more runs\n%s", err, runner.runs-runs, diff)
	}
	gold.Instructions = "Other."
	if _, err = pairs.Trace(t.Context(), gold, p.tree(t), "test_p.T.test"); err != nil || runner.runs == runs {
		t.Errorf("%v: the trace of another task was used", err)
	}
}
