package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/verify"
	"github.com/tracesmith/tracesmith/schemas"
)

// MinKept is the number of tests that a repository must have that pass in all runs.
const MinKept = 5

// ErrTooFewTests is the error for a repository with fewer than MinKept tests that always pass.
var ErrTooFewTests = errors.New("too few tests that always pass")

// Suite describes the tests of a repository without bugs.
type Suite struct {
	Method  string             `json:"method"`
	Kept    []string           `json:"kept"`    // tests that pass in all runs, sorted
	Dropped []Dropped          `json:"dropped"` // the others, sorted by id
	Seconds map[string]float64 `json:"seconds"` // median duration of each kept test's function, if known
	Wall    time.Duration      `json:"wall_ns"` // duration of the longest run
	Runs    int                `json:"runs"`
	// Isolated is the number of tests that were also run alone; 0 if that would take too long.
	Isolated int `json:"isolated,omitempty"`
	// Recording is the first run, in the usual order.
	Recording *verify.Recording `json:"-"`
}

// Dropped is a test that verification does not use.
type Dropped struct {
	ID  string `json:"id"`
	Why string `json:"why"` // flaky, failed, error, skipped, xfailed, xpassed, order-dependent
}

// Base runs the tests of a repository without bugs Runs times, each time with another hash seed and in another order.
// It also runs each kept test alone, if that is cheap. It uses only Entrypoint, Workdir, Python, Image and Setup of the
// task. The error for an unusable repository is a *verify.TaskError or ErrTooFewTests. Other errors mean that the check
// itself failed.
func Base(ctx context.Context, cfg Config, t schemas.Task, tree env.Tree) (Suite, error) {
	cfg = cfg.withDefaults()
	v := cfg.verifier()
	var s Suite
	counts := map[string]map[string]int{} // id -> status -> runs
	seconds := map[string][]float64{}
	for s.Runs < cfg.Runs {
		var run verify.Run
		var err error
		if s.Runs > 0 {
			run, err = v.Observe(ctx, t, tree, nil, variant(cfg.Seed, s.Runs))
		} else if s.Recording, err = v.Record(ctx, t, tree); err == nil {
			run = s.Recording.Run()
		}
		if err != nil {
			return s, err
		}
		if err := checkRun(ctx, cfg, t, tree, run); err != nil {
			return s, err
		}
		s.Runs++
		s.Method, s.Wall = run.Method, max(s.Wall, run.Wall)
		for id, status := range run.Tests {
			if counts[id] == nil {
				counts[id] = map[string]int{}
			}
			counts[id][status]++
			if sec, known := run.Seconds[id]; known {
				seconds[id] = append(seconds[id], sec)
			}
		}
	}
	s.classify(counts, seconds)
	if err := s.dropOrderDependent(ctx, cfg, v, t, tree); err != nil {
		return s, err
	}
	if len(s.Kept) < MinKept {
		return s, fmt.Errorf("the repository of %s has %d of the %d tests that are needed: %w", t.InstanceID, len(s.Kept), MinKept, ErrTooFewTests)
	}
	return s, nil
}

// checkRun returns an error if the results of a run cannot be used.
func checkRun(ctx context.Context, cfg Config, t schemas.Task, tree env.Tree, run verify.Run) error {
	fail := func(kind error, detail, remedy string) error {
		return &verify.TaskError{Instance: t.InstanceID, Kind: kind, Detail: detail, Remedy: remedy}
	}
	switch {
	case run.TimedOut:
		return fail(verify.ErrTooSlow, "", "make the entrypoint run fewer tests, or raise the timeout")
	case run.Finding != "" && !run.NoTestsStarted:
		return fail(verify.ErrUntrusted, run.Finding, Meanings[Untrusted].Remedy)
	case run.NoTestsStarted, len(run.Uncollected) > 0, len(run.Tests) == 0 && run.ExitCode != 0 && run.ExitCode != noTests:
		detail, remedy, err := uncollected(ctx, cfg, t, tree, run)
		if err != nil {
			return err
		}
		return fail(verify.ErrNotCollected, detail, remedy)
	case len(run.Tests) == 0:
		return fail(verify.ErrNoTests, verify.Cause(run.Output), "correct the entrypoint, or add tests that it runs")
	}
	return nil
}

// noTests is the exit code of pytest, and of unittest since Python 3.12, if there are no tests.
const noTests = 5

// classify divides the tests into kept and dropped ones by their statuses in all runs.
func (s *Suite) classify(counts map[string]map[string]int, seconds map[string][]float64) {
	s.Seconds = map[string]float64{}
	for _, id := range slices.Sorted(maps.Keys(counts)) {
		statuses := slices.Sorted(maps.Keys(counts[id]))
		switch {
		case counts[id]["passed"] == s.Runs:
			s.Kept = append(s.Kept, id)
			if list := seconds[id]; len(list) > 0 {
				slices.Sort(list)
				s.Seconds[id] = list[len(list)/2]
			}
		case len(statuses) > 1 || counts[id][statuses[0]] < s.Runs:
			s.Dropped = append(s.Dropped, Dropped{id, "flaky"})
		default:
			s.Dropped = append(s.Dropped, Dropped{id, statuses[0]})
		}
	}
}

// dropOrderDependent drops the tests that do not pass alone.
func (s *Suite) dropOrderDependent(ctx context.Context, cfg Config, v *verify.Verifier, t schemas.Task, tree env.Tree) error {
	if s.Wall*time.Duration(len(s.Kept)) > cfg.Isolated {
		return nil
	}
	s.Isolated = len(s.Kept)
	for _, id := range slices.Clone(s.Kept) {
		run, err := v.Observe(ctx, t, tree, nil, verify.Variant{Only: []string{id}})
		if err != nil {
			return err
		}
		if run.Tests[id] != "passed" {
			s.Kept = slices.DeleteFunc(s.Kept, func(k string) bool { return k == id })
			delete(s.Seconds, id)
			s.Dropped = append(s.Dropped, Dropped{id, "order-dependent"})
		}
	}
	slices.SortFunc(s.Dropped, func(a, b Dropped) int { return cmp.Compare(a.ID, b.ID) })
	return nil
}
