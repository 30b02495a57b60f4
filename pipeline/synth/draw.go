package synth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/tracesmith/tracesmith/env/mutate"
	"github.com/tracesmith/tracesmith/schemas"
)

// draw adds all candidates of a repository, except composed ones, to out.Drawn, kind by kind.
func (w *worker) draw(ctx context.Context, s *repoState, out *survey) error {
	for _, kind := range []struct {
		name string
		draw func(context.Context, *repoState, *survey) error
	}{{KindSingle, w.drawSites}, {KindCommit, w.drawCommits}, {KindModel, w.drawTargets}} {
		if !slices.Contains(w.cfg.Kinds, kind.name) {
			continue
		}
		if err := kind.draw(ctx, s, out); err != nil {
			return err
		}
	}
	return nil
}

// drawSites draws mutations of code that tests execute. The seed determines the choice.
func (w *worker) drawSites(ctx context.Context, s *repoState, out *survey) error {
	var files []mutate.File
	for _, path := range s.sources() {
		if lines := s.coverage.lines(path); len(lines) > 0 {
			files = append(files, mutate.File{Path: path, Lines: lines})
		}
	}
	list, err := w.bench.mutator.Enumerate(ctx, files)
	if err != nil {
		return err
	}
	sites := list.Sites
	if len(w.cfg.Operators) > 0 {
		if err := checkOperators(w.cfg.Operators, w.bench.mutator.Operators()); err != nil {
			return err
		}
		sites = slices.DeleteFunc(sites, func(x mutate.Site) bool { return !slices.Contains(w.cfg.Operators, x.Operator) })
	} else {
		sites = slices.DeleteFunc(sites, func(x mutate.Site) bool { return x.Obvious })
	}
	out.Sites = len(sites)
	var narrow, broad []mutate.Site
	for _, site := range sites {
		switch s.reach(site.File, site.Line, site.EndLine) {
		case reachedByHalf:
			narrow = append(narrow, site)
		case reachedByMost:
			broad = append(broad, site)
		}
	}
	n := cmp.Or(w.cfg.Candidates, math.MaxInt)
	drawn := append(mutate.Sample(narrow, len(narrow), uint64(s.seed)), mutate.Sample(broad, len(broad), uint64(s.seed))...)
	for _, site := range spread(drawn, w.cfg.Caps)[:min(n, len(drawn))] {
		out.Drawn = append(out.Drawn, singleCandidate(site))
	}
	if slices.Contains(w.cfg.Kinds, KindComposed) {
		funcs, err := w.outline(ctx, s)
		if err != nil {
			return err
		}
		out.Calls = mutate.CallsOf(funcs)
		maps.DeleteFunc(out.Calls, func(_ string, called []string) bool { return len(called) == 0 })
	}
	return nil
}

// outline lists the functions in all files that tests reach.
func (w *worker) outline(ctx context.Context, s *repoState) ([]mutate.FunctionOutline, error) {
	var out []mutate.FunctionOutline
	for _, path := range s.sources() {
		if len(s.coverage.lines(path)) == 0 {
			continue
		}
		list, err := w.bench.mutator.Outline(ctx, path)
		if _, refused := errors.AsType[*mutate.RefusedError](err); refused {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	return out, nil
}

// reach says how many of the tests that pass every time execute some lines. Code that at most half of
// them execute is drawn first, because a bug that all tests reach tends to break all of them or none.
type reach int

const (
	reachedByNone reach = iota
	reachedByHalf       // or fewer
	reachedByMost
)

// reach returns how many tests execute one of the lines from first to last.
func (s *repoState) reach(file string, first, last int) reach {
	tests, reached := s.coverage.covering(map[string][]int{file: lineRange(first, last)})
	switch {
	case !reached:
		return reachedByNone
	case tests != nil && 2*len(tests) <= len(s.kept): // nil: a line runs at import, so in all tests
		return reachedByHalf
	}
	return reachedByMost
}

// commitsPerCandidate is how many commits are inspected at most for each requested candidate.
const commitsPerCandidate = 20

// drawCommits lists the newest commits that change code.
func (w *worker) drawCommits(ctx context.Context, s *repoState, out *survey) error {
	if s.history == nil {
		out.Note = "no commit is reverted: " + s.noHistory
		if len(w.cfg.Kinds) == 1 {
			return &RepoError{Kind: ErrNoHistory, Detail: s.noHistory, Remedy: "use a clone that has its own .git directory, or request another kind of bugs"}
		}
		return nil
	}
	commits, err := mutate.CodeCommits(ctx, s.history, w.cfg.Commits, commitsPerCandidate*w.cfg.Commits, isTest)
	if err != nil {
		return err
	}
	for _, c := range commits {
		out.Drawn = append(out.Drawn, candidate{Key: KindCommit + ":" + c, Kind: KindCommit, Commit: c})
	}
	return nil
}

// openHistory opens the git history of a repository if it has one and commits are wanted.
func (w *worker) openHistory(s *repoState) {
	if !slices.Contains(w.cfg.Kinds, KindCommit) {
		return
	}
	if s.repo.History == "" {
		s.noHistory = "it has no git history"
		return
	}
	h, err := w.cfg.Store.OpenHistory(s.repo.History)
	if err != nil {
		s.noHistory = err.Error()
		return
	}
	s.history = h
}

// Limits for functions in which a model introduces bugs: long enough for a bug, short enough for a prompt.
const (
	minStatements = 2
	maxStatements = 60
)

// drawTargets draws functions that tests execute, and for each whether a model modifies or rewrites it.
// The seed determines both.
func (w *worker) drawTargets(ctx context.Context, s *repoState, out *survey) error {
	funcs, err := w.outline(ctx, s)
	if err != nil {
		return err
	}
	var narrow, broad []mutate.Target
	for _, f := range funcs {
		if f.Statements < minStatements || f.Statements > maxStatements {
			continue
		}
		isRewrite := s.drawKey("rewrite " + f.File + "::" + f.Name)[0]%2 == 0 // a coin toss
		t := mutate.Target{File: f.File, Func: f.Name, Rewrite: isRewrite}
		switch s.reach(f.File, f.Line+1, f.EndLine) { // the first line runs at import
		case reachedByHalf:
			narrow = append(narrow, t)
		case reachedByMost:
			broad = append(broad, t)
		}
	}
	for _, list := range [][]mutate.Target{narrow, broad} {
		slices.SortFunc(list, func(a, b mutate.Target) int {
			return cmp.Compare(s.drawKey("target "+a.File+"::"+a.Func), s.drawKey("target "+b.File+"::"+b.Func))
		})
	}
	all := slices.Concat(narrow, broad)
	for _, t := range all[:min(len(all), w.cfg.Functions)] {
		how := "modify"
		if t.Rewrite {
			how = "rewrite"
		}
		out.Drawn = append(out.Drawn, candidate{Key: fmt.Sprintf("%s:%s:%s:%s", KindModel, t.File, t.Func, how), Kind: KindModel, Target: &t})
	}
	return nil
}

// drawKey returns the hexadecimal hash of the seed and what. Sorting by it gives a random order that
// depends on the seed alone.
func (s *repoState) drawKey(what string) string {
	return schemas.HashBytes(fmt.Appendf(nil, "%d %s", s.seed, what))
}
