package synth

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/internal/suite"
	"github.com/tracesmith/tracesmith/schemas"
)

// Tests that run alone are forked from one interpreter, but do not see what other tests changed in it.
// A test that ends its process or never returns does not affect other tests.
func TestEachTestRunsAloneInAFork(t *testing.T) {
	t.Parallel()
	body := `import os
import time
import unittest

seen = []


class T(unittest.TestCase):
    def test_a(self):
        seen.append(1)

    def test_b(self):
        assert seen

    def test_c(self):
        os._exit(0)

    def test_d(self):
        time.sleep(600)

    def test_e(self):
        assert not seen
`
	for entrypoint, prefix := range map[string]string{"python -m pytest -q": "test_order.py::T::", "python -m unittest -q": "test_order.T."} {
		t.Run(entrypoint, func(t *testing.T) {
			t.Parallel()
			b := benchOf(t, healthy(t, "order", entrypoint, map[string]string{"calc.py": calc, "test_order.py": body}))
			q := request{Budget: 100, Timeout: 120}
			for _, name := range []string{"a", "b", "c", "d", "e"} {
				id := prefix + "test_" + name
				one := pass{Only: []string{id}, Timeout: 60}
				if name == "d" {
					one.Timeout = 0.5
				}
				q.Only, q.Passes = append(q.Only, id), append(q.Passes, one)
			}
			r, err := b.run(t.Context(), firstSeed, q)
			if err != nil || len(r.passes) != 5 || r.CPU <= 0 {
				t.Fatalf("%+v, %v", r, err)
			}
			var got []string
			for i, p := range r.passes {
				status := p.tests[q.Only[i]]
				if p.TimedOut {
					status += "timeout"
				}
				got = append(got, status)
			}
			if diff := cmp.Diff("passed failed  timeout passed", strings.Join(got, " ")); diff != "" {
				t.Error(diff, r.Log)
			}
		})
	}
}

// A test that compares times is found by what it calls. Reading the time for another purpose is not enough.
func TestTestsThatCompareTimesAreFound(t *testing.T) {
	t.Parallel()
	body := `import time
import unittest
from functools import partial, wraps
from timeit import timeit

timeit = partial(timeit, number=10)


def doubled(f):
    @wraps(f)
    def run(self):
        f(self)
        f(self)
    return run


class T(unittest.TestCase):
    def test_a(self):
        self.assertTrue(timeit("1") < 1000, "slow")

    @doubled
    def test_b(self):
        start = time.time()
        self.assertLess(time.time() - start, 1000)

    def test_c(self):
        self.assertEqual(int(time.time() * 0), 0)

    def test_d(self):
        time.sleep(0)
        self.assertGreater(2, 1)

    def test_e(self):
        def elapsed(start=time.perf_counter()):
            return time.perf_counter() - start
        assert all(x > -1 for x in [elapsed()])

    @doubled
    def test_f(self):
        start = now_ms()
        self.assertLess(now_ms() - start, 1000)


def now_ms():
    return time.time() * 1000
`
	for entrypoint, prefix := range map[string]string{"python -m pytest -q": "test_clock.py::T::test_", "python -m unittest -q": "test_clock.T.test_"} {
		b := benchOf(t, healthy(t, "clock", entrypoint, map[string]string{"calc.py": calc, "test_clock.py": body}))
		r, err := b.run(t.Context(), firstSeed, request{Clocks: true, Timeout: 60})
		if err != nil || len(r.tests) != 6 {
			t.Fatalf("%+v, %v", r, err)
		}
		if diff := cmp.Diff([]string{prefix + "a", prefix + "b", prefix + "e", prefix + "f"}, r.clocks); diff != "" {
			t.Errorf("%s: %s", entrypoint, diff)
		}
	}
}

func TestFollowingPassesNeedFailures(t *testing.T) {
	t.Parallel()
	b := benchOf(t, healthy(t, "calc", "python -m pytest -q", map[string]string{
		"calc.py": calc, "test_calc.py": "import calc\n\ndef test_add():\n    assert calc.add(1, 2) == 3\n\ndef test_sub():\n    assert calc.sub(3, 1) == 2\n",
	}))
	ids := []string{"test_calc.py::test_add", "test_calc.py::test_sub"}
	testsPerPass := func(files map[string]string, maxFailures int) (count []int) {
		q := request{Files: files, Only: ids, Passes: []pass{{Only: ids, MaxFailures: maxFailures}, {Only: ids, Follows: true}, {Failing: 1, Follows: true}}}
		q.setTimeout(60, 0)
		r, err := b.run(t.Context(), firstSeed, q)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range r.passes {
			count = append(count, len(p.tests))
		}
		return count
	}
	buggy := map[string]string{"calc.py": strings.Replace(calc, "a + b", "a - b", 1)}
	worse := map[string]string{"calc.py": "def add(a, b):\n    return 0\n\n\nsub = add\n"}
	for _, c := range []struct {
		files map[string]string
		want  []int
	}{{nil, []int{2}}, {buggy, []int{2, 2, 1}}, {worse, []int{2}}} {
		if diff := cmp.Diff(c.want, testsPerPass(c.files, 1)); diff != "" {
			t.Error(diff)
		}
	}
}

