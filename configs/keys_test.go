package configs_test

import (
	"slices"
	"testing"

	"github.com/tracesmith/tracesmith/configs"
)

// Keys contains the most frequently used settings and no blocks.
func TestKeysAreSettings(t *testing.T) {
	keys := configs.Keys()
	for _, want := range []string{"agent.kind", "agent.max_steps", "agent.tools", "llm.base_url", "llm.model", "run.dir", "run.workers", "sandbox.kind", "tasks.ids"} {
		if !slices.Contains(keys, want) {
			t.Errorf("%s is missing among %v", want, keys)
		}
	}
	if slices.Contains(keys, "agent.with") || slices.Contains(keys, "models") {
		t.Error("Keys contains a block")
	}
}
