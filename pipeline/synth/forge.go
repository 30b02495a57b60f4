package synth

import (
	"context"

	"github.com/tracesmith/tracesmith/env/tasks/check"
	"github.com/tracesmith/tracesmith/env/tasks/taskfile"
	"github.com/tracesmith/tracesmith/env/verify"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
)

// emptyPatch is the kind of patch that changes nothing. The verifier must see the same tests fail with it
// as the factory did.
const emptyPatch = "an empty patch"

// forgeryKinds are the kinds of patches that fix nothing and are tried on one task of each repository.
var forgeryKinds = append([]string{emptyPatch}, check.Cheats...)

// planForgeries adds jobs that try each kind of patch that fixes nothing on the first released task of the
// repository.
func (st *factory) planForgeries(s *repoState) {
	var first *Trial
	for _, t := range s.chosen {
		if t.Outcome == Released {
			first = t
			break
		}
	}
	if first == nil {
		return
	}
	for _, kind := range forgeryKinds {
		if st.journal.forgery(first.Repo, kind) != nil {
			continue
		}
		s.pending = append(s.pending, job{key: kind + " of " + first.Repo, do: func(ctx context.Context, w *worker) error {
			f, err := w.forge(ctx, s, first, kind)
			if err != nil {
				return err
			}
			return w.journal.add(entry{Forgery: &f})
		}})
	}
}

// forge tries one kind of patch that fixes nothing on the task of a trial.
func (w *worker) forge(ctx context.Context, s *repoState, t *Trial, kind string) (forgery, error) {
	f, before := forgery{Repo: t.Repo, Kind: kind, Key: t.Key}, w.cpu()
	buggy, err := taskfile.Apply(s.repo.Tree, []byte(t.Patch))
	if err != nil {
		return f, err
	}
	task := w.task(s, t, s.releases[t.Key])
	if kind == emptyPatch {
		f.Problem, err = w.tryEmptyPatch(ctx, s, t, task, buggy)
	} else if f.Problem, err = check.FindCheatOf(ctx, w.verifier(s), w.cfg.Store, task, buggy, []string{kind}); f.Problem != "" {
		f.Problem += " resolves it"
	}
	f.CPU = w.cpu() - before
	return f, err
}

// tryEmptyPatch has the verifier run the tests on the unchanged buggy tree. It returns why no task of the
// repository can be used, "" if all can. Tests with other verdicts than in the factory's runs are unreliable.
func (w *worker) tryEmptyPatch(ctx context.Context, s *repoState, t *Trial, task schemas.Task, buggy *workspace.Tree) (why string, err error) {
	verdict, got, err := w.verifier(s).VerifyVariant(ctx, task, buggy, nil, "", verify.Variant{})
	switch {
	case err != nil:
		return "", err
	case resolved(verdict):
		return "an empty patch resolves it", nil
	case got.Finding != "":
		return "with an empty patch: " + got.Finding, nil
	}
	status, _ := got.StatusOf(s.kept)
	expected := nonPassing{}
	for _, id := range t.FailToPass {
		expected[id] = "failed"
	}
	differing := differingTests(expected, nonPassingOf(s.kept, run{tests: status}), w.unreliable(s))
	switch {
	case len(differing) == 0:
		return "", nil
	case len(differing) > w.maxUnreliable(s):
		return "the verifier sees other tests fail than the factory, the first is " + differing[0], nil
	}
	return "", w.journal.add(entry{Unreliable: &unreliable{Repo: t.Repo, Tests: differing, Key: t.Key, Release: true}})
}

// rejectForgeable rejects all tasks of a repository if one of them cannot be used because of a patch that
// fixes nothing (see tryEmptyPatch and check.FindCheatOf).
func (st *factory) rejectForgeable(s *repoState) {
	for _, kind := range forgeryKinds {
		f := st.journal.forgery(s.repo.Task.InstanceID, kind)
		if f == nil || f.Problem == "" {
			continue
		}
		for _, t := range s.chosen {
			if t.Outcome == Released {
				t.Outcome, t.Reason = Unverified, f.Problem
			}
		}
	}
}

// verifier returns a verifier for tasks of a repository.
func (w *worker) verifier(s *repoState) *verify.Verifier {
	return verify.New(verify.Config{Driver: s.driver, Spec: w.sandbox(s), Store: w.cfg.Store})
}
