package policies_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/schemas"
)

// TestOracle runs the oracle on every built-in task in a real sandbox. The auditor finds nothing in its steps before
// the edit, and finds the leaks that are inserted there.
func TestOracle(t *testing.T) {
	source, tasks := builtinTasks(t)
	if len(tasks) < 12 {
		t.Fatalf("%d built-in tasks", len(tasks))
	}
	tally, submitted, inspections := newSeedTally(), 0, 0
	var adding sync.Mutex
	t.Run("tasks", func(t *testing.T) {
		for i, task := range tasks {
			t.Run(task.InstanceID, func(t *testing.T) {
				t.Parallel()
				tree, err := source.Tree(t.Context(), task.InstanceID)
				if err != nil {
					t.Fatal(err)
				}
				result := newOracleRun(t, t.TempDir(), tree, task, map[string]any{"gold_edit": true}).result
				if os.Getenv("TRACESMITH_TEST_PRINT") != "" {
					printSteps(t, result.Steps)
				}
				inspected := checkDemonstration(t, task, result)
				a := auditedOf(t, task, tree, result.Tools, result.Steps)
				checkGrounded(t, a)
				checkStoredClaims(t, task, result.Steps)
				adding.Lock()
				defer adding.Unlock()
				tally.seed(a, uint64(i))
				inspections += inspected
				if result.ExitReason == schemas.ExitSubmitted {
					submitted++
				}
			})
		}
	})
	tally.check(t, 1200/seedEvery())
	if submitted < 12 || inspections < 2*len(tasks) {
		t.Errorf("%d episodes were submitted, and all have %d inspections", submitted, inspections)
	}
}

// checkDemonstration checks that the episode shows, before an edit, a failing test, a stop in program code and an
// inspection. It must be submitted with passing tests, or end without an edit. The result is the number of successful inspections.
func checkDemonstration(t *testing.T, task schemas.Task, r agents.Result) (inspections int) {
	t.Helper()
	failing, stopped, edited := false, false, false
	for _, s := range r.Steps {
		if s.ToolCall == nil {
			continue
		}
		if s.ToolCall.Name == "edit" {
			edited = true
			break
		}
		command, _, _ := strings.Cut(argument(s, "command"), " ")
		switch {
		case s.ToolCall.Name == "eval" && s.State.EvalPassed != nil && !*s.State.EvalPassed:
			failing = strings.Contains(s.Observation.Text, task.Tests.FailToPass[0])
		case s.ToolCall.Name != "pdb" || s.Observation.IsError:
		case command == "c":
			f := s.State.Frame
			stopped = stopped || f != nil && !strings.Contains(f.File, "test")
		case slices.Contains([]string{"a", "p", "pp"}, command):
			inspections++
		}
	}
	if !failing || !stopped || inspections < 1 {
		t.Errorf("before an edit: failing test shown %v, stop in program code %v, inspections %d", failing, stopped, inspections)
	}
	last := r.Steps[len(r.Steps)-1]
	pass := last.State != nil && last.State.EvalPassed != nil && *last.State.EvalPassed
	if edited != pass || edited != (r.ExitReason == schemas.ExitSubmitted) {
		t.Errorf("exit %s: %s; edited %v, the tests pass %v", r.ExitReason, r.ErrorMessage, edited, pass)
	}
	return inspections
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
