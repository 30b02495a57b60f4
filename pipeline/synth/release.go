package synth

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env/tasks/taskfile"
	"github.com/tracesmith/tracesmith/env/verify"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
)

// planReleases adds jobs for the release checks of the chosen trials.
func (st *factory) planReleases(s *repoState) {
	st.update(func(p *Progress) { p.Chosen += len(s.chosen) })
	for _, t := range s.chosen {
		if known, ok := st.journal.release(t.Repo, t.Key); ok {
			st.recordRelease(s, t, known)
			continue
		}
		s.pending = append(s.pending, job{key: "the task of " + t.Key + " of " + t.Repo, kind: jobRelease, units: 1, do: func(ctx context.Context, w *worker) error {
			if err := w.enter(ctx, s); err != nil {
				return err
			}
			r, err := w.release(ctx, s, t)
			if err != nil {
				return err
			}
			if err := w.journal.add(entry{Release: &r}); err != nil {
				return err
			}
			w.recordRelease(s, t, r)
			return nil
		}})
	}
}

// recordRelease records the result of a chosen trial's release checks.
func (st *factory) recordRelease(s *repoState, t *Trial, r release) {
	st.update(func(p *Progress) {
		if p.Checked++; r.Outcome == Released {
			p.Released++
		}
		if t.Outcome, t.Reason = r.Outcome, r.Reason; r.FailToPass != nil {
			t.FailToPass = r.FailToPass
		}
		if s.releases == nil {
			s.releases = map[string]release{}
		}
		s.releases[t.Key] = r
	})
}

// release does the final checks of a trial: a gold patch that restores the healthy tree and stands nowhere else in the
// repository, more runs of all tests, and the verdict of the verifier on that patch. It also writes the issue texts.
func (w *worker) release(ctx context.Context, s *repoState, t *Trial) (r release, err error) {
	r = release{Repo: t.Repo, Key: t.Key, Outcome: Released}
	before := w.cpu()
	defer func() { r.CPU = w.cpu() - before }()
	files, err := s.changedFiles(t.Patch)
	if err != nil {
		return r, err
	}
	again := t.clone()
	buggy, err := taskfile.Apply(s.repo.Tree, []byte(t.Patch))
	if err != nil {
		return r, err
	}
	r.Tree = buggy.SHA256()
	gold, err := w.gold(ctx, s.repo.Tree, buggy)
	if err != nil {
		return r, err
	}
	r.Gold = string(gold)
	if r.Reason, err = otherCopy(s.repo.Tree, buggy, files); err != nil || r.Reason != "" {
		r.Outcome = Leaking
		return r, err
	}
	err = w.runAll(ctx, s, again, files)
	if r.Runs = again.Runs; err != nil || again.Outcome != Valid {
		r.Outcome, r.Reason, r.DifferingRuns = again.Outcome, again.Reason, again.DifferingRuns
		return r, err
	}
	r.FailToPass = again.FailToPass
	if err := w.checkScenes(ctx, again, files); err != nil {
		return r, err
	}
	if err := w.writeTexts(ctx, s, again, &r); err != nil {
		return r, err
	}
	task := w.task(s, again, r)
	if r.Reason = unusableReason(task); r.Reason == "" {
		if r.Reason, err = w.tryGold(ctx, s, task, buggy); err != nil {
			return r, err
		}
	}
	if r.Reason != "" {
		r.Outcome = Unverified
	}
	return r, nil
}

// runAll runs all tests on the buggy tree several times: in their usual order, then in opposite random orders. A test that
// fails because of the bug may skip its clean-up and so break tests that never execute the bug, depending on the order.
// Tests that the bug cannot affect and that fail in the first run, such as tests that start the program as a separate
// process, join the failing tests. The other runs must agree with it, and failing tests must also fail alone.
func (w *worker) runAll(ctx context.Context, s *repoState, t *Trial, files map[string]string) error {
	runs, alone, err := w.wholeRuns(ctx, s, t, files)
	if err != nil {
		return err
	}
	for i, r := range runs {
		if r.TimedOut || !r.finished {
			t.Outcome, t.Reason = Unverified, "a run of all tests did not finish"
			return nil
		}
		if i == 0 && !w.joinUnexpected(s, t, r) {
			return nil
		}
		t.Runs++
		if ok, err := w.agrees(s, t, s.kept, r); err != nil || !ok {
			return err
		}
	}
	if alone, err = w.runFailingAlone(ctx, s, t, files, alone); err != nil {
		return err
	}
	failing := maps.Clone(t.Verdicts)
	for id, status := range alone {
		if status == "passed" {
			delete(failing, id)
		}
	}
	_, err = w.reconcile(s, t, failing)
	return err
}

// maxAloneFailing is the maximum number of failing tests that run alone before a release.
const maxAloneFailing = 20

