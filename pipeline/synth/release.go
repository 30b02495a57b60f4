package synth

import (
	"cmp"
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
		if t.Outcome, t.Reason = r.Outcome, r.Reason; r.FailToPass != nil {
			t.FailToPass = r.FailToPass
		}
		if s.releases == nil {
			s.releases = map[string]release{}
		}
		s.releases[t.Key] = r
	})
}

// release does the final checks of a trial: more runs, the gold patch byte for byte, and
// the verifier in new sandboxes. It also writes the texts.
func (w *worker) release(ctx context.Context, s *repoState, t *Trial) (r release, err error) {
	r = release{Repo: t.Repo, Key: t.Key, Outcome: Released}
	before := w.bench.cpu
	defer func() { r.CPU += w.bench.cpu - before }()
	files, err := s.changed(t.Patch)
	if err != nil {
		return r, err
	}
	again, near := t.clone(), s.near(t)
	if err := w.rerun(ctx, s, again, files, near, w.cfg.Runs+w.cfg.ReleaseRuns-1); err != nil {
		return r, err
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
	v := verify.New(verify.Config{Driver: s.driver, Spec: s.spec, Store: w.cfg.Store})
	if again.Outcome == Valid {
		err = w.runAll(ctx, s, v, again, &r, buggy, files, near)
	}
	if r.Runs = again.Runs; err != nil || again.Outcome != Valid {
		r.Outcome, r.Reason, r.Vectors = again.Outcome, again.Reason, again.Vectors
		return r, err
	}
	r.FailToPass = again.FailToPass
	if err := w.writeTexts(ctx, s, again, &r); err != nil {
		return r, err
	}
	task := w.task(s, again, r)
	if r.Reason = whyUnusable(task); r.Reason == "" {
		verdict, _, err := v.Try(ctx, task, buggy, gold, "", verify.Variant{})
		if r.CPU += s.runCPU; err != nil {
			return r, err
		}
		if !resolved(verdict) {
			r.Reason = "the gold patch does not resolve it: " + verdict.Reason
		}
	}
	if r.Reason != "" {
		r.Outcome = Unverified
	}
	return r, nil
}

// runAll runs all tests on the buggy tree as the verifier does, which is also its run of an empty
// patch. Tests that fail without executing the changed lines, such as those that start the program
// in a process of its own, join the failing tests if they fail once more.
func (w *worker) runAll(ctx context.Context, s *repoState, v *verify.Verifier, t *Trial, r *release, buggy *workspace.Tree, files map[string]string, near []string) error {
	why, got, err := w.emptyPatch(ctx, s, v, w.task(s, t, *r), buggy, r)
	if err != nil {
		return err
	}
	if why != "" {
		t.Outcome, t.Reason = Unverified, why
		return nil
	}
	t.Runs++
	far, bad := vector{}, w.unreliable(s)
	for id, status := range got {
		if _, close := slices.BinarySearch(near, id); !close {
			if delete(got, id); !bad[id] {
				far[id] = status
			}
		}
	}
	if ok, err := w.consistent(s, t, got); err != nil || !ok || len(far) == 0 {
		return err
	}
	if len(far)+len(t.Verdicts) > w.mayFail(s) {
		t.Outcome, t.Reason = BreaksAll, fmt.Sprintf("%d of %d tests", len(far)+len(t.Verdicts), len(s.kept))
		return nil
	}
	t.Verdicts = maps.Clone(t.Verdicts)
	maps.Copy(t.Verdicts, far)
	t.FailToPass = slices.Sorted(maps.Keys(t.Verdicts))
	near = slices.Compact(slices.Sorted(slices.Values(slices.Concat(near, t.FailToPass))))
	return w.rerun(ctx, s, t, files, near, t.Runs+1)
}

// emptyPatch returns the verdicts of a run of the verifier on the unchanged buggy tree, or why the
// task cannot be used.
func (w *worker) emptyPatch(ctx context.Context, s *repoState, v *verify.Verifier, task schemas.Task, buggy *workspace.Tree, r *release) (why string, got vector, err error) {
	verdict, run, err := v.Try(ctx, task, buggy, nil, "", verify.Variant{})
	if r.CPU += s.runCPU; err != nil {
		return "", nil, err
	}
	if resolved(verdict) {
		return "an empty patch resolves it", nil, nil
	}
	if run.Finding != "" {
		return "with an empty patch: " + run.Finding, nil, nil
	}
	status, _ := run.Of(s.kept)
	got = vector{}
	for _, id := range s.kept {
		if status[id] != "passed" {
			got[id] = cmp.Or(status[id], missing)
		}
	}
	return "", got, nil
}

func resolved(v schemas.Verdict) bool { return v.Resolved != nil && *v.Resolved }

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
