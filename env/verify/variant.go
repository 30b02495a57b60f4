package verify

import (
	"time"
)

// Variant says how a run of a task's tests differs from the run for a verdict, which is the zero
// Variant.
type Variant struct {
	HashSeed string        // PYTHONHASHSEED; "" = the sandbox's default
	Shuffle  int64         // seed of a random order of tests; 0 = the runner's order
	Only     []string      // ids of the tests to run; nil = all
	Timeout  time.Duration // 0 = the verifier's default
	Probe    *Probe        // nil = none
}

// Probe is Python code that observes the tests of a run inside their interpreters. Its module has
// a function start(config, path, relative): config is Config, path is the file to which it appends its
// output, and relative(file) returns the path of a file relative to the workspace (None for a file
// outside). start returns an object with the methods begin(id) and end(id, status). The hooks call begin
// before a test and its fixtures, and end after them. A status other than passed means that the test failed or did not run.
type Probe struct {
	Source string // source code of the module
	Config any    // passed to the module as JSON
	Limit  int64  // maximum bytes of output to read
}

// probeFile is the name of the probe's output file in the channel's directory.
const probeFile = "probe"

// config returns the part of the hooks' configuration that depends on the variant.
func (v Variant) config() map[string]any {
	o := map[string]any{}
	if v.Shuffle != 0 {
		o["shuffle"] = v.Shuffle
	}
	if v.Only != nil {
		o["only"] = v.Only
	}
	if v.Probe != nil {
		o["probe"] = v.Probe.Config
	}
	return o
}

func (v Variant) env() []string {
	if v.HashSeed == "" {
		return nil
	}
	return []string{"PYTHONHASHSEED=" + v.HashSeed}
}
