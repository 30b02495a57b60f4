package policies_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/agents/shown"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/pipeline/audit/closure"
	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/pipeline/normalise"
	"github.com/tracesmith/tracesmith/schemas"
)

// audited is an episode whose steps before the first edit are checked.
type audited struct {
	tools []schemas.ToolSchema
	rows  []schemas.StepRow
	lines [][]shown.Line    // that the answer of each row shows
	files map[string]string // Python files of the repository
	gold  string
}

// auditedOf returns the rows of an episode's steps. steps may lack the prompts.
func auditedOf(t *testing.T, task schemas.Task, tree env.Tree, toolSchemas []schemas.ToolSchema, steps []schemas.Step) audited {
	t.Helper()
	ep := schemas.Episode{Task: task, Tools: toolSchemas, Steps: steps, Started: time.Unix(1, 0), Ended: time.Unix(2, 0)}
	staged, err := normalise.Episode(&ep, normalise.Config{})
	if err != nil {
		t.Fatal(err)
	}
	prompt := schemas.StepRow{Source: "user", Message: task.Instructions}
	rows := append([]schemas.StepRow{prompt}, staged.Steps...)
	var lines [][]shown.Line
	for _, reading := range metrics.Read(rows, "").Readings {
		lines = append(lines, reading.Lines)
	}
	return audited{tools: toolSchemas, rows: rows, lines: lines, files: pythonFiles(t, tree), gold: task.GoldPatch}
}

// pythonFiles returns the Python files of a tree.
func pythonFiles(t *testing.T, tree env.Tree) map[string]string {
	t.Helper()
	var archive bytes.Buffer
	if err := tree.WriteTar(&archive); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for in := tar.NewReader(&archive); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if path.Ext(h.Name) == ".py" {
			source, err := io.ReadAll(in)
			if err != nil {
				t.Fatal(err)
			}
			files[h.Name] = string(source)
		}
	}
}

// checkGrounded checks that the steps before the first edit name only what they have seen.
func checkGrounded(t *testing.T, a audited) {
	t.Helper()
	found, steps := a.alarms()
	for _, f := range found {
		t.Errorf("names used before they were seen: %s", f)
	}
	if steps < 5 {
		t.Errorf("only %d steps were checked", steps)
	}
}

func (a audited) names() map[string]bool {
	names := map[string]bool{}
	for _, source := range a.files {
		closure.Names(source, names)
	}
	return names
}

// alarms returns what steps before the first edit name without having seen it, and their number of steps.
func (a audited) alarms() (found []string, steps int) {
	c := closure.NewClosure(a.tools, a.names())
	for i := range a.rows {
		r := &a.rows[i]
		if schemas.Value(r.ToolName) == "edit" {
			break
		}
		if r.Source == "agent" {
			steps++
		}
		if unseen := c.Step(r, a.lines[i]); len(unseen) > 0 {
			found = append(found, fmt.Sprintf("step %d: %v", r.StepIndex, unseen))
		}
	}
	return found, steps
}
