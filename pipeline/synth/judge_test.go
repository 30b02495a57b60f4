package synth

import "testing"

// A bug may break at most the share MaxFailing of the tests, and never all of them.
func TestBugsMayBreakOnlyAShareOfTheTests(t *testing.T) {
	s := &repoState{kept: []string{"a", "b", "c", "d"}}
	failing := func(n int) run {
		r := run{tests: map[string]string{}, finished: true}
		for i, id := range s.kept {
			if r.tests[id] = "passed"; i < n {
				r.tests[id] = "failed"
			}
		}
		return r
	}
	for _, c := range []struct {
		share float64
		tests int
		want  Outcome
	}{{0.5, 2, ""}, {0.5, 3, BreaksTooMany}, {0.25, 2, BreaksTooMany}, {1, 3, ""}, {1, 4, BreaksTooMany}} {
		w := &worker{factory: &factory{cfg: Config{MaxFailing: c.share}}}
		trial := &Trial{}
		s.classify(trial, s.kept, failing(c.tests), w.maxFailing(s))
		if trial.Outcome != c.want {
			t.Errorf("%d of 4 tests fail, a share of %v may fail: outcome %q, want %q", c.tests, c.share, trial.Outcome, c.want)
		}
	}
}

// The first two repeated runs of a candidate have opposite orders.
func TestOrdersOfRepeatedRuns(t *testing.T) {
	s := &repoState{seed: 3}
	first, second, third := s.orderOf("k", 1), s.orderOf("k", 2), s.orderOf("k", 3)
	if first <= 0 || second != -first || third <= 0 || third == first || s.orderOf("other", 1) == first {
		t.Error(first, second, third)
	}
}
