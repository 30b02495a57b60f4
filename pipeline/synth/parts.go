package synth

import (
	"cmp"
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

// comparesTimes is the status of a test that passes, but compares times.
const comparesTimes = "compares times"

// Sizes of a survey.
const (
	wholeRuns    = 2  // minimum number of runs of all tests, besides the first run and the coverage
	repeatedRun  = 0  // index of the run that repeats the tests in the same sandbox
	oppositeRun  = 1  // index of the run whose order is the opposite of that of the repeated run
	aloneSeconds = 10 // the tests that run alone are divided into one more part for each 10 s of CPU time of the suite
	maxAlone     = 16 // maximum number of these parts
	minAlone     = 20 // minimum number of groups in such a part
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
	s.healthy.recording = suite.Recording
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
	groups := aloneGroups(all)
	parts := slices.Collect(slices.Chunk(groups, aloneSize(len(groups), cmp.Or(s.first.CPU, s.first.Seconds))))
	for i, groups := range parts {
		add(fmt.Sprintf("%s%d of %d", partAlone, i+1, len(parts)), slices.Concat(groups...), func(ctx context.Context, w *worker, p *surveyPart) error {
			return w.runAlone(ctx, s, p, groups)
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

// aloneGroups divides tests into groups: each has at most one test of each class, or of each module for
// tests outside of classes. The tests of a group share a process, because a process for each test would
// cost several times as much as the test. Each test is the first one of its class there. That it does not
// depend on other classes is what the runs in two opposite orders show.
func aloneGroups(tests []string) (groups [][]string) {
	seen := map[string]int{}
	for _, id := range tests {
		unit := unitOf(id)
		if seen[unit] == len(groups) {
			groups = append(groups, nil)
		}
		groups[seen[unit]] = append(groups[seen[unit]], id)
		seen[unit]++
	}
	return groups
}

// unitOf returns the class of a test, or its module if it has none. The ID is one of pytest, such as
// "path::Class::test[parameters]", or of unittest, such as "module.Class.test".
func unitOf(id string) string {
	separator := "::"
	if !strings.Contains(id, separator) {
		separator = "."
	}
	name, _, _ := strings.Cut(id, "[")
	return name[:max(strings.LastIndex(name, separator), 0)]
}

// aloneSize returns how many groups of tests are in one part. Each part imports and collects the tests
// once, so a short suite is divided into few parts.
func aloneSize(groups int, seconds float64) int {
	parts := min(1+int(seconds/aloneSeconds), maxAlone)
	return max(minAlone, (groups+parts-1)/parts)
}

// runWhole runs all tests in a random order. i is the number of the run, from 0. The repeated run then
// runs the tests again in the same sandbox, in their usual order. The opposite run has the opposite order
// of the repeated run, so that of any two tests each runs before the other once. It also finds the tests that compare
// times, whose results depend on how busy the machine is.
func (w *worker) runWhole(ctx context.Context, s *repoState, p *surveyPart, i int) error {
	q := request{Only: s.first.Tests, Shuffle: s.shuffleSeed("", i), Timeout: healthyTimeout}
	if i == oppositeRun {
		q.Shuffle, q.Clocks = -s.shuffleSeed("", repeatedRun), true
	}
	if i == repeatedRun {
		q.Passes = []pass{{Only: q.Only, Shuffle: q.Shuffle}, {Only: q.Only}}
		q.setTimeout(healthyTimeout, 0)
	}
	r, err := w.bench.run(ctx, hashSeed(i+1), q)
	if err != nil {
		return err
	}
	p.Seconds, p.Leftovers, p.Bad = r.Seconds, r.Leftovers, nonPassingOf(s.first.Tests, r.verdicts())
	for _, id := range r.clocks {
		p.Bad[id] = comparesTimes
	}
	if i == repeatedRun {
		p.Unrepeatable = unrepeatableTests(s.first.Tests, r.pass(1))
	}
	if r := r.verdicts(); r.TimedOut || !r.finished && len(r.tests) == 0 {
		p.Broken, p.Bad = verify.Cause([]byte(r.Log)), nil
	}
	return nil
}

// runAlone runs each group of tests in its own child process, forked from an interpreter that has
// collected the tests. A test that did not run, because another one of its group ended the process, then
// runs by itself. Tests for which no time is left count as passed.
func (w *worker) runAlone(ctx context.Context, s *repoState, p *surveyPart, groups [][]string) error {
	p.Bad = nonPassing{}
	skipped, err := w.runGroups(ctx, s, p, groups)
	if err == nil && len(skipped) > 0 {
		skipped, err = w.runGroups(ctx, s, p, slices.Collect(slices.Chunk(skipped, 1)))
	}
	for _, id := range skipped {
		p.Bad[id], p.Tests = missing, append(p.Tests, id)
	}
	return err
}

// runGroups runs each group of tests in its own child process, and returns the tests that did not run
// although their group did.
func (w *worker) runGroups(ctx context.Context, s *repoState, p *surveyPart, groups [][]string) (skipped []string, err error) {
	perGroup := timeout(s.first.Seconds)
	budget := max(2*perGroup, time.Minute.Seconds())
	q := request{Only: slices.Concat(groups...), Budget: budget, Timeout: budget + grace.Seconds()}
	for _, tests := range groups {
		q.Passes = append(q.Passes, pass{Only: tests, Timeout: perGroup})
	}
	r, err := w.bench.run(ctx, firstSeed, q)
	if err != nil {
		return nil, err
	}
	p.Seconds = max(p.Seconds, r.Seconds)
	p.Leftovers = append(p.Leftovers, r.Leftovers...)
	for i, group := range r.passes {
		for _, id := range groups[i] {
			status, ran := group.tests[id]
			if !ran {
				skipped = append(skipped, id)
				continue
			}
			if p.Tests = append(p.Tests, id); status != "passed" {
				p.Bad[id] = status
			}
		}
	}
	if len(r.passes) == 0 {
		p.Broken = verify.Cause([]byte(r.Log))
	}
	return skipped, nil
}

// combine fills in a survey from its parts. It drops tests that do not pass every time, and returns a
// RepoError if too few remain.
func (st *factory) combine(s *repoState, out *survey) error {
	out.NotAlone = len(s.first.Tests)
	out.Method, out.Kept, out.CPU = s.first.Method, slices.Clone(s.first.Tests), s.first.CPU
	var wholeCPU []float64
	for _, name := range s.parts {
		p := st.journal.part(out.Repo, name)
		if p.Broken != "" {
			return &RepoError{Kind: ErrNoResults, Detail: p.Broken, Remedy: "use another repository"}
		}
		out.CPU += p.CPU
		if strings.HasPrefix(name, partAlone) {
			out.NotAlone -= len(p.Tests)
		}
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
