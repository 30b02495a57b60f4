package verify

import (
	"time"
)

// Variant says how a run of a task's tests differs from the run for a verdict, which is the zero
// Variant.
type Variant struct {
	HashSeed string        // PYTHONHASHSEED; "" = the sandbox's own
	Shuffle  int64         // seed of the order of tests; 0 = the runner's own order
	Only     []string      // ids of the tests that run; nil = all
	Timeout  time.Duration // 0 = the verifier's
	Probe    *Probe
}

// Probe is Python code that observes the tests of a run inside their interpreters. Its module has
// a function start(config, path, place): config is Config, path is a file to append to, and
// place(file) is the path of a file relative to the workspace (None for a file outside). start
// returns an object whose methods begin(id) and end(id) are called before and after each test
// with its fixtures.
type Probe struct {
	Source string
	Config any   // becomes JSON
	Limit  int64 // bytes kept of its output
}

// probeFile is where a probe writes, in the channel's directory.
const probeFile = "probe"

// order is the variant as the hooks in the interpreters read it.
func (how Variant) order() map[string]any {
	o := map[string]any{}
	if how.Shuffle != 0 {
		o["shuffle"] = how.Shuffle
	}
	if how.Only != nil {
		o["only"] = how.Only
	}
	if how.Probe != nil {
		o["probe"] = how.Probe.Config
	}
	return o
}

func (how Variant) env() []string {
	if how.HashSeed == "" {
		return nil
	}
	return []string{"PYTHONHASHSEED=" + how.HashSeed}
}
