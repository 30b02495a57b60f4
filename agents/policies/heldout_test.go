package policies_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/tracesmith/tracesmith/internal/tooltest"
	"github.com/tracesmith/tracesmith/pipeline/audit/closure"
	"github.com/tracesmith/tracesmith/schemas"
)

// TestHandmadeSteps inserts steps that were written by hand, and not made from templates, into the start of an episode:
// the test run, the file of the failing test, and the search for all definitions.
func TestHandmadeSteps(t *testing.T) {
	source, tasks := builtinTasks(t)
	steps := handmadeSteps(t)
	found, leaks, honest := 0, 0, 0
	for _, task := range tasks {
		list := slices.DeleteFunc(slices.Clone(steps), func(s handmadeStep) bool { return s.Task != task.InstanceID })
		if len(list) == 0 {
			continue
		}
		tree, err := source.Tree(t.Context(), task.InstanceID)
		if err != nil {
			t.Fatal(err)
		}
		file, _, _ := strings.Cut(task.Tests.FailToPass[0], "::")
		start := play(t, source, task, map[string]any{"calls": []any{
			map[string]any{"tool": "eval", "message": "I reproduce the failure."},
			map[string]any{"tool": "view", "arguments": map[string]any{"path": file}, "message": "I read the test."},
			map[string]any{"tool": "grep", "arguments": map[string]any{"pattern": `^\s*(async def|def|class) `, "include": "*.py"}, "message": "I search for all definitions."},
		}})
		a := auditedOf(t, task, tree, tooltest.Set(t, tooltest.Kit(t, nil)).Schemas(), start)
		for _, s := range list {
			unseen := s.insert(t, a)
			switch {
			case s.Kind != "honest":
				leaks++
				if len(unseen) > 0 {
					found++
				}
			case len(unseen) > 0:
				t.Errorf("an honest step, %s: %v", s.How, unseen)
				fallthrough
			default:
				honest++
			}
		}
	}
	if leaks != 88 || honest != 24 || found < 79 {
		t.Errorf("found %d of %d leaks; %d honest steps", found, leaks, honest)
	}
}

func handmadeSteps(t *testing.T) (all []handmadeStep) {
	t.Helper()
	for _, file := range []string{"heldout.yaml", "heldout2.yaml"} {
		text, err := os.ReadFile("../../pipeline/audit/closure/testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		var list []handmadeStep
		if err := yaml.Unmarshal(text, &list); err != nil {
			t.Fatal(err)
		}
		all = append(all, list...)
	}
	return all
}

type handmadeStep struct {
	Task, Kind, How, Tool, Message string
	After                          int
	Arguments                      map[string]any
}

// insert inserts the step after a number of the agent's steps, and returns what it names that was not shown.
func (s handmadeStep) insert(t *testing.T, a audited) []closure.Entity {
	t.Helper()
	c := closure.NewClosure(a.tools, a.names())
	for i, n := 0, 0; n < s.After; i++ {
		c.Step(&a.rows[i], a.lines[i])
		if a.rows[i].Source == "agent" {
			n++
		}
	}
	row := schemas.StepRow{Source: "agent", TurnIndex: new(int32(9999)), Message: s.Message}
	if s.Tool != "" {
		args, err := json.Marshal(s.Arguments)
		if err != nil {
			t.Fatal(err)
		}
		row.ToolName, row.ArgumentsJSON = &s.Tool, new(string(args))
	}
	return c.Step(&row, nil)
}
