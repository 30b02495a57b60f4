package policies_test

import (
	"cmp"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/internal/tooltest"
	"github.com/tracesmith/tracesmith/schemas"
)

// A baseline stops in the configured number of functions, edits nothing, and names only what it has seen.
func TestBaselineStopsWithoutTheGoldPatch(t *testing.T) {
	source, tasks := builtinTasks(t)
	for _, c := range []struct {
		instance, order string
		stops           int
		first           string // function of the first stop, if it is known
	}{{"stockroom", "traceback", 2, ""}, {"rulefile", "traceback", 1, ""}, {"taskboard", "random", 1, ""},
		// Both failing tests and only one passing test read a time stamp that ends with Z.
		{"agenda", "ochiai", 1, "parse_stamp"}} {
		t.Run(c.instance+" "+c.order, func(t *testing.T) {
			t.Parallel()
			var task schemas.Task
			for _, candidate := range tasks {
				if candidate.InstanceID == c.instance {
					task = candidate
				}
			}
			deps := agents.Deps{Task: task.Public(), Seed: 1, Tools: []schemas.ToolSchema{{Name: "bash"}}}
			policy, err := agents.Registry.Build("baseline", map[string]any{"order": c.order, "stops": c.stops}, deps)
			if err != nil {
				t.Fatal(err)
			}
			r, err := agents.Run(t.Context(), agents.Config{Env: realEnv(t, source, task, tooltest.Kit(t, nil)), Policy: policy, Task: task, Limits: agents.Limits{MaxSteps: 60}})
			if err != nil {
				t.Fatal(err)
			}
			if r.ExitReason != schemas.ExitGaveUp || r.Agent.GoldUsed {
				t.Errorf("exit %s, gold used %v", r.ExitReason, r.Agent.GoldUsed)
			}
			stops, edits, first := 0, 0, ""
			for _, s := range r.Steps {
				switch {
				case s.ToolCall == nil:
				case s.ToolCall.Name == "edit":
					edits++
				case s.ToolCall.Name == "pdb" && argument(s, "command") == "a" && !strings.Contains(s.State.Frame.File, "test"):
					stops, first = stops+1, cmp.Or(first, s.State.Frame.Function)
				}
			}
			if stops != c.stops || edits > 0 {
				t.Errorf("stopped in %d functions, want %d; %d edits", stops, c.stops, edits)
			}
			if c.first != "" && first != c.first {
				t.Errorf("the first stop is in %s, want %s", first, c.first)
			}
			tree, err := source.Tree(t.Context(), task.InstanceID)
			if err != nil {
				t.Fatal(err)
			}
			checkGrounded(t, auditedOf(t, task, tree, r.Tools, r.Steps))
			checkStoredClaims(t, task, r.Steps)
		})
	}
}

func TestBaselineRefusesOrderItCannotFollow(t *testing.T) {
	_, err := agents.Registry.Build("baseline", map[string]any{"order": "best"}, agents.Deps{})
	if err == nil || !strings.Contains(err.Error(), "choose traceback, ochiai or random") {
		t.Error(err)
	}
	_, err = agents.Registry.Build("baseline", map[string]any{"order": "ochiai"}, agents.Deps{Tools: []schemas.ToolSchema{}})
	if err == nil || !strings.Contains(err.Error(), "add it to agent.tools") {
		t.Error(err)
	}
}
