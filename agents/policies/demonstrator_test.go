package policies_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/internal/tooltest"
	"github.com/tracesmith/tracesmith/schemas"
)

// TestDemonstrator runs the demonstrator on every built-in task in a real sandbox.
func TestDemonstrator(t *testing.T) {
	source, tasks := builtinTasks(t)
	if len(tasks) < 12 {
		t.Fatalf("%d built-in tasks", len(tasks))
	}
	for _, task := range tasks {
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
			checkLicensed(t, tree, result)
			checkStoredClaims(t, task, result.Steps)
		})
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

var (
	token      = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*|\d+`)
	pathToken  = regexp.MustCompile(`[\w.-]+(?:/[\w.-]+)+|[\w-]+\.py`)
	identifier = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)
)

// checkLicensed checks that the demonstrator names only what it has seen. Before the edit, every
// path, number and program identifier in its messages and calls must occur in an earlier
// observation or in the prompts. Program identifiers are those of the whole source, so the check
// finds names that only the gold patch or an unread file contains. The demonstrator's own English
// and the debugger's commands are exempt.
func checkLicensed(t *testing.T, tree env.Tree, r agents.Result) {
	t.Helper()
	names, ownWords := sourceNames(t, tree), ownWords()
	seen := map[string]bool{}
	paths := ""
	learn := func(text string) {
		for _, w := range token.FindAllString(text, -1) {
			seen[w] = true
		}
		paths += "\n" + text
	}
	for _, tool := range r.Tools {
		learn(tool.Name + " " + tool.Description + " " + string(tool.Parameters))
	}
	checked := 0
	for _, s := range r.Steps {
		if s.ToolCall == nil {
			learn(s.Text)
			continue
		}
		if s.ToolCall.GoldEdit {
			break
		}
		text := argumentText(t, s)
		if s.ToolCall.Name == "bash" { // a fixed script and the test command
			text = ""
		}
		if s.Reply != nil {
			text += " " + s.Reply.Message
		}
		for _, w := range token.FindAllString(text, -1) {
			number := w[0] >= '0' && w[0] <= '9'
			program := names[w] && !ownWords[strings.ToLower(w)]
			if (number && !ownWords[w] || program) && !seen[w] {
				t.Errorf("step %d names %q before it was seen: %s", s.Index, w, text)
			}
			if number || program {
				checked++
			}
		}
		for _, p := range pathToken.FindAllString(text, -1) {
			if !strings.Contains(paths, p) {
				t.Errorf("step %d names path %q before it was seen", s.Index, p)
			}
		}
		learn(s.Observation.Text)
	}
	if checked < 20 {
		t.Errorf("only %d names and numbers were checked", checked)
	}
}

// ownWords returns the words of the demonstrator's fixed texts and of the debugger's commands.
var ownWords = sync.OnceValue(func() map[string]bool {
	own := map[string]bool{"500": true, "def": true, "class": true, "async": true, "py": true}
	var text []byte
	for _, name := range []string{"demonstrator_text.go", "demonstrator_claims.go"} {
		part, err := os.ReadFile(name)
		if err != nil {
			panic(err)
		}
		text = append(text, part...)
	}
	for _, literal := range regexp.MustCompile("\"[^\"\n]*\"").FindAllString(string(text), -1) {
		for _, w := range token.FindAllString(literal, -1) {
			own[strings.ToLower(w)] = true
		}
	}
	for _, w := range []string{"b", "c", "a", "p", "pp", "w", "until", "locals", "s"} {
		own[w] = true
	}
	return own
})

// sourceNames returns all identifiers in the program and its tests.
func sourceNames(t *testing.T, tree env.Tree) map[string]bool {
	t.Helper()
	var tar strings.Builder
	if err := tree.WriteTar(&tar); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, w := range identifier.FindAllString(tar.String(), -1) {
		names[w] = true
	}
	return names
}

func argument(s schemas.Step, name string) string {
	var args map[string]any
	if json.Unmarshal(s.ToolCall.Arguments, &args) != nil {
		return ""
	}
	text, _ := args[name].(string)
	return text
}

// argumentText joins the values of a call's arguments.
func argumentText(t *testing.T, s schemas.Step) string {
	t.Helper()
	var args map[string]any
	if err := json.Unmarshal(s.ToolCall.Arguments, &args); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, v := range args {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, strings.ReplaceAll(string(text), `\s`, ""))
	}
	return strings.Join(out, " ")
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
