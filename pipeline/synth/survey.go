package synth

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tracesmith/tracesmith/env/tasks/check"
	"github.com/tracesmith/tracesmith/env/tasks/provenance"
	"github.com/tracesmith/tracesmith/env/tasks/taskfile"
	"github.com/tracesmith/tracesmith/env/verify"
)

// begin starts the survey of a repository with a first run of the tests. If an earlier run of the
// factory finished the survey, it uses that.
func (s *repoState) begin(ctx context.Context, w *worker) error {
	name := s.repo.Task.InstanceID
	found := w.journal.survey(name)
	err := error(nil)
	switch {
	case found != nil && found.Refused != "":
	case found != nil:
		err = w.prepare(ctx, s)
		if p := w.journal.part(name, partCoverage); p != nil && p.Coverage != nil {
			found.Coverage = p.Coverage.forTests(found.Kept)
		}
	default:
		found, err = w.refusal(s, w.beginSurvey(ctx, s))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if found != nil {
		w.useSurvey(s, found)
	}
	return nil
}

// refusal writes to the journal that a repository cannot be used. It returns err if err does not mean
// that.
func (w *worker) refusal(s *repoState, err error) (*survey, error) {
	refused := repoError(err)
	if refused == nil {
		return nil, err
	}
	refused.Repo = s.repo.Task.InstanceID
	found := &survey{Repo: refused.Repo, Refused: refused.Error()}
	return found, w.journal.add(entry{Repo: found})
}

// useSurvey applies a finished survey to the state of a repository.
func (w *worker) useSurvey(s *repoState, found *survey) {
	s.applySurvey(found)
	s.drawn, s.surveyed = found.Drawn, true
	w.update(func(p *Progress) { p.Surveyed++ })
}

// planDraw adds the job that ends a survey: it combines the parts and draws the candidates.
func (st *factory) planDraw(s *repoState) {
	s.pending = append(s.pending, job{key: "the candidates of " + s.repo.Task.InstanceID, do: func(ctx context.Context, w *worker) error {
		found := &survey{Repo: s.repo.Task.InstanceID}
		err := st.combine(s, found)
		if err == nil {
			err = w.enter(ctx, s)
		}
		if err == nil {
			s.applySurvey(found)
			err = w.draw(ctx, s, found)
			found.Operators = map[string]string{}
			for _, op := range w.bench.mutator.Operators() {
				found.Operators[op.ID] = op.Title
			}
		}
		if err != nil {
			if found, err = w.refusal(s, err); err != nil {
				return err
			}
		} else if err := w.journal.add(entry{Repo: found}); err != nil {
			return err
		}
		w.useSurvey(s, found)
		return nil
	}})
}

// repoError returns err as a RepoError if it means that a repository cannot be used, and nil if err
// is an infrastructure failure.
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

// beginSurvey checks that a repository can be used and runs its tests once.
func (w *worker) beginSurvey(ctx context.Context, s *repoState) error {
	t := s.repo.Task
	for _, name := range []string{t.Repo, t.RepoSource} {
		if list := provenance.Benchmark(name); list != "" {
			return &RepoError{Kind: ErrBenchmark, Detail: fmt.Sprintf("%s is in %s", provenance.Canonical(name), list), Remedy: "use another repository"}
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
	first := w.journal.part(t.InstanceID, partFirstRun)
	if first == nil {
		if first, err = w.firstRun(ctx, s); err != nil {
			return err
		}
		if err := w.journal.add(entry{SurveyPart: first}); err != nil {
			return err
		}
	}
	s.first = first
	w.recordPace(jobSurvey, len(first.Tests), first.Seconds)
	return nil
}

// prepare determines the command and the sandbox of a repository's tests, and opens its history.
func (w *worker) prepare(ctx context.Context, s *repoState) (err error) {
	if s.command, err = parseCommand(s.repo.Task.Entrypoint); err == nil {
		s.driver, s.spec, err = w.cfg.Sandbox(ctx, s.repo.Task, s.repo.Tree)
	}
	w.openHistory(s)
	return err
}

// applySurvey copies the results of a survey, by this run or an earlier one, to the state.
func (s *repoState) applySurvey(v *survey) {
	s.kept, s.seconds, s.litter, s.coverage, s.refused = v.Kept, v.Seconds, v.Litter, v.Coverage, v.Refused
	s.operators, s.notAlone = v.Operators, v.NotAlone
	s.unrepeatable = map[string]bool{}
	for _, id := range v.Unrepeatable {
		s.unrepeatable[id] = true
	}
	s.note, s.calls, s.cpu, s.runCPU = v.Note, v.Calls, v.CPU, v.RunCPU
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

// changedFiles returns the files that a patch to the healthy tree changes, as path -> new content.
func (s *repoState) changedFiles(patch string) (map[string]string, error) {
	buggy, err := taskfile.Apply(s.repo.Tree, []byte(patch))
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, path := range changedPaths(patch) {
		text, _, _, err := buggy.File(path)
		if err != nil {
			return nil, err
		}
		out[path] = string(text)
	}
	return out, nil
}

// changedPaths returns the paths that a patch changes.
func changedPaths(patch string) []string {
	var out []string
	for line := range strings.Lines(patch) {
		if path, ok := strings.CutPrefix(line, "+++ b/"); ok {
			out = append(out, strings.TrimRight(path, "\t\n"))
		}
	}
	return out
}
