package synth

import (
	"maps"
	"slices"
)

// maxUnreliable is the largest share of the tests that one candidate can mark as unreliable. If more
// of them give different verdicts, then the bug is what makes the results random.
const maxUnreliable = 0.05

// minUnreliable is the number of tests that any candidate can mark.
const minUnreliable = 3

// unreliable returns the tests of a repository that gave different verdicts for the same code.
func (st *factory) unreliable(s *repoState) map[string]bool {
	return st.journal.unreliable(s.repo.Task.InstanceID, true)
}

// consistent compares the verdicts of a run with those of a trial. A test that differs is left out of
// the trial and marked for the whole repository; too many of them make the trial flaky.
func (w *worker) consistent(s *repoState, t *Trial, got vector) (bool, error) {
	diff := differing(t.Verdicts, got, w.unreliable(s))
	if len(diff) == 0 {
		return true, nil
	}
	if len(diff) > max(minUnreliable, int(maxUnreliable*float64(len(s.kept)))) {
		t.Outcome, t.Vectors = Flaky, []vector{t.Verdicts, got}
		return false, nil
	}
	if err := w.journal.add(entry{Unreliable: &unreliable{s.repo.Task.InstanceID, diff, t.Key, t.Outcome == Valid}}); err != nil {
		return false, err
	}
	was := t.Verdicts
	if t.leaveOut(w.unreliable(s)); t.Outcome == Flaky {
		t.Vectors = []vector{was, got}
	}
	return t.Outcome != Flaky, nil
}

// differing returns the tests on which two vectors disagree, sorted, except some. The ways to fail
// are equal.
func differing(a, b vector, except map[string]bool) []string {
	var out []string
	for _, pair := range [][2]vector{{a, b}, {b, a}} {
		for id := range pair[0] {
			if pair[1][id] == "" && !except[id] {
				out = append(out, id)
			}
		}
	}
	slices.Sort(out)
	return out
}

// leaveOut removes tests from what a trial says. Without failing tests, the trial is flaky.
func (t *Trial) leaveOut(tests map[string]bool) {
	if !slices.ContainsFunc(t.FailToPass, func(id string) bool { return tests[id] }) {
		return
	}
	t.Verdicts = maps.Clone(t.Verdicts)
	maps.DeleteFunc(t.Verdicts, func(id, _ string) bool { return tests[id] })
	t.FailToPass = slices.DeleteFunc(slices.Clone(t.FailToPass), func(id string) bool { return tests[id] })
	t.Failures = slices.DeleteFunc(slices.Clone(t.Failures), func(f Failure) bool { return tests[f.Test] })
	if len(t.FailToPass) == 0 {
		t.Outcome, t.Reason = Flaky, "only tests fail that give different verdicts for the same code"
	}
}

// dropUnreliable removes from all trials, before tasks are chosen, the tests that any trial found to
// be unreliable.
func (st *factory) dropUnreliable(s *repoState) {
	bad := st.journal.unreliable(s.repo.Task.InstanceID, false)
	for _, t := range s.trials {
		if t.Outcome == Valid {
			t.leaveOut(bad)
		}
	}
}

// rejectUnreliable removes from a repository's lists the tests that any run found to be unreliable,
// and rejects the tasks that need them.
func (st *factory) rejectUnreliable(s *repoState) {
	bad := st.unreliable(s)
	s.kept = slices.DeleteFunc(slices.Clone(s.kept), func(id string) bool { return bad[id] })
	for _, t := range s.chosen {
		if t.Outcome == Released && slices.ContainsFunc(t.FailToPass, func(id string) bool { return bad[id] }) {
			t.Outcome, t.Reason = Flaky, "a later run shows that a test which it lists is unreliable"
		}
	}
}
