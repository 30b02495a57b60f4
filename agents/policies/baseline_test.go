package policies_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/agents"
	_ "github.com/tracesmith/tracesmith/agents/oracle/baseline"
	"github.com/tracesmith/tracesmith/agents/testcmd"
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
		{"agenda", "ochiai", 2, "parse_stamp"}} {
		t.Run(c.instance+" "+c.order, func(t *testing.T) {
			t.Parallel()
			var task schemas.Task
			for _, candidate := range tasks {
				if candidate.InstanceID == c.instance {
					task = candidate
				}
			}
			deps := agents.Deps{Task: task.Public(), Seed: 1, Tools: []schemas.ToolSchema{{Name: "bash"}}}
			policy := func() agents.Policy {
				p, err := agents.Registry.Build("baseline", map[string]any{"order": c.order, "stops": c.stops}, deps)
				if err != nil {
					t.Fatal(err)
				}
				return p
			}
			r, err := agents.Run(t.Context(), agents.Config{Env: realEnv(t, source, task, tooltest.Kit(t, nil)), Policy: policy(), Task: task, Limits: agents.Limits{MaxSteps: 60}})
			if err != nil {
				t.Fatal(err)
			}
			if r.ExitReason != schemas.ExitGaveUp || r.Agent.GoldUsed {
				t.Errorf("exit %s, gold used %v", r.ExitReason, r.Agent.GoldUsed)
			}
			if os.Getenv("TRACESMITH_TEST_PRINT") != "" {
				printSteps(t, r.Steps)
			}
			stops, edits, inspections, first := 0, 0, 0, ""
			for _, s := range r.Steps {
				switch {
				case s.ToolCall == nil:
				case s.ToolCall.Name == "edit":
					edits++
				case s.ToolCall.Name != "pdb" || s.Observation.IsError || s.State.Frame == nil:
				case argument(s, "command") == "c":
					if stops++; stops == 1 {
						first = s.State.Frame.Function
					}
					if testcmd.IsTestFile(s.State.Frame.File) {
						t.Errorf("stops in %s", s.State.Frame.File)
					}
				case slices.Contains([]string{"a", "p"}, strings.Fields(argument(s, "command"))[0]):
					inspections++
				}
			}
			if inspections < 2 {
				t.Errorf("%d inspections", inspections)
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
			checkResumes(t, policy, task, r)
		})
	}
}

// checkResumes checks that a new policy continues an episode at every step as the first one did.
func checkResumes(t *testing.T, policy func() agents.Policy, task schemas.Task, r agents.Result) {
	t.Helper()
	for i, s := range r.Steps {
		if s.Reply == nil {
			continue
		}
		got, err := policy().Next(t.Context(), &agents.Transcript{Task: task.Public(), Tools: r.Tools, Steps: r.Steps[:i]})
		if err != nil {
			t.Fatal(err)
		}
		want := schemas.Reply{Message: s.Reply.Message, Calls: s.Reply.Calls, Claims: s.Reply.Claims, FinishReason: s.Reply.FinishReason, Stop: s.Reply.Stop}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("step %d: %s", s.Index, diff)
		}
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
