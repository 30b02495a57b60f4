package synth

import (
	"maps"
	"slices"
)

// A candidate can mark tests as unreliable if their verdicts differ between its runs. If too many
// differ, the bug itself is what makes the results random.
const (
	maxUnreliableShare = 0.05 // largest share of the tests that one candidate can mark
	minUnreliable      = 3    // number of tests that a candidate can mark whatever the share
)

// unreliable returns the tests of a repository that gave different verdicts for the same code.
func (st *factory) unreliable(s *repoState) map[string]bool {
	return st.journal.unreliable(s.repo.Task.InstanceID, true)
}

// reconcile compares the verdicts of a run with those of a trial. It removes tests that differ from the
// trial and marks them as unreliable for the whole repository. If too many differ or no failing test
// remains, the trial becomes flaky and reconcile returns false.
func (w *worker) reconcile(s *repoState, t *Trial, got nonPassing) (bool, error) {
	diff := differingTests(t.Verdicts, got, w.unreliable(s))
	if len(diff) == 0 {
		return true, nil
	}
	if len(diff) > w.maxUnreliable(s) {
		t.Outcome, t.DifferingRuns = Flaky, []nonPassing{t.Verdicts, got}
		return false, nil
	}
	if err := w.journal.add(entry{Unreliable: &unreliable{Repo: s.repo.Task.InstanceID, Tests: diff, Key: t.Key, Release: t.Outcome == Valid}}); err != nil {
		return false, err
	}
	before := t.Verdicts
	if t.dropTests(w.unreliable(s)); t.Outcome == Flaky {
		t.DifferingRuns = []nonPassing{before, got}
	}
	return t.Outcome != Flaky, nil
}

// maxUnreliable returns how many tests of a repository one candidate can mark as unreliable.
func (w *worker) maxUnreliable(s *repoState) int {
	return max(minUnreliable, int(maxUnreliableShare*float64(len(s.kept))))
}

// differingTests returns the tests that passed in only one of two runs, sorted and without those in
// except. Different ways of not passing, such as "failed" and "error", do not count as a difference.
func differingTests(a, b nonPassing, except map[string]bool) []string {
	var out []string
	for _, pair := range [][2]nonPassing{{a, b}, {b, a}} {
		for id := range pair[0] {
			if pair[1][id] == "" && !except[id] {
				out = append(out, id)
			}
		}
	}
	slices.Sort(out)
	return out
}

// dropTests removes tests from a trial. If no failing test remains, the trial is flaky.
func (t *Trial) dropTests(tests map[string]bool) {
	if !slices.ContainsFunc(t.FailToPass, func(id string) bool { return tests[id] }) {
		return
	}
	t.Verdicts = maps.Clone(t.Verdicts)
	maps.DeleteFunc(t.Verdicts, func(id, _ string) bool { return tests[id] })
	t.FailToPass = slices.DeleteFunc(slices.Clone(t.FailToPass), func(id string) bool { return tests[id] })
	t.Failures = slices.DeleteFunc(slices.Clone(t.Failures), func(f Failure) bool { return tests[f.Test] })
	if len(t.FailToPass) == 0 {
		t.Outcome, t.Reason = Flaky, "all failing tests are unreliable: they give different verdicts for the same code"
	}
}

// dropUnreliable removes tests from all valid trials before tasks are chosen: those that any trial found
// to be unreliable.
func (st *factory) dropUnreliable(s *repoState) {
	tests := st.journal.unreliable(s.repo.Task.InstanceID, false)
	for _, t := range s.trials {
		if t.Outcome == Valid {
			t.dropTests(tests)
		}
	}
}

// rejectUnreliable removes all unreliable tests from the kept tests of a repository, and rejects tasks
// that have such a test among their failing tests.
func (st *factory) rejectUnreliable(s *repoState) {
	bad := st.unreliable(s)
	s.kept = slices.DeleteFunc(slices.Clone(s.kept), func(id string) bool { return bad[id] })
	for _, t := range s.chosen {
		if t.Outcome == Released && slices.ContainsFunc(t.FailToPass, func(id string) bool { return bad[id] }) {
			t.Outcome, t.Reason = Flaky, "one of its failing tests turned out to be unreliable in a later run"
		}
	}
}
