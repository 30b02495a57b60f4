package synth

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

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
	q.Timeout = timeout(s.seconds)
	r, err := w.bench.run(ctx, seed, q)
	if err != nil || !r.TimedOut {
		return r, err
	}
	now, err := w.bench.run(ctx, seed, request{Only: s.kept, Timeout: warmBound})
	if err != nil {
		return r, err
	}
	q.Timeout = max(q.Timeout, timeout(now.Seconds))
	return w.bench.run(ctx, seed, q)
}

// judge judges one candidate. An error is an infrastructure failure, not a verdict.
func (w *worker) judge(ctx context.Context, s *repoState, c candidate) (*Trial, error) {
	begun := time.Now()
	t := &Trial{Repo: s.repo.Task.InstanceID, Key: c.Key, Kind: c.Kind}
	defer func() { t.Seconds = time.Since(begun).Seconds() }()
	if err := w.apply(ctx, s, c, t); err != nil || t.Outcome != "" {
		return t, err
	}
	files, err := s.changed(t.Patch)
	if err != nil {
		t.Outcome, t.Reason = Refused, err.Error()
		return t, nil
	}
	before, _ := linesOf(t.Patch)
	selected, reached := s.coverage.covering(before)
	if !reached {
		t.Outcome, t.Reason = Survived, "no test executes it"
		return t, nil
	}
	q := request{
		Files: files, First: selected, Only: s.kept, Most: w.mayFail(s), Describe: described,
	}
	first, err := w.runBounded(ctx, s, firstSeed, q)
	if err != nil {
		return t, err
	}
	t.Runs = 1
	s.classify(t, first, w.mayFail(s))
	if t.Outcome != "" {
		return t, nil
	}
	if err := w.rerun(ctx, s, t, files, vectorOf(s.kept, first), w.cfg.Runs); err != nil || t.Outcome != "" {
		return t, err
	}
	if c.Kind == KindComposed {
		if err := w.checkPartsNeeded(ctx, s, c, t); err != nil || t.Outcome != "" {
			return t, err
		}
	}
	if err := w.measure(ctx, s, t, files); err != nil || t.Outcome != "" {
		return t, err
	}
	t.Outcome = Valid
	return t, nil
}

// mayFail returns how many of the kept tests a bug may break.
func (w *worker) mayFail(s *repoState) int {
	return min(int(w.cfg.MaxFailing*float64(len(s.kept))), len(s.kept)-1)
}

// classify judges the first run, in which at most most tests may fail.
func (s *repoState) classify(t *Trial, r run, most int) {
	v := vectorOf(s.kept, r)
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
		// A run that ends after the selected tests did not run the others.
		say(Survived, "")
	case failing > most:
		say(BreaksAll, fmt.Sprintf("%d of %d tests, or more", failing, len(s.kept)))
	case len(v) > failing:
		say(Crash, "the test runner left tests out")
	case s.newLitter(r) != "":
		say(Litters, s.newLitter(r))
	}
	if t.Outcome == "" {
		t.FailToPass, t.Failures = slices.Sorted(maps.Keys(v)), r.failures
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

// rerun repeats a candidate's tests in other orders with other hash seeds, until runs
// verdicts are equal or one differs. The second run and every fifth run all tests, the
// others only the tests that the candidate may affect.
func (w *worker) rerun(ctx context.Context, s *repoState, t *Trial, files map[string]string, want vector, runs int) error {
	near := s.near(t)
	for ; t.Runs < runs; t.Runs++ {
		tests := near
		if t.Runs == 1 || t.Runs%5 == 0 {
			tests = s.kept
		}
		r, err := w.runBounded(ctx, s, hashSeed(t.Runs), request{Files: files, Only: tests, Shuffle: s.shuffle(t.Key, t.Runs)})
		if err != nil {
			return err
		}
		got := vectorOf(tests, r)
		if !maps.Equal(got, want) {
			t.Outcome, t.Reason, t.Vectors = Flaky, fmt.Sprintf("run %d", t.Runs+1), []vector{want, got}
			return nil
		}
		if path := s.newLitter(r); path != "" {
			t.Outcome, t.Reason = Litters, path
			return nil
		}
	}
	return nil
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
