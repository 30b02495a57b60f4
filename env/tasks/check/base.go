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

// MinKept is how many tests a repository must have that pass in all runs.
const MinKept = 5

// ErrTooFewTests is the error for a repository with fewer than MinKept tests that always pass.
var ErrTooFewTests = errors.New("too few tests that always pass")

// Suite describes the tests of a healthy repository.
type Suite struct {
	Method  string             `json:"method"`
	Kept    []string           `json:"kept"`    // tests that pass in all runs, sorted
	Dropped []Dropped          `json:"dropped"` // the others, sorted by id
	Seconds map[string]float64 `json:"seconds"` // median time of each kept test's own function, if known
	Wall    time.Duration      `json:"wall_ns"` // of a whole run, the longest
	Runs    int                `json:"runs"`
	// Isolated is how many tests were also run alone; 0 if that would take too long.
	Isolated int `json:"isolated,omitempty"`
}

// Dropped is a test that verification does not use, and why.
type Dropped struct {
	ID  string `json:"id"`
	Why string `json:"why"` // flaky, failed, error, skipped, xfailed, xpassed, order-dependent
}

// Base runs the tests of a healthy repository Runs times, each time under another hash seed and in
// another order, and each kept test once alone if that is cheap. It uses only Entrypoint, Workdir,
// Python, Image and Setup of the task. The error for an unusable repository is a *verify.TaskError
// or ErrTooFewTests; other errors are failures of the machinery.
func Base(ctx context.Context, cfg Config, t schemas.Task, tree env.Tree) (Suite, error) {
	cfg = cfg.withDefaults()
	v := cfg.verifier()
	var s Suite
	seen := map[string]map[string]int{} // id -> status -> runs
	took := map[string][]float64{}
	for s.Runs < cfg.Runs {
		how := verify.Variant{}
		if s.Runs > 0 {
			how = variant(cfg.Seed, s.Runs)
		}
		run, err := v.Observe(ctx, t, tree, nil, how)
		if err != nil {
			return s, err
		}
		if err := usable(ctx, cfg, t, tree, run); err != nil {
			return s, err
		}
		s.Runs++
		s.Method, s.Wall = run.Method, max(s.Wall, run.Wall)
		for id, status := range run.Tests {
			if seen[id] == nil {
				seen[id] = map[string]int{}
			}
			seen[id][status]++
			if sec, known := run.Seconds[id]; known {
				took[id] = append(took[id], sec)
			}
		}
	}
	s.sort(seen, took)
	if err := s.alone(ctx, cfg, v, t, tree); err != nil {
		return s, err
	}
	if len(s.Kept) < MinKept {
		return s, fmt.Errorf("the repository of %s has %d of the %d tests that are needed: %w", t.InstanceID, len(s.Kept), MinKept, ErrTooFewTests)
	}
	return s, nil
}

// usable refuses a run that proves nothing about the repository.
func usable(ctx context.Context, cfg Config, t schemas.Task, tree env.Tree, run verify.Run) error {
	fail := func(kind error, detail, remedy string) error {
		return &verify.TaskError{Instance: t.InstanceID, Kind: kind, Detail: detail, Remedy: remedy}
	}
	switch {
	case run.TimedOut:
		return fail(verify.ErrTooSlow, "", "make the entrypoint run fewer tests, or raise the timeout")
	case run.Finding != "" && !run.Unstarted:
		return fail(verify.ErrUntrusted, run.Finding, Meanings[Untrusted].Remedy)
	case run.Unstarted, len(run.Uncollected) > 0, len(run.Tests) == 0 && run.ExitCode != 0 && run.ExitCode != noTests:
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

// noTests is the exit code of pytest, and of unittest from Python 3.12 on, if there are no tests.
const noTests = 5

// sort divides the tests by their statuses in all runs.
func (s *Suite) sort(seen map[string]map[string]int, took map[string][]float64) {
	s.Seconds = map[string]float64{}
	for _, id := range slices.Sorted(maps.Keys(seen)) {
		only := slices.Sorted(maps.Keys(seen[id]))
		switch {
		case seen[id]["passed"] == s.Runs:
			s.Kept = append(s.Kept, id)
			if list := took[id]; len(list) > 0 {
				slices.Sort(list)
				s.Seconds[id] = list[len(list)/2]
			}
		case len(only) > 1 || seen[id][only[0]] < s.Runs:
			s.Dropped = append(s.Dropped, Dropped{id, "flaky"})
		default:
			s.Dropped = append(s.Dropped, Dropped{id, only[0]})
		}
	}
}

// alone drops the tests that pass only after others.
func (s *Suite) alone(ctx context.Context, cfg Config, v *verify.Verifier, t schemas.Task, tree env.Tree) error {
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
