package synth

import "sync"

// maxHealthySteps is the size in bytes above which the cache of traces is emptied.
const maxHealthySteps = 64 << 20

// healthyResults caches traces and measurements of a repository's healthy tree. The workers share
// it.
type healthyResults struct {
	mu    sync.Mutex
	steps map[string][]run            // test -> two traces
	size  int                         // bytes of the traces
	facts map[[2]string]functionFacts // file and function -> facts
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
