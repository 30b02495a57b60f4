package synth

import "sync"

// maxHealthySteps bounds the traces that a repository keeps, in bytes.
const maxHealthySteps = 64 << 20

// known is what the healthy tree of a repository has shown. The workers share it.
type known struct {
	mu    sync.Mutex
	steps map[string][]run // by test: two traces
	size  int
	facts map[[2]string]functionFacts
}

func (k *known) take(test string) []run {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.steps[test]
}

func (k *known) put(test string, found []run) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.size > maxHealthySteps || k.steps == nil {
		k.steps, k.size = map[string][]run{}, 0
	}
	k.steps[test] = found
	k.size += len(found[0].probe) + len(found[1].probe)
}
