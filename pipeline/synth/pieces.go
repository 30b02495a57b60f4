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

// Names of pieces.
const (
	pieceFirst    = "first run"
	pieceCoverage = "coverage"
	pieceWhole    = "run "
	pieceAlone    = "alone "
	pieceAgain    = ", repeated"
)

// Sizes of a survey.
const (
	wholeRuns    = 3  // of all tests in a bench, beside the first run and the coverage
	repeated     = 1  // the one of them that repeats the tests in the same place
	aloneSeconds = 10 // of the whole suite, for each part of the tests that run alone
	maxAlone     = 16 // parts
	minAlone     = 20 // tests in a part
)

// firstRun runs all tests once as the verifier does.
func (w *worker) firstRun(ctx context.Context, s *repoState) (*piece, error) {
	t := s.repo.Task
	p := &piece{Repo: t.InstanceID, Name: pieceFirst}
	suite, err := check.Base(ctx, check.Config{Driver: s.driver, Spec: s.spec, Store: w.cfg.Store, Runs: 1, Seed: s.seed, Isolated: -1}, t, s.repo.Tree)
	if d := slices.IndexFunc(suite.Dropped, func(d check.Dropped) bool { return d.Why == "failed" || d.Why == "error" }); d >= 0 && errors.Is(err, check.ErrTooFewTests) {
		return p, &RepoError{Kind: ErrRed, Detail: fmt.Sprintf("%s %s", suite.Dropped[d].ID, suite.Dropped[d].Why), Remedy: "give a healthy repository"}
	}
	p.Method, p.Tests = suite.Method, suite.Kept
	p.Seconds = suite.Wall.Seconds()
	return p, err
}

// planPieces adds the parts of a survey that no earlier run has finished.
func (st *factory) planPieces(s *repoState) {
	add := func(name string, tests []string, do func(context.Context, *worker, *piece) error) {
		s.pieces = append(s.pieces, name)
		known := st.journal.piece(s.repo.Task.InstanceID, name) != nil
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
				p := &piece{Repo: s.repo.Task.InstanceID, Name: name}
				before := w.bench.cpu
				if err := do(ctx, w, p); err != nil {
					return err
				}
				p.CPU = w.bench.cpu - before
				if err := w.journal.add(entry{Piece: p}); err != nil {
					return err
				}
				w.update(func(p *Progress) { p.SurveyDone += len(tests) })
				return nil
			},
		})
	}
	all := s.first.Tests
	add(pieceCoverage, all, func(ctx context.Context, w *worker, p *piece) error {
		c, r, err := w.cover(ctx, s, all)
		p.Coverage, p.Bad = &c, vectorOf(all, run{tests: r.Tests})
		return err
	})
	parts := slices.Collect(slices.Chunk(all, aloneSize(len(all), s.first.Seconds)))
	for i, tests := range parts {
		add(fmt.Sprintf("%s%d of %d", pieceAlone, i+1, len(parts)), tests, func(ctx context.Context, w *worker, p *piece) error {
			return w.runAlone(ctx, s, p, tests)
		})
	}
	for i := range max(wholeRuns, st.cfg.ReleaseRuns-1) {
		name := fmt.Sprintf("%s%d", pieceWhole, i+2)
		if i == repeated {
			name += pieceAgain
		}
		add(name, all, func(ctx context.Context, w *worker, p *piece) error {
			return w.runWhole(ctx, s, p, i)
		})
	}
}

// aloneSize returns how many tests make a part that runs alone. Every part imports and collects the
// tests once, so that short suites have few parts.
func aloneSize(tests int, seconds float64) int {
	parts := min(1+int(seconds/aloneSeconds), maxAlone)
	return max(minAlone, (tests+parts-1)/parts)
}

// runWhole runs all tests; i counts these runs. The second of them runs the tests twice in one place.
func (w *worker) runWhole(ctx context.Context, s *repoState, p *piece, i int) error {
	q := request{Only: s.first.Tests, Timeout: warmBound}
	if i > 0 {
		q.Shuffle = s.shuffle("", i)
	}
	if i == repeated {
		q.Passes = []pass{{Only: q.Only, Shuffle: q.Shuffle}, {Only: q.Only}}
		q.limit(warmBound)
	}
	r, err := w.bench.run(ctx, hashSeed(i), q)
	if err != nil {
		return err
	}
	p.Seconds, p.Left, p.Bad = r.Seconds, r.Left, vectorOf(s.first.Tests, r.verdicts())
	if i == repeated {
		p.Once = onlyOnce(s.first.Tests, r.pass(1))
	}
	if r := r.verdicts(); r.TimedOut || !r.whole && len(r.tests) == 0 {
		p.Broken, p.Bad = verify.Cause([]byte(r.Log)), nil
	}
	return nil
}

// runAlone runs each test in a child that is forked from an interpreter which has collected the
// tests. Tests for which there is no time count as passed.
func (w *worker) runAlone(ctx context.Context, s *repoState, p *piece, tests []string) error {
	each := timeout(s.first.Seconds)
	budget := max(2*each, time.Minute.Seconds())
	q := request{Only: tests, Budget: budget, Timeout: budget + grace.Seconds()}
	for _, id := range tests {
		q.Passes = append(q.Passes, pass{Only: []string{id}, Timeout: each})
	}
	r, err := w.bench.run(ctx, firstSeed, q)
	if err != nil {
		return err
	}
	p.Seconds, p.Left, p.Bad = r.Seconds, r.Left, vector{}
	for i, one := range r.passes {
		id := tests[i]
		p.Tests = append(p.Tests, id)
		if status := one.tests[id]; status == "" {
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

// combine makes a survey of its pieces: it drops tests that do not pass every time.
func (st *factory) combine(s *repoState, out *survey) error {
	out.Method, out.Kept = s.first.Method, slices.Clone(s.first.Tests)
	var whole []float64
	for _, name := range s.pieces {
		p := st.journal.piece(out.Repo, name)
		if p.Broken != "" {
			return &RepoError{Kind: ErrUnlike, Detail: p.Broken, Remedy: "such a repository is not supported"}
		}
		out.CPU += p.CPU
		out.Once = append(out.Once, p.Once...)
		if strings.HasPrefix(name, pieceWhole) && !strings.HasSuffix(name, pieceAgain) {
			whole = append(whole, p.CPU)
			out.Seconds = max(out.Seconds, p.Seconds)
		}
		for _, path := range p.Left {
			if !slices.Contains(out.Litter, path) {
				out.Litter = append(out.Litter, path)
			}
		}
		out.Kept = slices.DeleteFunc(out.Kept, func(id string) bool { return p.Bad[id] != "" })
	}
	slices.Sort(whole)
	out.RunCPU = whole[len(whole)/2]
	out.CPU += out.RunCPU // the first run, whose CPU time the verifier does not measure
	slices.Sort(out.Litter)
	if len(out.Kept) < check.MinKept {
		return &RepoError{Kind: ErrNoTests, Detail: fmt.Sprintf("%d of %d pass in every order and alone", len(out.Kept), len(s.first.Tests)),
			Remedy: fmt.Sprintf("a repository needs at least %d of them", check.MinKept)}
	}
	out.Coverage = st.journal.piece(out.Repo, pieceCoverage).Coverage.of(out.Kept)
	return nil
}
