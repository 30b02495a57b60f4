package policies_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/internal/tooltest"
	"github.com/tracesmith/tracesmith/schemas"
)

// TestDemonstrator runs the demonstrator on every built-in task in a real sandbox. The auditor finds nothing in
// its steps before the edit, and finds the leaks that are inserted there.
func TestDemonstrator(t *testing.T) {
	source, tasks := builtinTasks(t)
	if len(tasks) < 12 {
		t.Fatalf("%d built-in tasks", len(tasks))
	}
	tally, byHand := newSeedTally(), handmade{}
	for i, task := range tasks {
		t.Run(task.InstanceID, func(t *testing.T) {
			tree, err := source.Tree(t.Context(), task.InstanceID)
			if err != nil {
				t.Fatal(err)
			}
			result := demonstrate(t, source, task)
			if os.Getenv("TRACESMITH_TEST_PRINT") != "" {
				printSteps(t, result.Steps)
			}
			checkDemonstration(t, task, result)
			a := auditedOf(t, task, tree, result.Tools, result.Steps)
			checkGrounded(t, a)
			tally.seed(a, uint64(i))
			byHand.insert(t, task.InstanceID, a)
			checkStoredClaims(t, task, result.Steps)
		})
	}
	tally.check(t, 1200/seedEvery())
	if byHand.leaks != 88 || byHand.honest != 24 || byHand.found < 79 {
		t.Errorf("steps written by hand: %+v", byHand)
	}
}

func demonstrate(t *testing.T, source env.Source, task schemas.Task) agents.Result {
	t.Helper()
	policy, err := agents.Registry.Build("demonstrator", nil, agents.Deps{Task: task, Gold: &agents.Privileged{GoldPatch: task.GoldPatch}})
	if err != nil {
		t.Fatal(err)
	}
	e := realEnv(t, source, task, tooltest.Kit(t, nil))
	result, err := agents.Run(t.Context(), agents.Config{Env: e, Policy: policy, Task: task, Limits: agents.Limits{MaxSteps: 60}})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// checkDemonstration checks that the episode was submitted with passing tests. Before the first edit,
// it must show a failing test, a breakpoint hit in program code and two successful inspections.
func checkDemonstration(t *testing.T, task schemas.Task, r agents.Result) {
	t.Helper()
	if r.ExitReason != schemas.ExitSubmitted {
		t.Errorf("exit %s: %s", r.ExitReason, r.ErrorMessage)
	}
	last := r.Steps[len(r.Steps)-1]
	if last.State == nil || last.State.EvalPassed == nil || !*last.State.EvalPassed {
		t.Error("the tests do not pass at the end")
	}
	failing, hit, inspected := false, false, 0
	for _, s := range r.Steps {
		if s.ToolCall == nil {
			continue
		}
		if s.ToolCall.GoldEdit {
			break
		}
		command, _, _ := strings.Cut(argument(s, "command"), " ")
		switch {
		case s.ToolCall.Name == "eval" && s.State.EvalPassed != nil && !*s.State.EvalPassed:
			failing = strings.Contains(s.Observation.Text, task.Tests.FailToPass[0])
		case s.ToolCall.Name != "pdb" || s.Observation.IsError:
		case command == "c":
			f := s.State.Frame
			for _, b := range s.State.Breakpoints {
				hit = hit || f != nil && f.File == b.File && f.Line == b.Line && !strings.Contains(f.File, "test")
			}
		case slices.Contains([]string{"a", "p", "pp"}, command):
			inspected++
		}
	}
	if !failing || !hit || inspected < 2 {
		t.Errorf("before the edit: failing test shown %v, breakpoint hit in program code %v, inspections %d", failing, hit, inspected)
	}
}

func argument(s schemas.Step, name string) string {
	var args map[string]any
	if json.Unmarshal(s.ToolCall.Arguments, &args) != nil {
		return ""
	}
	text, _ := args[name].(string)
	return text
}

func printSteps(t *testing.T, steps []schemas.Step) {
	for _, s := range steps {
		if s.ToolCall == nil {
			continue
		}
		message := ""
		if s.Reply != nil {
			message = s.Reply.Message
		}
		t.Logf("── %d %s\n%s\n→ %s %s\n%s", s.Index, s.Source, message, s.ToolCall.Name, s.ToolCall.Arguments, s.Observation.Text)
	}
}
