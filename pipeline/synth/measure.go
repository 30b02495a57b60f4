package synth

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/trace"
	"github.com/tracesmith/tracesmith/env/verify"
	"github.com/tracesmith/tracesmith/schemas"
)

// observer runs a repository's tests in a worker's bench for env/trace.
type observer struct {
	w     *worker
	s     *repoState
	known evidence // runs of the buggy tree that need not be repeated
	count int      // traces of the healthy tree returned so far
}

var _ trace.Runner = (*observer)(nil)

// Observe implements trace.Runner. It ignores the task and the tree, which are those of the
// repository.
func (o *observer) Observe(ctx context.Context, _ schemas.Task, _ env.Tree, patch []byte, how verify.Variant) (verify.Run, error) {
	if isFirst := how.Probe != nil && isFirstStepsRun(how); isFirst && len(patch) == 0 {
		r, err := o.s.healthySteps(ctx, o.w, how.Only[0], o.count)
		o.count++
		return o.result(r), err
	} else if isFirst && how.Only[0] == o.known.test && len(o.known.steps) > 0 {
		r := o.known.steps[0]
		o.known.steps = o.known.steps[1:]
		return o.result(r), nil
	}
	q := request{Only: how.Only, Shuffle: how.Shuffle, Timeout: healthyTimeout}
	if how.Timeout > 0 {
		q.Timeout = how.Timeout.Seconds()
	}
	if how.Probe != nil {
		q.Probe = probeOf(how.Probe)
	}
	var err error
	if len(patch) > 0 {
		if q.Files, err = o.s.changedFiles(string(patch)); err != nil {
			return verify.Run{}, err
		}
	}
	r, err := o.w.bench.run(ctx, cmp.Or(how.HashSeed, firstSeed), q)
	if err != nil {
		return verify.Run{}, err
	}
	return o.result(r), nil
}

// result converts a run of the bench for env/trace.
func (o *observer) result(r run) verify.Run {
	out := verify.Run{
		Result: env.Result{Output: []byte(r.Log), Total: int64(len(r.Log)), ExitCode: r.code, TimedOut: r.TimedOut},
		Method: o.s.command.runner, Tests: r.tests, Uncollected: r.uncollected, Probe: r.probe,
	}
	if r.TimedOut || !r.finished {
		out.Finding = "the tests did not finish"
	}
	return out
}

// cover returns the lines that each test executes, and the run.
func (w *worker) cover(ctx context.Context, s *repoState, kept []string) (coverage, verify.Run, error) {
	found, run, err := trace.Cover(ctx, &observer{w: w, s: s}, s.repo.Task, s.repo.Tree, nil, verify.Variant{Only: kept})
	if err != nil {
		return coverage{}, run, err
	}
	compact := func(lines trace.Lines) map[string]string {
		out := map[string]string{}
		for file, numbers := range lines {
			if !isTest(file) {
				out[file] = formatSpans(numbers)
			}
		}
		return out
	}
	c := coverage{Import: compact(found.Outside), Tests: map[string]map[string]string{}}
	for id, lines := range found.Tests {
		c.Tests[id] = compact(lines)
	}
	return c, run, nil
}

// measure fills in the difficulty of a trial. It rejects a trial whose failing test
// executes the same lines with the same values with and without the bug.
func (w *worker) measure(ctx context.Context, s *repoState, t *Trial, files map[string]string, seen evidence) error {
	d := &t.Difficulty
	d.GoldEdits, d.GoldFiles = new(max(len(t.Operators), 1)), new(len(files))
	d.RepoFiles, d.RepoLines = s.size()
	test := t.tracedTest()
	if len(t.Failures) > 0 {
		t.measureTraceback(t.Failures[0])
	}
	if len(t.Funcs) > 0 {
		file, name, _ := strings.Cut(t.Funcs[0], "::")
		f, err := s.factsOf(ctx, w, file, name)
		if err != nil {
			return err
		}
		if f.cyclomatic > 0 {
			d.GoldCyclomatic, d.GoldCentrality, d.GoldFunctionLines = new(f.cyclomatic), new(f.callers), new(f.lines)
		}
	}
	pair, err := trace.Compare(ctx, &observer{w: w, s: s, known: seen}, s.repo.Task, s.repo.Tree, []byte(t.Patch), nil, test)
	if err != nil && !errors.Is(err, trace.ErrNoTrace) {
		return err
	}
	if err == nil && pair.FirstDivergence == nil && !pair.Cut && !pair.Unstable {
		t.Outcome, t.Reason = NoDivergence, test
		return nil
	}
	if pair.FirstDivergence != nil {
		names := ""
		for _, v := range pair.FirstDivergence.Vars {
			names += " " + v.Name
		}
		t.Divergence = fmt.Sprintf("%s:%d%s", pair.FirstDivergence.File, pair.FirstDivergence.Line, names)
		d.GoldSymptomDistance = new(pair.EventDistance + pair.FrameDistance)
	}
	if err == nil {
		t.measurePath(pair)
	}
	err = w.rank(ctx, s, t, pair.FirstDivergence, seen.coverage)
	if errors.Is(err, trace.ErrNoTrace) {
		return nil // the rank is unknown, so there is no level
	}
	if err != nil {
		return err
	}
	d.GoldLevel = goldLevel(*d, t.crossesFiles())
	return nil
}

