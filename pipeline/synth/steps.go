package synth

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/tracesmith/tracesmith/env/trace"
	"github.com/tracesmith/tracesmith/env/verify"
)

// isFirstStepsRun reports whether a run of one test has the probe with which trace.Compare
// begins.
func isFirstStepsRun(how verify.Variant) bool {
	a, errA := json.Marshal(how.Probe.Config)
	b, errB := json.Marshal(trace.StepsProbe().Config)
	return errA == nil && errB == nil && string(a) == string(b) && len(how.Only) == 1
}

// healthySteps returns a trace of a test in the healthy tree. Many candidates make the same test
// fail, so two traces of it are cached; n selects one of them.
func (s *repoState) healthySteps(ctx context.Context, w *worker, test string, n int) (run, error) {
	if both := s.healthy.get(test); both != nil {
		return both[n%2], nil
	}
	steps := pass{Only: []string{test}, Probe: probeOf(trace.StepsProbe())}
	q := request{Only: []string{test}, Passes: []pass{steps, steps}}
	if s.unrepeatable[test] { // the first run may leave behind something that makes the second one fail
		q.Passes = q.Passes[:1]
	}
	q.setTimeout(healthyTimeout, 0)
	var found []run
	for len(found) < 2 {
		r, err := w.bench.run(ctx, firstSeed, q)
		if err != nil {
			return run{}, err
		}
		if len(r.passes) == 0 {
			return r, nil
		}
		found = append(found, r.passes...)
	}
	s.healthy.put(test, found[:2])
	return found[n%2], nil
}

// factsOf returns measurements of a function of the healthy tree, which are 0 if there is no such function.
func (s *repoState) factsOf(ctx context.Context, w *worker, file, function string) (functionFacts, error) {
	s.healthy.factsMu.Lock()
	defer s.healthy.factsMu.Unlock()
	if s.healthy.facts == nil {
		found, err := w.bench.facts(ctx)
		if err != nil {
			return functionFacts{}, err
		}
		s.healthy.facts = found
	}
	return s.healthy.facts[[2]string{file, function}], nil
}

// unrepeatableTests returns the tests that did not pass in again, their second run in the same
// sandbox. again is nil if that run did not take place.
func unrepeatableTests(tests []string, again *run) []string {
	return slices.DeleteFunc(slices.Clone(tests), func(id string) bool { return again != nil && again.tests[id] == "passed" })
}