// countingDriver counts the sandboxes that a driver starts.
type countingDriver struct {
	env.Driver
	started atomic.Int64
}

func (c *countingDriver) Start(ctx context.Context, spec env.SandboxSpec) (env.Sandbox, error) {
	c.started.Add(1)
	return c.Driver.Start(ctx, spec)
}

// A survey that is stopped after any of its parts resumes with the remaining parts. The result is the
// same, and no part runs twice.
func TestFactorySurveyResumesWithoutRepeating(t *testing.T) {
	suite.Factory.Require(t)
	t.Parallel()
	survey := func(stopAfterEachPart bool) (line []byte, sandboxes int64, restarts int) {
		cfg := configOf(t, filepath.Join(t.TempDir(), "out"), healthy(t, "bank", "python -m pytest -q", bank))
		driver := &countingDriver{Driver: bubblewrap(t)}
		cfg.Sandbox = func(_ context.Context, task schemas.Task, _ env.Tree) (env.Driver, env.SandboxSpec, error) {
			return driver, env.SandboxSpec{Workdir: task.Workdir}, nil
		}
		cfg.Workers, cfg.Kinds, cfg.Candidates = 1, []string{KindSingle}, 1
		for done := 0; ; restarts++ {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			cfg.Progress = func(p Progress) {
				if p.Surveyed > 0 || stopAfterEachPart && p.SurveyDone > done {
					done = p.SurveyDone
					stop()
				}
			}
			if _, err := Run(ctx, cfg); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			journal, err := os.ReadFile(filepath.Join(cfg.Out, journalName))
			if err != nil {
				t.Fatal(err)
			}
			for part := range bytes.Lines(journal) {
				if bytes.HasPrefix(part, []byte(`{"repo":`)) {
					line, _, _ = bytes.Cut(part, []byte(`"seconds"`)) // the kept tests, without measured times
				}
			}
			if line != nil {
				return line, driver.started.Load(), restarts
			}
		}
	}
	want, uninterrupted, _ := survey(false)
	got, resumed, restarts := survey(true)
	if diff := cmp.Diff(string(want), string(got)); diff != "" || restarts < 4 {
		t.Errorf("%d restarts: %s", restarts, diff)
	}
	const perBench = 2 // sandboxes that opening a bench starts: for the mutator and for compiling
	if resumed > uninterrupted+int64(restarts*perBench) {
		t.Errorf("%d sandboxes with %d restarts, %d without restarts", resumed, restarts, uninterrupted)
	}
}

func TestUnreliableTestsAreDropped(t *testing.T) {
	j, err := openJournal(t.TempDir(), settings{})
	if err != nil {
		t.Fatal(err)
	}
	kept := strings.Split("abcdefghij", "")
	w := &worker{factory: &factory{journal: j}}
	s := &repoState{repo: Repo{Task: schemas.Task{InstanceID: "r"}}, kept: kept}
	trial := func() *Trial {
		return &Trial{Repo: "r", Key: "k", FailToPass: []string{"a", "b"}, Verdicts: nonPassing{"a": "failed", "b": "error"},
			Failures: []Failure{{Test: "a"}, {Test: "b"}}}
	}
	agrees := func(t *Trial, got nonPassing) bool {
		ok, err := w.reconcile(s, t, got)
		return ok && err == nil
	}
	one := trial()
	if !agrees(one, nonPassing{"a": "error", "b": "failed"}) || len(one.FailToPass) != 2 {
		t.Errorf("tests that fail in another way: %+v", one)
	}
	if agrees(one, nonPassing{"c": "failed", "d": "failed", "e": "failed", "f": "failed"}) || one.Outcome != Flaky || len(w.unreliable(s)) > 0 {
		t.Errorf("many tests disagree: %+v", one)
	}
	two := trial()
	if !agrees(two, nonPassing{"b": "error"}) || strings.Join(two.FailToPass, " ") != "b" || len(two.Failures) != 1 {
		t.Errorf("one test disagrees: %+v", two)
	}
	if three := trial(); !agrees(three, nonPassing{"b": "error"}) || !w.unreliable(s)["a"] {
		t.Errorf("the same test again: %+v", three)
	}
	if two.Outcome = Valid; agrees(two, nonPassing{}) || two.Outcome != Flaky {
		t.Errorf("no failing test remains: %+v", two)
	}
	if early := j.unreliable("r", false); !early["a"] || early["b"] {
		t.Errorf("unreliable tests found before the tasks were chosen: %v", early)
	}
	s.chosen = []*Trial{{Outcome: Released, FailToPass: []string{"b", "c"}}, {Outcome: Released, FailToPass: []string{"c"}}}
	w.rejectUnreliable(s)
	if s.chosen[0].Outcome != Flaky || s.chosen[1].Outcome != Released || strings.Join(s.kept, "") != "cdefghij" {
		t.Errorf("%v %+v", s.kept, s.chosen)
	}
}
