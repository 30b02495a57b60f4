package synth

import (
	"sync"

	"github.com/tracesmith/tracesmith/env/verify"
)

// maxHealthySteps is the size in bytes above which the cache of traces is emptied.
const maxHealthySteps = 64 << 20

// healthyResults caches traces and measurements of a repository's healthy tree. The workers share
// it.
type healthyResults struct {
	mu    sync.Mutex
	steps map[string][]run // test -> two traces
	size  int              // bytes of the traces

	factsMu sync.Mutex                  // held during the measurement
	facts   map[[2]string]functionFacts // by file and qualified name; nil before the measurement

	recordMu  sync.Mutex // held during the run
	recording *verify.Recording
}

// record returns a run of all tests as the verifier makes it. It calls run if there is none yet.
func (k *healthyResults) record(run func() (*verify.Recording, error)) (*verify.Recording, error) {
	k.recordMu.Lock()
	defer k.recordMu.Unlock()
	if k.recording == nil {
		made, err := run()
		if err != nil {
			return nil, err
		}
		k.recording = made
	}
	return k.recording, nil
}

// get returns the cached traces of a test; nil if there are none.
func (k *healthyResults) get(test string) []run {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.steps[test]
}

// put caches two traces of a test.
func (k *healthyResults) put(test string, traces []run) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.size > maxHealthySteps || k.steps == nil {
		k.steps, k.size = map[string][]run{}, 0
	}
	k.steps[test] = traces
	k.size += len(traces[0].probe) + len(traces[1].probe)
}
