package synth

import (
	"context"

	"github.com/tracesmith/tracesmith/env/tasks/check"
	"github.com/tracesmith/tracesmith/env/tasks/taskfile"
	"github.com/tracesmith/tracesmith/env/verify"
)

// planForgeries adds jobs that try each kind of cheating patch (check.Cheats), which fixes nothing, on
// the first released task of the repository.
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
	for _, kind := range check.Cheats {
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

// forge tries one kind of cheating patch on the task of a trial.
func (w *worker) forge(ctx context.Context, s *repoState, t *Trial, kind string) (forgery, error) {
	f, before := forgery{Repo: t.Repo, Kind: kind, Key: t.Key}, w.cpu()
	buggy, err := taskfile.Apply(s.repo.Tree, []byte(t.Patch))
	if err != nil {
		return f, err
	}
	v := verify.New(verify.Config{Driver: s.driver, Spec: w.sandbox(s), Store: w.cfg.Store})
	f.Resolves, err = check.FindCheatOf(ctx, v, w.cfg.Store, w.task(s, t, s.releases[t.Key]), buggy, []string{kind})
	f.CPU = w.cpu() - before
	return f, err
}

// rejectForgeable rejects all tasks of a repository if a cheating patch resolves one of them.
func (st *factory) rejectForgeable(s *repoState) {
	for _, kind := range check.Cheats {
		f := st.journal.forgery(s.repo.Task.InstanceID, kind)
		if f == nil || f.Resolves == "" {
			continue
		}
		for _, t := range s.chosen {
			if t.Outcome == Released {
				t.Outcome, t.Reason = Unverified, f.Resolves+" resolves it"
			}
		}
	}
}
