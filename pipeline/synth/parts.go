package synth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/env/tasks/check"
	"github.com/tracesmith/tracesmith/env/verify"
)

// Names of survey parts, or how those names start or end.
const (
	partFirstRun   = "first run"
	partCoverage   = "coverage"
	partWholeRun   = "run "
	partAlone      = "alone "
	repeatedSuffix = ", repeated"
)

// Sizes of a survey.
const (
	wholeRuns    = 3  // minimum number of runs of all tests, besides the first run and the coverage
	repeatedRun  = 1  // index of the run that repeats the tests in the same sandbox
	aloneSeconds = 10 // the tests that run alone are divided into one more part for each 10 s of the suite
	maxAlone     = 16 // maximum number of these parts
	minAlone     = 20 // minimum number of tests in such a part
)

// firstRun runs all tests once as the verifier does.
func (w *worker) firstRun(ctx context.Context, s *repoState) (*surveyPart, error) {
	t := s.repo.Task
	p, before := &surveyPart{Repo: t.InstanceID, Name: partFirstRun}, w.cpu()
	suite, err := check.Base(ctx, check.Config{Driver: s.driver, Spec: w.sandbox(s), Store: w.cfg.Store, Runs: 1, Seed: s.seed, Isolated: -1}, t, s.repo.Tree)
	if d := slices.IndexFunc(suite.Dropped, func(d check.Dropped) bool { return d.Why == "failed" || d.Why == "error" }); d >= 0 && errors.Is(err, check.ErrTooFewTests) {
		return p, &RepoError{Kind: ErrRed, Detail: fmt.Sprintf("%s %s", suite.Dropped[d].ID, suite.Dropped[d].Why), Remedy: "use a repository whose tests pass"}
	}
	p.Method, p.Tests = suite.Method, suite.Kept
	p.Seconds, p.CPU = suite.Wall.Seconds(), w.cpu()-before
	return p, err
}

// planSurveyParts adds jobs for the parts of a survey that no earlier run has finished.
func (st *factory) planSurveyParts(s *repoState) {
	add := func(name string, tests []string, do func(context.Context, *worker, *surveyPart) error) {
		s.parts = append(s.parts, name)
		known := st.journal.part(s.repo.Task.InstanceID, name) != nil
		st.update(func(p *Progress) {
			p.SurveyRuns += len(tests)
			if known {
				p.SurveyDone += len(tests)
			}
		})
		if known {
			return
		}
		s.pending = append(s.pending, job{
			key: "the survey of " + s.repo.Task.InstanceID + ", " + name, kind: jobSurvey, units: len(tests),
			do: func(ctx context.Context, w *worker) error {
				if err := w.enter(ctx, s); err != nil {
					return err
				}
				p := &surveyPart{Repo: s.repo.Task.InstanceID, Name: name}
				before := w.cpu()
				if err := do(ctx, w, p); err != nil {
					return err
				}
				p.CPU = w.cpu() - before
				if err := w.journal.add(entry{SurveyPart: p}); err != nil {
					return err
				}
				w.update(func(p *Progress) { p.SurveyDone += len(tests) })
				return nil
			},
		})
	}
	all := s.first.Tests
	add(partCoverage, all, func(ctx context.Context, w *worker, p *surveyPart) error {
		c, r, err := w.cover(ctx, s, all)
		p.Coverage, p.Bad = &c, nonPassingOf(all, run{tests: r.Tests})
		return err
	})
	parts := slices.Collect(slices.Chunk(all, aloneSize(len(all), s.first.Seconds)))
	for i, tests := range parts {
		add(fmt.Sprintf("%s%d of %d", partAlone, i+1, len(parts)), tests, func(ctx context.Context, w *worker, p *surveyPart) error {
			return w.runAlone(ctx, s, p, tests)
		})
	}
	for i := range max(wholeRuns, st.cfg.ReleaseRuns-1) {
		name := fmt.Sprintf("%s%d", partWholeRun, i+2)
		if i == repeatedRun {
			name += repeatedSuffix
		}
		add(name, all, func(ctx context.Context, w *worker, p *surveyPart) error {
			return w.runWhole(ctx, s, p, i)
		})
	}
}

