package synth

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/tracesmith/tracesmith/env/trace"
	"github.com/tracesmith/tracesmith/env/verify"
)

// isFirstSteps reports whether a run has the probe that Compare begins with.
func isFirstSteps(how verify.Variant) bool {
	a, errA := json.Marshal(how.Probe.Config)
	b, errB := json.Marshal(trace.StepsProbe().Config)
	return errA == nil && errB == nil && string(a) == string(b) && len(how.Only) == 1
}

// healthySteps returns a trace of a test in the healthy tree. Many candidates make the same test
// fail, so two traces are kept; n selects one of them.
func (s *repoState) healthySteps(ctx context.Context, w *worker, test string, n int) (run, error) {
	if both := s.known.take(test); both != nil {
		return both[n%2], nil
	}
	steps := pass{Only: []string{test}, Probe: probeOf(trace.StepsProbe())}
	q := request{Only: []string{test}, Passes: []pass{steps, steps}}
	if s.once[test] { // its second run in one place would meet what the first one left
		q.Passes = q.Passes[:1]
	}
	q.limit(warmBound)
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
	s.known.put(test, found[:2])
	return found[n%2], nil
}

// factsOf returns measurements of a function of the healthy tree.
func (s *repoState) factsOf(ctx context.Context, w *worker, file, function string) (functionFacts, error) {
	at := [2]string{file, function}
	s.known.mu.Lock()
	f, ok := s.known.facts[at]
	s.known.mu.Unlock()
	if ok {
		return f, nil
	}
	f, err := w.bench.facts(ctx, file, function)
	if err != nil {
		return f, err
	}
	s.known.mu.Lock()
	defer s.known.mu.Unlock()
	if s.known.facts == nil {
		s.known.facts = map[[2]string]functionFacts{}
	}
	s.known.facts[at] = f
	return f, nil
}

// onlyOnce returns those of the tests that do not pass when they run again in one place.
func onlyOnce(tests []string, again *run) []string {
	return slices.DeleteFunc(slices.Clone(tests), func(id string) bool { return again != nil && again.tests[id] == "passed" })
}
