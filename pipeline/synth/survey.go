package synth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/env/tasks/check"
	"github.com/tracesmith/tracesmith/env/tasks/provenance"
	"github.com/tracesmith/tracesmith/env/tasks/taskfile"
	"github.com/tracesmith/tracesmith/env/verify"
)

// maxAlone bounds the time for running each test alone.
const maxAlone = 60 * time.Second

// survey runs the tests of the healthy repository in new sandboxes and then in the
// bench, where every kept test must have the same result.
func (w *worker) survey(ctx context.Context, s *repoState) (*survey, error) {
	out := &survey{Repo: s.repo.Task.InstanceID}
	err := w.surveyHealthy(ctx, s, out)
	if refused := repoError(err); refused != nil {
		refused.Repo = out.Repo
		return &survey{Repo: out.Repo, Refused: refused.Error()}, nil
	}
	return out, err
}

// repoError returns the error of a repository that cannot be used; nil for infrastructure failures.
func repoError(err error) *RepoError {
	if e, ok := errors.AsType[*RepoError](err); ok {
		return e
	}
	if e, ok := errors.AsType[*verify.TaskError](err); ok {
		switch {
		case errors.Is(e, verify.ErrNotCollected):
			return &RepoError{Kind: verify.ErrNotCollected, Detail: e.Detail, Remedy: e.Remedy}
		case errors.Is(e, verify.ErrNoTests):
			return &RepoError{Kind: ErrNoTests, Detail: e.Detail, Remedy: e.Remedy}
		}
		return &RepoError{Kind: ErrRed, Detail: e.Summary(), Remedy: e.Remedy}
	}
	if errors.Is(err, check.ErrTooFewTests) {
		return &RepoError{Kind: ErrNoTests, Remedy: fmt.Sprintf("a repository needs at least %d of them", check.MinKept)}
	}
	return nil
}

func (w *worker) surveyHealthy(ctx context.Context, s *repoState, out *survey) error {
	t := s.repo.Task
	for _, name := range []string{t.Repo, t.RepoSource} {
		if list := provenance.Benchmark(name); list != "" {
			return &RepoError{Kind: ErrBenchmark, Detail: fmt.Sprintf("%s is in %s", provenance.Canonical(name), list), Remedy: "take another repository"}
		}
	}
	if len(s.sources()) == 0 {
		return &RepoError{Kind: ErrNotPython, Remedy: "name the directory that holds the .py files"}
	}
	err := w.prepare(ctx, s)
	if err == nil {
		err = w.checkBenchmarks(ctx, s)
	}
	if err != nil {
		return err
	}
	suite, err := check.Base(ctx, check.Config{Driver: s.driver, Spec: s.spec, Store: w.cfg.Store, Runs: w.cfg.Runs, Seed: s.seed, Isolated: -1}, t, s.repo.Tree)
	if d := slices.IndexFunc(suite.Dropped, func(d check.Dropped) bool { return d.Why == "failed" || d.Why == "error" }); d >= 0 && errors.Is(err, check.ErrTooFewTests) {
		return &RepoError{Kind: ErrRed, Detail: fmt.Sprintf("%s %s", suite.Dropped[d].ID, suite.Dropped[d].Why), Remedy: "give a healthy repository"}
	}
	if err != nil {
		return err
	}
	out.Method, out.Kept = suite.Method, suite.Kept
	if err := w.enter(ctx, s); err != nil {
		return err
	}
	if err := w.warm(ctx, s, out); err != nil {
		return err
	}
	if out.Coverage, err = w.cover(ctx, s, out.Kept); err != nil {
		return err
	}
	s.applySurvey(out)
	return w.draw(ctx, s, out)
}

// prepare determines where and how the tests run.
func (w *worker) prepare(ctx context.Context, s *repoState) (err error) {
	if s.command, err = parseCommand(s.repo.Task.Entrypoint); err == nil {
		s.driver, s.spec, err = w.cfg.Sandbox(ctx, s.repo.Task, s.repo.Tree)
	}
	w.openHistory(s)
	return err
}

// warm runs the healthy tree's tests in the bench, as often as those of a task's bug,
// and then each test alone. It drops tests that do not pass every time.
func (w *worker) warm(ctx context.Context, s *repoState, out *survey) error {
	drop := func(bad vector) {
		out.Kept = slices.DeleteFunc(out.Kept, func(id string) bool { return bad[id] != "" })
	}
	all := len(out.Kept)
	const bound = warmBound
	for i := range max(hashSeeds, w.cfg.ReleaseRuns) {
		q := request{Only: out.Kept, Timeout: bound}
		if i > 0 {
			q.Shuffle = s.shuffle("", i)
		}
		r, err := w.bench.run(ctx, hashSeed(i), q)
		if err != nil {
			return err
		}
		if r.TimedOut || !r.whole && len(r.tests) == 0 {
			return &RepoError{Kind: ErrUnlike, Detail: verify.Cause([]byte(r.Log)), Remedy: "such a repository is not supported"}
		}
		out.Seconds = max(out.Seconds, r.Seconds)
		for _, path := range r.Left {
			if !slices.Contains(out.Litter, path) {
				out.Litter = append(out.Litter, path)
			}
		}
		drop(vectorOf(out.Kept, r))
	}
	if out.Seconds*float64(len(out.Kept)) < maxAlone.Seconds() {
		for _, id := range slices.Clone(out.Kept) {
			r, err := w.bench.run(ctx, firstSeed, request{Only: []string{id}, Timeout: bound})
			if err != nil {
				return err
			}
			drop(vectorOf([]string{id}, r))
		}
	}
	if len(out.Kept) < check.MinKept {
		return &RepoError{Kind: ErrNoTests, Detail: fmt.Sprintf("%d of %d pass in every order, alone and in forks", len(out.Kept), all), Remedy: fmt.Sprintf("a repository needs at least %d of them", check.MinKept)}
	}
	return nil
}

// applySurvey uses the result of a survey, by this run or an earlier one.
func (s *repoState) applySurvey(v *survey) {
	s.kept, s.seconds, s.litter, s.coverage, s.refused = v.Kept, v.Seconds, v.Litter, v.Coverage, v.Refused
	s.note, s.calls = v.Note, v.Calls
}

// sources returns the program's files: Python files that are not tests.
func (s *repoState) sources() []string {
	var out []string
	for _, p := range s.repo.Tree.Paths() {
		if isProgram(p) {
			out = append(out, p)
		}
	}
	return out
}

// changed returns the contents of the files that a patch changes.
func (s *repoState) changed(patch string) (map[string]string, error) {
	buggy, err := taskfile.Apply(s.repo.Tree, []byte(patch))
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, path := range touched(patch) {
		text, _, _, err := buggy.File(path)
		if err != nil {
			return nil, err
		}
		out[path] = string(text)
	}
	return out, nil
}

// touched returns the paths that a patch changes.
func touched(patch string) []string {
	var out []string
	for line := range strings.Lines(patch) {
		if path, ok := strings.CutPrefix(line, "+++ b/"); ok {
			out = append(out, strings.TrimRight(path, "\t\n"))
		}
	}
	return out
}