// aloneSize returns how many of the tests that run alone are in one part. Each part imports and
// collects the tests once, so a short suite is divided into few parts.
func aloneSize(tests int, seconds float64) int {
	parts := min(1+int(seconds/aloneSeconds), maxAlone)
	return max(minAlone, (tests+parts-1)/parts)
}

// runWhole runs all tests. i is the number of the run, from 0; the run with the number repeatedRun
// runs the tests twice in one sandbox.
func (w *worker) runWhole(ctx context.Context, s *repoState, p *surveyPart, i int) error {
	q := request{Only: s.first.Tests, Timeout: healthyTimeout}
	if i > 0 {
		q.Shuffle = s.shuffleSeed("", i)
	}
	if i == repeatedRun {
		q.Passes = []pass{{Only: q.Only, Shuffle: q.Shuffle}, {Only: q.Only}}
		q.setTimeout(healthyTimeout)
	}
	r, err := w.bench.run(ctx, hashSeed(i), q)
	if err != nil {
		return err
	}
	p.Seconds, p.Leftovers, p.Bad = r.Seconds, r.Leftovers, nonPassingOf(s.first.Tests, r.verdicts())
	if i == repeatedRun {
		p.Unrepeatable = unrepeatableTests(s.first.Tests, r.pass(1))
	}
	if r := r.verdicts(); r.TimedOut || !r.finished && len(r.tests) == 0 {
		p.Broken, p.Bad = verify.Cause([]byte(r.Log)), nil
	}
	return nil
}

// runAlone runs each test in its own child process, forked from an interpreter that has collected the
// tests. Tests for which no time is left count as passed.
func (w *worker) runAlone(ctx context.Context, s *repoState, p *surveyPart, tests []string) error {
	perTest := timeout(s.first.Seconds)
	budget := max(2*perTest, time.Minute.Seconds())
	q := request{Only: tests, Budget: budget, Timeout: budget + grace.Seconds()}
	for _, id := range tests {
		q.Passes = append(q.Passes, pass{Only: []string{id}, Timeout: perTest})
	}
	r, err := w.bench.run(ctx, firstSeed, q)
	if err != nil {
		return err
	}
	p.Seconds, p.Leftovers, p.Bad = r.Seconds, r.Leftovers, nonPassing{}
	for i, single := range r.passes {
		id := tests[i]
		p.Tests = append(p.Tests, id)
		if status := single.tests[id]; status == "" {
			p.Bad[id] = missing
		} else if status != "passed" {
			p.Bad[id] = status
		}
	}
	if len(r.passes) == 0 {
		p.Broken = verify.Cause([]byte(r.Log))
	}
	return nil
}

// combine fills in a survey from its parts. It drops tests that do not pass every time, and returns a
// RepoError if too few remain.
func (st *factory) combine(s *repoState, out *survey) error {
	out.Method, out.Kept, out.CPU = s.first.Method, slices.Clone(s.first.Tests), s.first.CPU
	var wholeCPU []float64
	for _, name := range s.parts {
		p := st.journal.part(out.Repo, name)
		if p.Broken != "" {
			return &RepoError{Kind: ErrUnlike, Detail: p.Broken, Remedy: "use another repository"}
		}
		out.CPU += p.CPU
		out.Unrepeatable = append(out.Unrepeatable, p.Unrepeatable...)
		if strings.HasPrefix(name, partWholeRun) && !strings.HasSuffix(name, repeatedSuffix) {
			wholeCPU = append(wholeCPU, p.CPU)
			out.Seconds = max(out.Seconds, p.Seconds)
		}
		for _, path := range p.Leftovers {
			if !slices.Contains(out.Litter, path) {
				out.Litter = append(out.Litter, path)
			}
		}
		out.Kept = slices.DeleteFunc(out.Kept, func(id string) bool { return p.Bad[id] != "" })
	}
	slices.Sort(wholeCPU)
	out.RunCPU = wholeCPU[len(wholeCPU)/2]
	slices.Sort(out.Litter)
	if len(out.Kept) < check.MinKept {
		return &RepoError{Kind: ErrNoTests, Detail: fmt.Sprintf("%d of %d pass in every order and alone", len(out.Kept), len(s.first.Tests)),
			Remedy: fmt.Sprintf("a repository needs at least %d of them", check.MinKept)}
	}
	out.Coverage = st.journal.part(out.Repo, partCoverage).Coverage.forTests(out.Kept)
	return nil
}
