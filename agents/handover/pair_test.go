package handover_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/agents/handover"
	"github.com/tracesmith/tracesmith/schemas"
)

// toolStep returns a step in which the agent calls tool and gets text as the answer.
func toolStep(tool, command, text string, targets ...string) schemas.Step {
	args, err := json.Marshal(map[string]any{"command": command})
	if err != nil {
		panic(err)
	}
	c := schemas.ToolCall{ID: "c", Name: tool, Arguments: args}
	return schemas.Step{Turn: 0, Source: "agent", ToolCall: &c, Reply: &schemas.Reply{Calls: []schemas.ToolCall{c}},
		Observation: &schemas.Observation{Source: tool, Text: text, ExitCode: new(0), Targets: targets}}
}

// A value is verified if the step evaluated its expression and the answer shows which part
// is the result. Answer refuses a pair that the step contradicts, and marks one that cannot
// be checked as unverified.
func TestValuesBelongToTheirExpressions(t *testing.T) {
	const frame = "\nCurrent frame: m.py:1 in f"
	source := schemas.Step{Index: 1, Turn: -1, Source: "env", Observation: &schemas.Observation{Source: "eval", Text: "1 failed"}}
	for i, c := range []struct {
		tool, command, text, expression, value string
		want                                   string // verified, unverified, or the refusal
	}{
		{"pdb", "p total", "3" + frame, "total", "3", "verified"},
		{"pdb", "p  total", "[1, 2]" + frame, "total", "2", "verified"}, // part of the result
		{"pdb", "total", "3" + frame, "total", "3", "verified"},
		{"pdb", "print(total)", "3" + frame, "total", "3", "verified"},
		{"pdb", "p a ;; p b", "3\n4" + frame, "b", "4", "verified"},
		{"pdb", "p a ;; p b", "3\n4" + frame, "a", "4", `"4" was printed for another expression than "a"`},
		{"pdb", "p a\npp b", "3\n4" + frame, "b", "3", `"3" was printed for another expression than "b"`},
		{"pdb", "b m.py:3 ;; c ;; p a", "Breakpoint 1 at m.py:3\n7\n3" + frame, "a", "3", "verified"},
		{"pdb", "b m.py:3 ;; c ;; p a", "Breakpoint 1 at m.py:3\n7\n3" + frame, "a", "7", "unverified"}, // the program printed the 7
		{"pdb", "b m.py:3 ;; c ;; p a", "Breakpoint 1 hit.\n> m.py(3)f()\n-> x = 1\n3" + frame, "a", "3", "verified"},
		{"pdb", "p a ;; c", "3\n7" + frame, "a", "3", "verified"},
		{"pdb", "p a ;; c", "3\n7" + frame, "a", "7", "unverified"},
		{"pdb", "p a ;; n ;; p a", "3\n4" + frame, "a", "3", "unverified"}, // a is printed twice, with different values
		{"pdb", "alias p !4 ;; p a", "4" + frame, "a", "4", "unverified"},
		{"pdb", "p total", "4" + frame, "tot", "4", "neither asked for"},
		{"pdb", "p vars(x)", "{'a': 3}" + frame, "x", "3", "unverified"},
		{"pdb", "a", "x = 3\ny = 4" + frame, "y", "4", "verified"},
		{"pdb", "a", "x = 3\ny = 4" + frame, "x", "4", "unverified"},
		{"eval", "", "E    x = 3\nE    y = 4", "y", "4", "verified"},
		{"eval", "", "E    self.y = 4", "y", "4", "unverified"},
		{"bash", "python3 m.py", "total 3", "python3 m.py", "3", "verified"},
		{"bash", "python3 m.py", "total 3", "total", "3", "unverified"},
	} {
		step := toolStep(c.tool, c.command, c.text)
		step.Index = 2
		seen := toolStep("view", "", "m.py, lines 1-1 of 1\n    1  x\n", "m.py:1")
		seen.Index = 3
		h := call(map[string]any{"cause": "c", "cause_steps": []int{2}, "files": []any{file("m.py", 1, 1, 3)}, "values": []any{observed(c.expression, c.value, 2)}})
		steps := []schemas.Step{source, step, seen}
		o := handover.Answer("/testbed", steps, h, schemas.ContextOp{})
		got := o.Text
		if pack, ok := handover.Find("/testbed", append(steps, schemas.Step{Index: 4, ToolCall: &h, Observation: &o})); ok {
			got = map[bool]string{false: "verified", true: "unverified"}[pack.Values[0].Unverified]
		}
		if got != c.want && (strings.HasSuffix(c.want, "verified") || !strings.Contains(got, c.want)) {
			t.Errorf("%d: %s %q says %q: %s = %s is %s, want %s", i, c.tool, c.command, c.text, c.expression, c.value, got, c.want)
		}
	}
}

// After a command that may have changed the shell, the shell's output does not count as
// the content of a file.
func TestChangedShellShowsNoFiles(t *testing.T) {
	for _, before := range []string{"cd src", "alias cat=tac", "cat() { echo 1; }", "exec 2>&1", "(sleep 1; echo 9) &", "PATH=/tmp", ". ./env", "ls"} {
		first, second := toolStep("bash", before, "ok"), toolStep("bash", "cat m.py", "x = 1")
		first.Index, second.Index = 1, 2
		h := call(map[string]any{"cause": "c", "cause_steps": []int{2}, "files": []any{file("m.py", 1, 1, 2)}})
		o := handover.Answer("/testbed", []schemas.Step{first, second}, h, schemas.ContextOp{})
		if o.IsError != (before != "ls") {
			t.Errorf("after %q: %s", before, o.Text)
		}
	}
}

// Answer reads the listings of pdb of every installed Python.
func TestListingsOfEveryPython(t *testing.T) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	pythons, err := filepath.Glob(filepath.Join(home, ".pyenv/versions/3.*/bin/python3"))
	if err != nil {
		t.Fatal(err)
	}
	pythons = append(pythons, "/usr/bin/python3")
	program := filepath.Join(t.TempDir(), "m.py")
	code := []string{"def double(x):", "    y = x + 1", "    return y", "print(double(4))"}
	if err := os.WriteFile(program, []byte(strings.Join(code, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, python := range pythons {
		for _, list := range []string{"ll", "l 1, 4", "l ."} {
			cmd := exec.CommandContext(t.Context(), python, "-m", "pdb", program)
			cmd.Stdin = strings.NewReader("b 3\nc\n!print('#')\n" + list + "\n!print('#')\nq\n")
			out, err := cmd.Output()
			parts := strings.Split(string(out), "#\n")
			if err != nil || len(parts) != 3 {
				t.Fatalf("%s: %v\n%s", python, err, out)
			}
			text := strings.TrimSuffix(strings.TrimPrefix(parts[1], "(Pdb) "), "(Pdb) ")
			step := toolStep("pdb", list, text+"Current frame: m.py:3 in double\n", "m.py:3")
			step.Index = 2
			h := call(map[string]any{"cause": "c", "cause_steps": []int{2}, "files": []any{file("m.py", 1, 3, 2)}})
			o := handover.Answer("/testbed", []schemas.Step{step}, h, schemas.ContextOp{})
			pack, _ := handover.Find("/testbed", []schemas.Step{step, {Index: 3, ToolCall: &h, Observation: &o}})
			if o.IsError || fmt.Sprint(pack.Files[0].Lines) != fmt.Sprintf("[{1 %s} {2 %s} {3 %s}]", code[0], code[1], code[2]) {
				t.Errorf("%s, %s: %s\n%q", python, list, o.Text, text)
			}
		}
	}
}