// wholeRuns runs all tests of a candidate as often as a release needs. The runs are passes in one sandbox, if all tests can
// be repeated there. Then some failing tests also run alone, and alone has their statuses.
func (w *worker) wholeRuns(ctx context.Context, s *repoState, t *Trial, files map[string]string) (runs []run, alone map[string]string, err error) {
	q, seed := request{Files: files}, hashSeed(t.Runs)
	if len(s.unrepeatable) > 0 {
		for n := range w.cfg.ReleaseRuns {
			if n > 0 {
				q.Shuffle = s.orderOf(t.Key, n)
			}
			r, err := w.runBounded(ctx, s, seed, q)
			if err != nil {
				return nil, nil, err
			}
			runs = append(runs, r)
		}
		return runs, map[string]string{}, nil
	}
	for n := range w.cfg.ReleaseRuns {
		p := pass{}
		if n > 0 {
			p.Shuffle = s.orderOf(t.Key, n)
		}
		q.Passes = append(q.Passes, p)
	}
	for _, id := range t.FailToPass[:min(len(t.FailToPass), maxAloneFailing)] {
		q.Passes = append(q.Passes, pass{Only: []string{id}})
	}
	r, err := w.runBounded(ctx, s, seed, q)
	if err != nil {
		return nil, nil, err
	}
	alone = map[string]string{}
	for n := range q.Passes {
		p := run{} // did not finish
		if ran := r.pass(n); ran != nil {
			p = *ran
		}
		if n >= w.cfg.ReleaseRuns {
			maps.Copy(alone, p.tests)
			continue
		}
		p.Leftovers = r.Leftovers
		runs = append(runs, p)
	}
	return runs, alone, nil
}

// runFailingAlone runs the failing tests that have not run alone yet, because they have joined the trial or because the tests
// cannot be repeated in one sandbox. It returns the statuses of all tests that have run alone.
func (w *worker) runFailingAlone(ctx context.Context, s *repoState, t *Trial, files map[string]string, known map[string]string) (map[string]string, error) {
	q := request{Files: files}
	for _, id := range t.FailToPass {
		if _, ran := known[id]; !ran && len(known)+len(q.Passes) < maxAloneFailing {
			q.Passes = append(q.Passes, pass{Only: []string{id}})
		}
	}
	if len(q.Passes) == 0 {
		return known, nil
	}
	r, err := w.runBounded(ctx, s, hashSeed(t.Runs), q)
	if err != nil {
		return nil, err
	}
	for n := range q.Passes {
		if ran := r.pass(n); ran != nil {
			maps.Copy(known, ran.tests)
		}
	}
	return known, nil
}

// joinUnexpected adds failing tests of a run of all tests to those of the trial, unless the bug can affect them. If too
// many tests fail then, it sets the trial's outcome and returns false.
func (w *worker) joinUnexpected(s *repoState, t *Trial, r run) bool {
	affected, bad := s.affectedTests(t), w.unreliable(s)
	unexpected := nonPassingOf(s.kept, r)
	maps.DeleteFunc(unexpected, func(id, _ string) bool {
		_, expected := slices.BinarySearch(affected, id)
		return expected || bad[id]
	})
	if len(unexpected) == 0 {
		return true
	}
	if n := len(unexpected) + len(t.Verdicts); n > w.maxFailing(s) {
		t.Outcome, t.Reason = BreaksTooMany, fmt.Sprintf("%d of %d tests", n, len(s.kept))
		return false
	}
	t.Verdicts = maps.Clone(t.Verdicts)
	maps.Copy(t.Verdicts, unexpected)
	t.FailToPass = slices.Sorted(maps.Keys(t.Verdicts))
	return true
}

// tryGold has the verifier judge the gold patch, and returns why it does not resolve the task; "" if it
// does. Every gold patch of a repository restores the same healthy tree, so the verdict is made from one
// run of that tree. If that gives another verdict, for example because a test failed in that run by
// chance, a run for this task decides.
func (w *worker) tryGold(ctx context.Context, s *repoState, task schemas.Task, buggy *workspace.Tree) (why string, err error) {
	v := w.verifier(s)
	recording, err := s.healthy.record(func() (*verify.Recording, error) { return v.Record(ctx, task, s.repo.Tree) })
	if err != nil {
		return "", err
	}
	for _, recorded := range []*verify.Recording{recording, nil} {
		verdict, err := v.VerifyRecorded(ctx, task, buggy, []byte(task.GoldPatch), recorded)
		if err != nil || resolved(verdict) {
			return "", err
		}
		why = goldFails + verdict.Reason
	}
	return why, nil
}

func resolved(v schemas.Verdict) bool { return v.Resolved != nil && *v.Resolved }

// gold returns the patch from the buggy tree to the healthy one, and checks that
// applying it restores the healthy tree byte for byte.
func (w *worker) gold(ctx context.Context, healthy, buggy *workspace.Tree) ([]byte, error) {
	store := w.cfg.Store
	healthyBase, err := store.Base(ctx, healthy)
	if err != nil {
		return nil, err
	}
	buggyBase, err := store.Base(ctx, buggy)
	if err != nil {
		return nil, err
	}
	gold, err := store.DiffTrees(ctx, buggyBase, healthyBase)
	if err != nil {
		return nil, err
	}
	fixed, err := store.Apply(ctx, buggyBase, gold)
	if err == nil && fixed != healthyBase {
		err = errors.New("the gold patch does not restore the healthy tree")
	}
	return gold, err
}

// unusableReason returns why a task cannot be used, whatever the verifier says; "" if it can.
func unusableReason(t schemas.Task) string {
	switch {
	case strings.TrimSpace(t.GoldPatch) == "" || strings.TrimSpace(t.BugPatch) == "":
		return "its patch is empty"
	case len(t.Tests.FailToPass) == 0:
		return "no test fails"
	case len(t.Tests.PassToPass) == 0:
		return "no test passes"
	case strings.TrimSpace(t.Instructions) == "":
		return "every issue text reveals something about the fix"
	}
	return ""
}
