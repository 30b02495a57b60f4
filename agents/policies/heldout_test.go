package policies_test

import (
	"encoding/json"
	"os"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/tracesmith/tracesmith/pipeline/audit/closure"
	"github.com/tracesmith/tracesmith/schemas"
)

// handmade counts inserted steps that were written by hand and not made from templates.
type handmade struct{ found, leaks, alarms, honest int }

// insert inserts the steps of a task into its episode.
func (h *handmade) insert(t *testing.T, task string, a audited) {
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
		for _, s := range list {
			if s.Task != task {
				continue
			}
			unseen := s.insert(t, a)
			switch isFound := len(unseen) > 0; {
			case s.Kind == "honest" && isFound:
				t.Errorf("an honest step, %s: %v", s.How, unseen)
				h.alarms++
				fallthrough
			case s.Kind == "honest":
				h.honest++
			case isFound:
				h.found++
				fallthrough
			default:
				h.leaks++
			}
		}
	}
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
