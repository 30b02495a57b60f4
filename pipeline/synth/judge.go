package synth

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tracesmith/tracesmith/env/trace"
	"github.com/tracesmith/tracesmith/schemas"
)

// nonPassingOf returns the kept tests that did not pass in a run.
func nonPassingOf(kept []string, r run) nonPassing {
	v := nonPassing{}
	for _, id := range kept {
		switch status, ran := r.tests[id]; {
		case !ran:
			v[id] = missing
		case status != "passed":
			v[id] = status
		}
	}
	return v
}

// The limits of a candidate's run are multiples of the duration and of the CPU time of a run of the
// healthy repository. The limit of CPU time ends endless loops early, even on a busy machine.
const (
	minTimeout    = 3 * time.Second
	timeoutFactor = 5
	minCPULimit   = time.Second
	cpuFactor     = 2
)

const (
	maxDescribed = 5  // failures that a trial describes, as many as an issue text lists
	maxCovered   = 10 // failing tests whose coverage a trial measures
)

// timeout returns the timeout, in seconds, for tests that take base seconds in the healthy tree.
func timeout(base float64) float64 { return max(minTimeout.Seconds(), timeoutFactor*base) }

// runBounded runs a candidate's tests with limits. If they time out without using much CPU time, it
// measures the healthy tree again and repeats the run with a timeout based on that, because a machine
// that has become busier since the survey must not look like a hang.
func (w *worker) runBounded(ctx context.Context, s *repoState, seed string, q request) (run, error) {
	cpu := 0.0
	if s.runCPU > 0 {
		cpu = max(minCPULimit.Seconds(), cpuFactor*s.runCPU)
	}
	q.setTimeout(timeout(s.seconds), cpu)
	r, err := w.bench.run(ctx, seed, q)
	if err != nil || !r.verdicts().TimedOut || cpu > 0 && r.CPU >= cpu {
		return r, err
	}
	now, err := w.bench.run(ctx, seed, request{Only: s.kept, Timeout: healthyTimeout})
	if err != nil {
		return r, err
	}
	q.setTimeout(max(timeout(s.seconds), timeout(now.Seconds)), cpu)
	return w.bench.run(ctx, seed, q)
}

// judge tries one candidate and returns the result. An error is an infrastructure failure
// or an exhausted budget, not a result.
func (w *worker) judge(ctx context.Context, s *repoState, c candidate) (*Trial, error) {
	started, before := time.Now(), w.cpu()
	t := &Trial{Repo: s.repo.Task.InstanceID, Key: c.Key, Kind: c.Kind}
	defer func() { t.Seconds, t.CPU = time.Since(started).Seconds(), w.cpu()-before }()
	if err := w.apply(ctx, s, c, t); err != nil || t.Outcome != "" {
		return t, err
	}
	files, err := s.changedFiles(t.Patch)
	if err != nil {
		t.Outcome, t.Reason = Refused, err.Error()
		return t, nil
	}
	lines, _ := changedLines(t.Patch)
	tests, reached := s.coverage.covering(lines)
	if !reached {
		t.Outcome, t.Reason = Survived, "no test executes it"
		return t, nil
	}
	if tests == nil {
		tests = s.kept
	}
	first, err := w.runBounded(ctx, s, firstSeed, s.trialRequest(t, files, tests, w.maxFailing(s)))
	if err != nil {
		return t, err
	}
	t.Runs = 1
	s.classify(t, tests, first.verdicts(), w.maxFailing(s))
	if t.Outcome == "" {
		t.dropTests(w.unreliable(s))
	}
	if t.Outcome != "" {
		return t, nil
	}
	seen, err := w.repeat(ctx, s, t, files, tests, first)
	if err != nil || t.Outcome != "" {
		return t, err
	}
	if c.Kind == KindComposed {
		if err := w.checkPartsNeeded(ctx, s, c, t); err != nil || t.Outcome != "" {
			return t, err
		}
	}
	if err := w.measure(ctx, s, t, files, seen); err != nil || t.Outcome != "" {
		return t, err
	}
	t.Outcome = Valid
	return t, nil
}

// trialRequest returns the request for the first run of a candidate's tests. If the tests can be
// repeated in one sandbox, further passes run them in another order, measure the coverage of some
// failing ones, and trace the first failing one. repeat reads these passes by their numbers.
func (s *repoState) trialRequest(t *Trial, files map[string]string, tests []string, maxFailing int) request {
	q := request{Files: files, Only: tests, MaxFailures: maxFailing, Describe: maxDescribed}
	if slices.ContainsFunc(tests, func(id string) bool { return s.unrepeatable[id] }) {
		return q
	}
	q.Passes = []pass{
		{Only: tests, MaxFailures: maxFailing, Describe: maxDescribed},
		{Only: tests, Shuffle: s.orderOf(t.Key, 1), Follows: true},
		{Failing: min(maxFailing, maxCovered), Follows: true, Probe: probeOf(trace.CoverProbe())},
		{Failing: 1, Follows: true, Probe: probeOf(trace.StepsProbe())},
	}
	return q
}

// evidence is what the first run of a trial has shown besides the verdicts.
type evidence struct {
	coverage *trace.Coverage // of the failing tests; nil if unknown
	test     string          // the test whose execution steps has
	steps    []run           // passes that traced it
}

