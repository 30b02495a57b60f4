package synth

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/env/mutate"
	"github.com/tracesmith/tracesmith/internal/suite"
)

func TestTasksAreSharedEvenly(t *testing.T) {
	for _, c := range []struct {
		n            int
		limits, want []int
	}{
		{10, []int{100, 100}, []int{5, 5}},
		{10, []int{2, 100, 100}, []int{2, 4, 4}},
		{10, []int{100, 0, 3}, []int{7, 0, 3}},
		{10, []int{1, 2}, []int{1, 2}},
		{1, []int{5, 5, 5}, []int{1, 0, 0}},
		{0, []int{5}, []int{0}},
		{3, nil, []int{}},
	} {
		if diff := cmp.Diff(c.want, shares(c.n, c.limits)); diff != "" {
			t.Errorf("%d tasks among repositories with the limits %v: %s", c.n, c.limits, diff)
		}
	}
}

// A round leaves out candidates that a cap would exclude, and keeps them for a round in which it does not.
func TestRoundsTryOnlyWhatCapsAdmit(t *testing.T) {
	site := func(id, function string, line int) mutate.Site {
		return mutate.Site{ID: id, File: "m.py", Func: function, Line: line, Operator: "r1"}
	}
	sites := []mutate.Site{site("a", "f", 1), site("b", "f", 1), site("c", "f", 2), site("d", "f", 1), site("e", "g", 7)}
	s := &repoState{tried: map[string]bool{}}
	for _, x := range spread(sites, Caps{Line: 1}) {
		s.drawn = append(s.drawn, singleCandidate(x))
	}
	ids := func(list []candidate) (out string) {
		for _, c := range list {
			out += c.Sites[0].ID
		}
		return out
	}
	if got := ids(s.drawn); got != "acebd" {
		t.Errorf("drawn in the order %s, want the first site of each line first", got)
	}
	caps := Caps{Line: 1, Operator: 2}
	if got := ids(s.untried(nil, caps)); got != "ace" {
		t.Errorf("the first round tries %s, want one site of each line", got)
	}
	for _, c := range s.drawn[:3] {
		s.tried[c.Key] = true
	}
	found := []*Trial{{Operators: []string{"r1"}, Funcs: []string{"m.py::f"}, Sites: []string{"m.py:2"}}}
	if got := ids(s.untried(found, caps)); got != "b" {
		t.Errorf("with a bug in line 2, the next round tries %s, want another site of line 1", got)
	}
	found = append(found, &Trial{Operators: []string{"r1"}, Funcs: []string{"m.py::f"}, Sites: []string{"m.py:1"}})
	if got := ids(s.untried(found, caps)); got != "" {
		t.Errorf("with a bug in each line, the next round tries %s", got)
	}
}

// With Config.Tasks, the trials end early. The tasks are the same with any number of workers and
// after an interruption.
func TestFactoryStopsAtNumberOfTasks(t *testing.T) {
	suite.Factory.Require(t)
	dir := t.TempDir()
	config := func(out string) Config {
		cfg := configOf(t, filepath.Join(dir, out), bankOfUnittest(t), healthy(t, "slots", "PYTHONPATH=src python -m unittest -q", slotted))
		cfg.Kinds, cfg.Candidates, cfg.Tasks, cfg.ReleaseRuns = []string{KindSingle}, 0, 4, 2
		return cfg
	}
	one := config("one")
	one.Workers = 1
	sum, err := Run(t.Context(), one)
	if err != nil {
		t.Fatal(err)
	}
	if sum.Tasks < 4 || sum.Tasks > 5 || sum.Candidates > 30 {
		t.Errorf("%d tasks from %d candidates, want about 4 tasks", sum.Tasks, sum.Candidates)
	}
	three := config("three")
	three.Workers = 3
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	three.Progress = func(p Progress) {
		if p.Judged >= 3 {
			stop()
		}
	}
	if _, err := Run(ctx, three); !errors.Is(err, context.Canceled) {
		t.Fatalf("a canceled run returned %v", err)
	}
	three.Progress = nil
	if _, err := Run(t.Context(), three); err != nil {
		t.Fatal(err)
	}
	read := func(out string) string {
		text, err := os.ReadFile(filepath.Join(dir, out, TasksName))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if diff := cmp.Diff(read("one"), read("three")); diff != "" {
		t.Error(diff)
	}
}

// If the repositories do not have enough bugs, the run tries all candidates.
func TestFactoryEndsWithoutEnoughBugs(t *testing.T) {
	suite.Factory.Require(t)
	t.Parallel()
	cfg := configOf(t, filepath.Join(t.TempDir(), "out"), bankOfUnittest(t))
	cfg.Kinds, cfg.Operators, cfg.Candidates, cfg.Tasks, cfg.ReleaseRuns = []string{KindSingle}, []string{"r1"}, 0, 1000, 2
	sum, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	all := cfg
	all.Out, all.Tasks = filepath.Join(t.TempDir(), "all"), 0
	want, err := Run(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	if sum.Tasks == 0 || sum.Tasks != want.Tasks || sum.Candidates != want.Candidates {
		t.Errorf("%d tasks from %d candidates, want %d from %d", sum.Tasks, sum.Candidates, want.Tasks, want.Candidates)
	}
}

// A run resumes with fewer or more tasks, and then makes the tasks of a run that had this number from the start.
func TestFactoryResumesWithOtherNumberOfTasks(t *testing.T) {
	suite.Factory.Require(t)
	t.Parallel()
	dir := t.TempDir()
	run := func(out string, tasks int) (Summary, string) {
		cfg := configOf(t, filepath.Join(dir, out), bankOfUnittest(t))
		cfg.Kinds, cfg.Candidates, cfg.Tasks, cfg.ReleaseRuns = []string{KindSingle}, 0, tasks, 2
		sum, err := Run(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, out, TasksName))
		if err != nil {
			t.Fatal(err)
		}
		return sum, string(text)
	}
	few, fewTasks := run("few", 2)
	many, manyTasks := run("many", 6)
	if few.Tasks >= many.Tasks {
		t.Fatalf("%d tasks and %d tasks", few.Tasks, many.Tasks)
	}
	lowered, loweredTasks := run("many", 2)
	if diff := cmp.Diff(fewTasks, loweredTasks); diff != "" || lowered.Resumed != lowered.Candidates {
		t.Errorf("fewer tasks: %d of %d candidates were judged again: %s", lowered.Candidates-lowered.Resumed, lowered.Candidates, diff)
	}
	if lowered.SuiteRuns.Trials < many.SuiteRuns.Trials-1e-6 { // the order of the sum differs
		t.Errorf("the CPU time of the trials fell from %v to %v runs", many.SuiteRuns.Trials, lowered.SuiteRuns.Trials)
	}
	raised, raisedTasks := run("few", 6)
	if diff := cmp.Diff(manyTasks, raisedTasks); diff != "" || raised.Resumed != few.Candidates {
		t.Errorf("more tasks: %d of %d candidates were resumed: %s", raised.Resumed, few.Candidates, diff)
	}
}
