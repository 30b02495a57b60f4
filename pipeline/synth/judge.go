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

// vectorOf returns a run's verdicts on the kept tests.
func vectorOf(kept []string, r run) vector {
	v := vector{}
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

// The timeout of a candidate's run is a multiple of the healthy repository's run time.
const (
	minTimeout    = 3 * time.Second
	timeoutFactor = 5
	described     = 4 // failures that a trial describes
)

func timeout(base float64) float64 { return max(minTimeout.Seconds(), timeoutFactor*base) }

// runBounded runs a candidate's tests with a timeout. A run that times out is repeated
// with a timeout from the healthy tree's current run time, because a machine that is
// busier than during the survey must not look like a hang.
func (w *worker) runBounded(ctx context.Context, s *repoState, seed string, q request) (run, error) {
	q.limit(timeout(s.seconds))
	r, err := w.bench.run(ctx, seed, q)
	if err != nil || !r.verdicts().TimedOut {
		return r, err
	}
	now, err := w.bench.run(ctx, seed, request{Only: s.kept, Timeout: warmBound})
	if err != nil {
		return r, err
	}
	q.limit(max(timeout(s.seconds), timeout(now.Seconds)))
	return w.bench.run(ctx, seed, q)
}

// judge judges one candidate. An error is an infrastructure failure, not a verdict.
func (w *worker) judge(ctx context.Context, s *repoState, c candidate) (*Trial, error) {
	begun, before := time.Now(), w.bench.cpu
	t := &Trial{Repo: s.repo.Task.InstanceID, Key: c.Key, Kind: c.Kind}
	defer func() { t.Seconds, t.CPU = time.Since(begun).Seconds(), w.bench.cpu-before }()
	if err := w.apply(ctx, s, c, t); err != nil || t.Outcome != "" {
		return t, err
	}
	files, err := s.changed(t.Patch)
	if err != nil {
		t.Outcome, t.Reason = Refused, err.Error()
		return t, nil
	}
	lines, _ := linesOf(t.Patch)
	tests, reached := s.coverage.covering(lines)
	if !reached {
		t.Outcome, t.Reason = Survived, "no test executes it"
		return t, nil
	}
	if tests == nil {
		tests = s.kept
	}
	first, err := w.runBounded(ctx, s, firstSeed, s.trialRequest(t, files, tests, w.mayFail(s)))
	if err != nil {
		return t, err
	}
	t.Runs = 1
	s.classify(t, tests, first.verdicts(), w.mayFail(s))
	if t.Outcome == "" {
		t.leaveOut(w.unreliable(s))
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

// trialRequest is the first run of a candidate's tests. If they can be repeated in one place, it also
// runs them in another order, the failing ones under coverage, and traces the first failing one twice,
// all in forks of one interpreter.
func (s *repoState) trialRequest(t *Trial, files map[string]string, tests []string, most int) request {
	q := request{Files: files, Only: tests, Most: most, Describe: described}
	if slices.ContainsFunc(tests, func(id string) bool { return s.once[id] }) {
		return q
	}
	steps := pass{Failing: 1, Follows: true, Probe: probeOf(trace.StepsProbe())}
	q.Passes = []pass{
		{Only: tests, Most: most, Describe: described},
		{Only: tests, Shuffle: s.shuffle(t.Key, 1), Follows: true},
		{Failing: most, Follows: true, Probe: probeOf(trace.CoverProbe())},
		steps, steps,
	}
	return q
}

// observed is what a trial's runs have shown beside the verdicts.
type observed struct {
	coverage *trace.Coverage // of the failing tests; nil: unknown
	test     string          // that steps trace
	steps    []run
}

// repeat repeats a trial's tests until there are enough equal verdicts. A second run in the place of the first one counts only if it agrees: it may have met what
// the first one left.
func (w *worker) repeat(ctx context.Context, s *repoState, t *Trial, files map[string]string, tests []string, first run) (observed, error) {
	var seen observed
	again := first.pass(1)
	if again != nil && len(differing(t.Verdicts, vectorOf(tests, *again), w.unreliable(s))) == 0 {
		t.Runs = 2
	}
	if covered := first.pass(2); covered != nil {
		if c, err := trace.ReadCoverage(covered.probe); err == nil {
			seen.coverage = &c
		}
	}
	for _, p := range first.passes {
		if _, ran := p.tests[t.traced()]; ran && p.number > 2 {
			seen.test, seen.steps = t.traced(), append(seen.steps, p)
		}
	}
	return seen, w.rerun(ctx, s, t, files, tests, w.cfg.Runs)
}

// traced is the failing test whose execution is compared with the fixed one's.
func (t *Trial) traced() string {
	if len(t.Failures) > 0 {
		return t.Failures[0].Test
	}
	return t.FailToPass[0]
}

// mayFail returns how many of the kept tests a bug may break.
func (w *worker) mayFail(s *repoState) int {
	return min(int(w.cfg.MaxFailing*float64(len(s.kept))), len(s.kept)-1)
}

// classify judges the first run of some tests, in which at most most tests may fail.
func (s *repoState) classify(t *Trial, tests []string, r run, most int) {
	v := vectorOf(tests, r)
	failing := 0
	for _, status := range v {
		if status != missing {
			failing++
		}
	}
	say := func(o Outcome, reason string) { t.Outcome, t.Reason = o, reason }
	switch {
	case r.TimedOut:
		say(Hang, fmt.Sprintf("more than %.0f s", timeout(s.seconds)))
	case len(r.uncollected) > 0:
		say(Collect, r.uncollected[0])
	case !r.whole:
		say(Crash, "the test runner did not finish")
	case failing == 0 && len(r.tests) > 0:
		say(Survived, "")
	case failing > most:
		say(BreaksAll, fmt.Sprintf("%d of %d tests, or more", failing, len(s.kept)))
	case len(v) > failing:
		say(Crash, "the test runner left tests out")
	case s.newLitter(r) != "":
		say(Litters, s.newLitter(r))
	}
	if t.Outcome == "" {
		t.FailToPass, t.Verdicts, t.Failures = slices.Sorted(maps.Keys(v)), v, r.failures
	}
}

// newLitter returns a file that a run left and runs of the healthy tree do not; "" if none.
func (s *repoState) newLitter(r run) string {
	for _, path := range r.Left {
		if !slices.Contains(s.litter, path) {
			return path
		}
	}
	return ""
}

// rerun repeats some tests of a candidate in other orders with other hash seeds, until runs
// verdicts agree or the outcome is settled.
func (w *worker) rerun(ctx context.Context, s *repoState, t *Trial, files map[string]string, tests []string, runs int) error {
	for ; t.Runs < runs; t.Runs++ {
		r, err := w.runBounded(ctx, s, hashSeed(t.Runs), request{Files: files, Only: tests, Shuffle: s.shuffle(t.Key, t.Runs)})
		if err != nil {
			return err
		}
		if ok, err := w.agrees(s, t, tests, r); err != nil || !ok {
			return err
		}
	}
	return nil
}

// agrees compares a run of some tests with a trial's verdicts. It returns false if the run settles
// the outcome.
func (w *worker) agrees(s *repoState, t *Trial, tests []string, r run) (bool, error) {
	if ok, err := w.consistent(s, t, vectorOf(tests, r)); err != nil || !ok {
		return false, err
	}
	if path := s.newLitter(r); path != "" {
		t.Outcome, t.Reason = Litters, path
		return false, nil
	}
	return true, nil
}

// near returns the kept tests that a trial may affect, sorted: the tests that execute
// one of its lines and the tests that fail.
func (s *repoState) near(t *Trial) []string {
	lines, _ := linesOf(t.Patch)
	tests, _ := s.coverage.covering(lines)
	if tests == nil {
		return s.kept
	}
	tests = append(tests, t.FailToPass...)
	slices.Sort(tests)
	return slices.Compact(tests)
}

// shuffle returns the seed of the test order of a candidate's run; never 0.
func (s *repoState) shuffle(key string, run int) int64 {
	h := schemas.HashBytes(fmt.Appendf(nil, "%d %s %s %d", s.seed, s.repo.Task.InstanceID, key, run))
	var n int64
	for _, c := range []byte(h[:12]) {
		n = n<<4 | int64(c&15)
	}
	return n | 1
}

// passToPass returns the kept tests that a candidate does not break.
func passToPass(kept, failing []string) []string {
	return slices.DeleteFunc(slices.Clone(kept), func(id string) bool { _, bad := slices.BinarySearch(failing, id); return bad })
}