// repeat repeats a trial's tests until enough runs agree or the outcome is settled. The second
// pass of the first run counts only if it agrees, because it shares the sandbox of the first pass
// and may have seen files that the first pass left there.
func (w *worker) repeat(ctx context.Context, s *repoState, t *Trial, files map[string]string, tests []string, first run) (evidence, error) {
	var seen evidence
	again := first.pass(1)
	if again != nil && len(differingTests(t.Verdicts, nonPassingOf(tests, *again), w.unreliable(s))) == 0 {
		t.Runs = 2
	}
	if covered := first.pass(2); covered != nil {
		if c, err := trace.ReadCoverage(covered.probe); err == nil {
			seen.coverage = &c
		}
	}
	for _, p := range first.passes {
		if _, ran := p.tests[t.tracedTest()]; ran && p.number > 2 {
			seen.test, seen.steps = t.tracedTest(), append(seen.steps, p)
		}
	}
	return seen, w.rerun(ctx, s, t, files, tests, w.cfg.Runs)
}

// tracedTest returns the failing test whose execution with and without the bug is compared.
func (t *Trial) tracedTest() string {
	if len(t.Failures) > 0 {
		return t.Failures[0].Test
	}
	return t.FailToPass[0]
}

// maxFailing returns how many of the kept tests a bug may break.
func (w *worker) maxFailing(s *repoState) int {
	return min(int(w.cfg.MaxFailing*float64(len(s.kept))), len(s.kept)-1)
}

// classify judges the first run of a trial's tests, in which at most maxFailing tests may fail. It
// sets the outcome if the run settles it, and otherwise records the failing tests.
func (s *repoState) classify(t *Trial, tests []string, r run, maxFailing int) {
	v := nonPassingOf(tests, r)
	failing := 0
	for _, status := range v {
		if status != missing {
			failing++
		}
	}
	set := func(o Outcome, reason string) { t.Outcome, t.Reason = o, reason }
	switch {
	case r.TimedOut:
		set(Hang, fmt.Sprintf("more than %.0f s", timeout(s.seconds)))
	case len(r.uncollected) > 0:
		set(Collect, r.uncollected[0])
	case !r.finished:
		set(Crash, "the test runner did not finish")
	case failing == 0 && len(r.tests) > 0:
		set(Survived, "")
	case failing > maxFailing:
		set(BreaksTooMany, fmt.Sprintf("%d of %d tests, or more", failing, len(s.kept)))
	case len(v) > failing:
		set(Crash, "the test runner did not run all tests")
	case s.newLitter(r) != "":
		set(Litters, s.newLitter(r))
	}
	if t.Outcome == "" {
		t.FailToPass, t.Verdicts, t.Failures = slices.Sorted(maps.Keys(v)), v, r.failures
	}
}

// newLitter returns a file that a run left behind but no run of the healthy tree does; "" if there
// is none.
func (s *repoState) newLitter(r run) string {
	for _, path := range r.Leftovers {
		if !slices.Contains(s.litter, path) {
			return path
		}
	}
	return ""
}

// rerun repeats some tests of a candidate in other orders and with other hash seeds, until t.Runs, the number of runs
// that agree, is wanted or the outcome is settled.
func (w *worker) rerun(ctx context.Context, s *repoState, t *Trial, files map[string]string, tests []string, wanted int) error {
	for ; t.Runs < wanted; t.Runs++ {
		r, err := w.runBounded(ctx, s, hashSeed(t.Runs), request{Files: files, Only: tests, Shuffle: s.orderOf(t.Key, t.Runs)})
		if err != nil {
			return err
		}
		if ok, err := w.agrees(s, t, tests, r); err != nil || !ok {
			return err
		}
	}
	return nil
}

// agrees compares a run of some tests with a trial's verdicts. If they disagree too much, or the run
// left new files behind, it sets the trial's outcome and returns false.
func (w *worker) agrees(s *repoState, t *Trial, tests []string, r run) (bool, error) {
	if ok, err := w.reconcile(s, t, nonPassingOf(tests, r)); err != nil || !ok {
		return false, err
	}
	if path := s.newLitter(r); path != "" {
		t.Outcome, t.Reason = Litters, path
		return false, nil
	}
	return true, nil
}

// affectedTests returns the kept tests that a trial's bug may affect, sorted: the tests that
// execute one of the changed lines, and the tests that fail.
func (s *repoState) affectedTests(t *Trial) []string {
	lines, _ := changedLines(t.Patch)
	tests, _ := s.coverage.covering(lines)
	if tests == nil {
		return s.kept
	}
	tests = append(tests, t.FailToPass...)
	slices.Sort(tests)
	return slices.Compact(tests)
}

// orderOf returns the order of a repeated run of a candidate, from 1, as in request.Shuffle. The first two have opposite
// orders, so that of any two tests each runs before the other once.
func (s *repoState) orderOf(key string, run int) int64 {
	if run == 2 {
		return -s.shuffleSeed(key, 1)
	}
	return s.shuffleSeed(key, run)
}

// shuffleSeed returns the seed of the test order for a run of a candidate. It is never 0.
func (s *repoState) shuffleSeed(key string, run int) int64 {
	h := schemas.HashBytes(fmt.Appendf(nil, "%d %s %s %d", s.seed, s.repo.Task.InstanceID, key, run))
	var n int64
	for _, c := range []byte(h[:12]) {
		n = n<<4 | int64(c&15)
	}
	return n | 1
}

// passToPass returns the kept tests that a candidate does not break.
func passToPass(kept, failing []string) []string {
	return slices.DeleteFunc(slices.Clone(kept), func(id string) bool { _, fails := slices.BinarySearch(failing, id); return fails })
}
