package synth

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tracesmith/tracesmith/schemas"
)

// vectorOf is what a run says of the kept tests.
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

// minTimeout and the factor are the time a run of a candidate may take, against
// that of the healthy repository.
const (
	minTimeout    = 3 * time.Second
	timeoutFactor = 5
	described     = 4 // failures of which a trial keeps the description
)

func timeout(base float64) float64 { return max(minTimeout.Seconds(), timeoutFactor*base) }

// bounded runs a candidate's tests within their time. A run that uses it up is repeated,
// in what the healthy tree takes now if that is more: on a busy machine everything takes
// longer than when the repository was surveyed, and is no hang.
func (w *worker) bounded(ctx context.Context, s *state, seed string, q request) (run, error) {
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

// try judges one candidate. An error is ours, and nothing is known of it.
func (w *worker) try(ctx context.Context, s *state, c candidate) (*Trial, error) {
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
	first, err := w.bounded(ctx, s, firstSeed, q)
	if err != nil {
		return t, err
	}
	t.Runs = 1
	s.classify(t, first, w.mayFail(s))
	if t.Outcome != "" {
		return t, nil
	}
	if err := w.again(ctx, s, t, files, vectorOf(s.kept, first), w.cfg.Runs); err != nil || t.Outcome != "" {
		return t, err
	}
	if c.Kind == KindComposed {
		if err := w.needed(ctx, s, c, t); err != nil || t.Outcome != "" {
			return t, err
		}
	}
	if err := w.measure(ctx, s, t, files); err != nil || t.Outcome != "" {
		return t, err
	}
	t.Outcome = Valid
	return t, nil
}

// mayFail is how many of the kept tests a bug may break.
func (w *worker) mayFail(s *state) int {
	return min(int(w.cfg.MaxFailing*float64(len(s.kept))), len(s.kept)-1)
}

// classify reads the first run, of which at most so many tests may fail.
func (s *state) classify(t *Trial, r run, most int) {
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
		say(Crash, "the test runner did not come to its end")
	case failing == 0 && len(r.tests) > 0:
		// A run that ends after the selected tests has left the others out.
		say(Survived, "")
	case failing > most:
		say(BreaksAll, fmt.Sprintf("%d of %d tests, or more", failing, len(s.kept)))
	case len(v) > failing:
		say(Crash, "the test runner left tests out")
	case s.litters(r) != "":
		say(Litters, s.litters(r))
	}
	if t.Outcome == "" {
		t.FailToPass, t.Failures = slices.Sorted(maps.Keys(v)), r.failures
	}
}

// litters names what a run leaves that runs of the healthy tree do not.
func (s *state) litters(r run) string {
	for _, path := range r.Left {
		if !slices.Contains(s.litter, path) {
			return path
		}
	}
	return ""
}

// again runs a candidate in other orders under other hash seeds, until as many
// verdicts as asked for are the same, or one is not. The second run and every
// fifth are of all tests, the others of those that the candidate may concern.
func (w *worker) again(ctx context.Context, s *state, t *Trial, files map[string]string, want vector, runs int) error {
	near := s.near(t)
	for ; t.Runs < runs; t.Runs++ {
		tests := near
		if t.Runs == 1 || t.Runs%5 == 0 {
			tests = s.kept
		}
		r, err := w.bounded(ctx, s, hashSeed(t.Runs), request{Files: files, Only: tests, Shuffle: s.shuffle(t.Key, t.Runs)})
		if err != nil {
			return err
		}
		got := vectorOf(tests, r)
		if !maps.Equal(got, want) {
			t.Outcome, t.Reason, t.Vectors = Flaky, fmt.Sprintf("run %d", t.Runs+1), []vector{want, got}
			return nil
		}
		if path := s.litters(r); path != "" {
			t.Outcome, t.Reason = Litters, path
			return nil
		}
	}
	return nil
}

// near are the kept tests that a trial may concern: those that execute one of its
// lines and those that fail, sorted.
func (s *state) near(t *Trial) []string {
	lines, _ := linesOf(t.Patch)
	tests, _ := s.coverage.covering(lines)
	if tests == nil {
		return s.kept
	}
	tests = append(tests, t.FailToPass...)
	slices.Sort(tests)
	return slices.Compact(tests)
}

// shuffle is the order of the run-th run of a candidate; never 0.
func (s *state) shuffle(key string, run int) int64 {
	h := schemas.HashBytes(fmt.Appendf(nil, "%d %s %s %d", s.seed, s.repo.Task.InstanceID, key, run))
	var n int64
	for _, c := range []byte(h[:12]) {
		n = n<<4 | int64(c&15)
	}
	return n | 1
}

// passToPass are the kept tests that a candidate leaves alone.
func passToPass(kept, failing []string) []string {
	return slices.DeleteFunc(slices.Clone(kept), func(id string) bool { _, bad := slices.BinarySearch(failing, id); return bad })
}