// rank computes the rank of the changed lines among all lines, by how strongly executing
// a line correlates with failing (Ochiai). If no changed line runs, for example because
// the compiler removed `if False:`, it uses the line of the first divergence. It assumes
// that tests without a measurement, such as those that pass, execute the same lines as in the
// healthy tree.
func (w *worker) rank(ctx context.Context, s *repoState, t *Trial, d0 *trace.Divergence, known *trace.Coverage) error {
	if known == nil {
		c, _, err := trace.Cover(ctx, &observer{w: w, s: s}, s.repo.Task, s.repo.Tree, []byte(t.Patch), verify.Variant{Only: t.FailToPass[:min(len(t.FailToPass), maxCovered)]})
		if err != nil {
			return err
		}
		known = &c
	}
	all := *known
	old, err := trace.OldLines([]byte(t.Patch))
	if err != nil {
		return err
	}
	failing := func(id string) bool { _, fails := slices.BinarySearch(t.FailToPass, id); return fails }
	lines := suspects(all, failing)
	for _, id := range s.kept {
		if _, measured := all.Tests[id]; !measured || !failing(id) {
			all.Tests[id] = s.coverage.linesOfTest(id, lines, old)
		}
	}
	for _, suspect := range all.Ochiai(failing, func(file string) bool { return !isTest(file) }) {
		if slices.Contains(t.Lines[suspect.File], suspect.Line) {
			t.Difficulty.GoldOchiaiRank = new(suspect.Rank)
			return nil
		}
		if d0 != nil && d0.File == suspect.File && d0.Line == suspect.Line {
			t.Difficulty.GoldOchiaiRank = new(suspect.Rank)
		}
	}
	return nil
}

// suspects returns the program's lines that failing tests execute.
func suspects(c trace.Coverage, failing func(id string) bool) trace.Lines {
	out := trace.Lines{}
	for id, files := range c.Tests {
		if !failing(id) {
			continue
		}
		for file, lines := range files {
			if !isTest(file) {
				out[file] = append(out[file], lines...)
			}
		}
	}
	for file, lines := range out {
		slices.Sort(lines)
		out[file] = slices.Compact(lines)
	}
	return out
}

// crossesFiles reports whether the symptom is in another file than the bug.
func (t *Trial) crossesFiles() bool {
	if len(t.Failures) == 0 {
		return false
	}
	last := ""
	for _, frame := range t.Failures[0].Frames {
		if !isTest(frame.File) {
			last = frame.File
		}
	}
	return last != "" && t.Lines[last] == nil
}

// goldLevel returns the difficulty for someone who knows the fix: T0 if the traceback shows
// a changed line and that line ranks first, T1 to T3 by the rank of the changed lines, T4 if
// failing tests do not execute them. A symptom in another file is at least T3.
func goldLevel(d schemas.Difficulty, crossesFiles bool) string {
	rank := d.GoldOchiaiRank
	switch {
	case rank == nil:
		return "T4"
	case crossesFiles || *rank > 10:
		return "T3"
	case *rank > 3:
		return "T2"
	case *rank <= 1 && d.GoldVisible != nil && *d.GoldVisible == seenRoot:
		return "T0"
	}
	return "T1"
}

// measureTraceback fills in the measurements that come from the traceback of the first failure.
func (t *Trial) measureTraceback(f Failure) {
	shown := map[string]bool{}
	for _, frame := range f.Frames {
		if !isTest(frame.File) {
			shown[frame.File+"::"+strings.ReplaceAll(frame.Function, ".<locals>", "")] = true
		}
	}
	changed := slices.ContainsFunc(t.Funcs, func(fn string) bool { return shown[fn] })
	d := &t.Difficulty
	d.TracebackFunctions, d.GoldVisible, d.GoldFunctionShown = new(len(shown)), new(visible(f, t.Lines)), &changed
}

// measurePath fills in how much of the program the failing test executes, and the level.
func (t *Trial) measurePath(pair trace.Pair) {
	functions, files := map[string]bool{}, map[string]bool{}
	for _, place := range pair.Executed {
		if file, name, _ := strings.Cut(place, ":"); !isTest(file) && name != "<module>" {
			functions[place], files[file] = true, true
		}
	}
	d := &t.Difficulty
	d.ExecutedFunctions, d.ExecutedFiles, d.TraceLen = new(len(functions)), new(len(files)), new(pair.Length)
	if d.TracebackFunctions != nil && !pair.Cut {
		d.Level = schemas.LevelOf(len(functions), *d.TracebackFunctions)
	}
}

// size returns the number of the program's Python files and of their lines.
func (s *repoState) size() (files, lines *int) {
	list := s.sources()
	total := 0
	for _, path := range list {
		if text, _, link, err := s.repo.Tree.File(path); err == nil && !link {
			total += bytes.Count(text, []byte("\n"))
		}
	}
	return new(len(list)), new(total)
}
