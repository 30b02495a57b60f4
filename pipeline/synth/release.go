package synth

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env/tasks/check"
	"github.com/tracesmith/tracesmith/env/tasks/taskfile"
	"github.com/tracesmith/tracesmith/env/verify"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
)

// planReleases adds the release checks of the chosen trials.
func (st *factory) planReleases(s *repoState) {
	st.update(func(p *Progress) { p.Chosen += len(s.chosen) })
	for _, t := range s.chosen {
		if known, ok := st.journal.release(t.Repo, t.Key); ok {
			st.settle(s, t, known)
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
			w.settle(s, t, r)
			return nil
		}})
	}
}

// settle records the result of a chosen trial's release checks.
func (st *factory) settle(s *repoState, t *Trial, r release) {
	st.update(func(p *Progress) {
		if p.Checked++; r.Outcome == Released {
			p.Released++
		}
		t.Outcome, t.Reason = r.Outcome, r.Reason
		if s.releases == nil {
			s.releases = map[string]release{}
		}
		s.releases[t.Key] = r
	})
}

// release does the final checks of a trial: more runs, the gold patch byte for byte, and
// the verifier in new sandboxes. It also writes the texts.
func (w *worker) release(ctx context.Context, s *repoState, t *Trial) (release, error) {
	r := release{Repo: t.Repo, Key: t.Key, Outcome: Released}
	files, err := s.changed(t.Patch)
	if err != nil {
		return r, err
	}
	again := t.clone()
	first, err := w.runBounded(ctx, s, firstSeed, request{Files: files, Only: s.kept})
	if err != nil {
		return r, err
	}
	failing := vectorOf(s.kept, first)
	if !slices.Equal(slices.Sorted(maps.Keys(failing)), t.FailToPass) {
		r.Outcome, r.Reason, r.Vectors = Flaky, "when it was run again", []vector{failing}
		return r, nil
	}
	if err := w.rerun(ctx, s, again, files, failing, w.cfg.ReleaseRuns); err != nil {
		return r, err
	}
	r.Runs = again.Runs
	if again.Outcome != Valid {
		r.Outcome, r.Reason, r.Vectors = again.Outcome, again.Reason, again.Vectors
		return r, nil
	}
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
	if err := w.writeTexts(ctx, s, t, &r); err != nil {
		return r, err
	}
	reason, err := w.confirm(ctx, s, w.task(s, t, r), buggy)
	if err != nil {
		return r, err
	}
	if reason != "" {
		r.Outcome, r.Reason = Unverified, reason
	}
	return r, nil
}

// gold returns the patch from the buggy tree to the healthy one, and checks that
// applying it restores the healthy tree byte for byte.
func (w *worker) gold(ctx context.Context, healthy, buggy *workspace.Tree) ([]byte, error) {
	store := w.cfg.Store
	good, err := store.Base(ctx, healthy)
	if err != nil {
		return nil, err
	}
	bad, err := store.Base(ctx, buggy)
	if err != nil {
		return nil, err
	}
	gold, err := store.DiffTrees(ctx, bad, good)
	if err != nil {
		return nil, err
	}
	back, err := store.Apply(ctx, bad, gold)
	if err == nil && back != good {
		err = errors.New("the gold patch does not restore the healthy tree")
	}
	return gold, err
}

// confirm verifies the gold patch, an empty patch, and patches that change only tests
// and their configuration. It returns what is wrong with the task, or "".
func (w *worker) confirm(ctx context.Context, s *repoState, t schemas.Task, buggy *workspace.Tree) (string, error) {
	v := verify.New(verify.Config{Driver: s.driver, Spec: s.spec, Store: w.cfg.Store})
	if why := whyUnusable(t); why != "" {
		return why, nil
	}
	judge := func(patch string) (bool, string, error) {
		verdict, err := v.Verify(ctx, t, buggy, []byte(patch), "")
		return verdict.Resolved != nil && *verdict.Resolved, verdict.Reason, err
	}
	solved, reason, err := judge(t.GoldPatch)
	if err != nil {
		return "", err
	}
	if !solved {
		return "the gold patch does not resolve it: " + reason, nil
	}
	if solved, _, err = judge(""); err != nil || solved {
		return "an empty patch resolves it", err
	}
	how, err := check.Cheated(ctx, v, w.cfg.Store, t, buggy)
	if err != nil || how == "" {
		return "", err
	}
	return how + " resolves it", nil
}

// whyUnusable returns why a task cannot be used, regardless of the verifier; "" if it can.
func whyUnusable(t schemas.Task) string {
	switch {
	case strings.TrimSpace(t.GoldPatch) == "" || strings.TrimSpace(t.BugPatch) == "":
		return "its patch is empty"
	case len(t.Tests.FailToPass) == 0:
		return "no test fails"
	case len(t.Tests.PassToPass) == 0:
		return "no test passes"
	case strings.TrimSpace(t.Instructions) == "":
		return "every issue text gives something away"
	}
	return ""
}
