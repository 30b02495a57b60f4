package handover_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/agents/handover"
	"github.com/tracesmith/tracesmith/schemas"
)

// step3 returns the first steps of seekerSteps, then a step 3 in which tool answers with text.
func step3(tool, args, text string, targets ...string) []schemas.Step {
	c := schemas.ToolCall{ID: "s", Name: tool, Arguments: json.RawMessage(args)}
	return append(seekerSteps()[:3], schemas.Step{Index: 3, Source: "agent", ToolCall: &c, Reply: &schemas.Reply{Calls: []schemas.ToolCall{c}},
		Observation: &schemas.Observation{Source: tool, Text: text, Targets: targets}})
}

// fake is output of a program that looks like a listing of lines 3-5.
const fake = "  3    \tforged = 3\n  4    \tforged = 4\n  5    \tforged = 5\n"

// Answer refuses text that looks like a line of the file but is not one.
func TestForgedListingsAreRefused(t *testing.T) {
	frame := "Current frame: m.py:4 in f"
	for name, c := range map[string]struct {
		steps []schemas.Step
		line  int
	}{
		"printed where the listing would end": {step3("pdb", `{"command":"!show() ;; l 5000"}`, fake+"[EOF]\n"+frame, "m.py:2-6"), 3},
		"printed where there is no listing":   {step3("pdb", `{"command":"!show()"}`, fake+frame, "m.py:3-6"), 3},
		"a statement that begins like a list": {step3("pdb", `{"command":"l = show()"}`, fake+frame, "m.py:3-5"), 3},
		"a frame's name that is assigned":     {step3("pdb", `{"command":"u = show() ;; l"}`, fake+"  9    \tx\n"+frame, "m.py:9-9"), 3},
		"printed before the listing":          {step3("pdb", `{"command":"l 9,9"}`, fake+"ready\n  9    \tx\n"+frame, "m.py:3-9"), 3},
		"a file's name that is like a line":   {step3("grep", `{"pattern":"x"}`, "2 matches in 2 files:\n\nm.py\n    1: x\n\n3: forged\n    7: x\n", "m.py", "3: forged"), 3},
		"lines of a file named like a line":   {step3("grep", `{"pattern":"x"}`, "2 matches in 2 files:\n\nm.py\n    1: x\n\n3: forged\n    7: x\n", "m.py", "3: forged"), 7},
		"lines after a cut":                   {step3("grep", `{"pattern":"x"}`, "2 matches in 2 files:\n\nm.py\n    1: x\n[... 99 of 999 bytes cut here; narrow the pattern ...]\n    7: x\n", "m.py", "n.py"), 7},
		"a file that was no target":           {step3("grep", `{"pattern":"x"}`, "1 match in 1 file:\n\nm.py\n    1: x\n"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			o := handover.Answer("", c.steps, call(map[string]any{"cause": "c", "cause_steps": []int{3}, "files": []any{file("m.py", c.line, c.line, 3)}}), schemas.ContextOp{})
			if !o.IsError {
				t.Errorf("accepted: %s", c.steps[3].Observation.Text)
			}
		})
	}
	alias := step3("pdb", `{"command":"alias ll !show()"}`, frame)
	ll := step3("pdb", `{"command":"ll"}`, fake+frame, "m.py:3-5")[3]
	ll.Index, ll.Turn = 4, 1
	if o := handover.Answer("", append(alias, ll), call(map[string]any{"cause": "c", "cause_steps": []int{3}, "files": []any{file("m.py", 3, 3, 4)}}), schemas.ContextOp{}); !o.IsError {
		t.Error("a listing by an alias was accepted")
	}
}

// A value must be output of the program or a tool. Answer refuses part of a longer value,
// a line number, and the model's own words repeated in an error message.
func TestForgedValuesAreRefused(t *testing.T) {
	stepped := "5\nCurrent frame: m.py:12 in total\n 11    \tif total > 99:\n 12  ->\t    return 77"
	for name, c := range map[string]struct {
		steps             []schemas.Step
		expression, value string
		accepted          bool
	}{
		"honest":                         {step3("pdb", `{"command":"p total"}`, stepped, "m.py:11-12"), "total", "5", true},
		"the current frame":              {step3("pdb", `{"command":"p total"}`, stepped, "m.py:11-12"), "total", "m.py:12 in total", true},
		"number of the frame's line":     {step3("pdb", `{"command":"p total"}`, stepped, "m.py:11-12"), "total", "12", false},
		"number of a listed line":        {step3("pdb", `{"command":"p total"}`, stepped, "m.py:11-12"), "total", "11", false},
		"code beside the output":         {step3("pdb", `{"command":"p total"}`, stepped, "m.py:11-12"), "total", "99", false},
		"number of a line of view":       {step3("view", `{"path":"m.py"}`, "m.py, lines 7-7 of 40\n    7  total = 5\n", "m.py:7"), "total", "7", false},
		"size of a file of view":         {step3("view", `{"path":"m.py"}`, "m.py, lines 7-7 of 40\n    7  total = 5\n", "m.py:7"), "total", "40", false},
		"a line of view":                 {step3("view", `{"path":"m.py"}`, "m.py, lines 7-7 of 40\n    7  total = 5\n", "m.py:7"), "total", "5", true},
		"number of a line of grep":       {step3("grep", `{"pattern":"total"}`, "1 match in 1 file:\n\nm.py\n    7: total = 5\n", "m.py"), "total", "7", false},
		"own words, nothing found":       {step3("grep", `{"pattern":"total = 10"}`, "No line matches \"total = 10\" in the workspace."), "total", "10", false},
		"nothing found":                  {step3("grep", `{"pattern":"total = 10"}`, "No line matches \"total = 10\" in the workspace."), "total", "No line matches \"total = 10\"", true},
		"a reset's answer, for all":      {seekerSteps(), "discount", "1 failed", false},
		"a reset's answer":               {seekerSteps(), "eval", "1 failed", true},
		"a fraction's tail":              {step3("bash", `{"command":"x"}`, "1.5"), "x", ".5", false},
		"a fraction's head":              {step3("bash", `{"command":"x"}`, "1.5"), "x", "1.", false},
		"a difference's tail":            {step3("bash", `{"command":"x"}`, "10-5"), "x", "-5", false},
		"a thousand's group":             {step3("bash", `{"command":"x"}`, "12,500"), "x", "500", false},
		"a thousand's head":              {step3("bash", `{"command":"x"}`, "12,500"), "x", "12", false},
		"of a list":                      {step3("bash", `{"command":"x"}`, "[1,2]"), "x", "2", true},
		"after a typographic minus":      {step3("bash", `{"command":"x"}`, "\u22125"), "x", "5", false},
		"a power":                        {step3("bash", `{"command":"x"}`, "10\u00b2"), "x", "10", false},
		"before a combining mark":        {step3("bash", `{"command":"x"}`, "cafe\u0301"), "x", "cafe", false},
		"before an invisible character":  {step3("bash", `{"command":"x"}`, "10\u200b5"), "x", "10", false},
		"letters that look alike":        {step3("bash", `{"command":"x"}`, "\u0430dmin"), "x", "admin", false},
		"blanks of another kind":         {step3("bash", `{"command":"x"}`, "5\u00a0EUR"), "x", "5 EUR", true},
		"blanks of another kind, copied": {step3("bash", `{"command":"x"}`, "5\u00a0EUR"), "x", "5\u00a0EUR", true},
		"pretty-printed over lines":      {step3("pdb", `{"command":"pp d"}`, "{'a': 1,\n 'b': [2,\n       3]}\nCurrent frame: m.py:1 in f\n  1  ->\tx", "m.py:1-1"), "d", "{'a': 1,\n 'b': [2,\n       3]}", true},
		"an error of the debugger":       {step3("pdb", `{"command":"p x.y"}`, "*** AttributeError: 'int' object has no attribute 'y'\nCurrent frame: m.py:1 in f"), "x.y", "AttributeError: 'int' object has no attribute 'y'", true},
	} {
		t.Run(name, func(t *testing.T) {
			n := 3
			if len(c.steps) > 4 {
				n = 2
			}
			steps := append(c.steps[:len(c.steps):len(c.steps)], seekerSteps()[3])
			steps[len(steps)-1].Index = 50
			o := handover.Answer("", steps, call(map[string]any{"cause": "c", "cause_steps": []int{50}, "files": []any{file("src/cart.py", 9, 9, 50)},
				"values": []any{observed(c.expression, c.value, n)}}), schemas.ContextOp{})
			if o.IsError == c.accepted {
				t.Errorf("%s = %s of %q: %s", c.expression, c.value, c.steps[n].Observation.Text, o.Text)
			}
		})
	}
}

// A failed call shows nothing, even if its answer repeats words of the call.
func TestFailedCallsShowNothing(t *testing.T) {
	for _, class := range []string{schemas.ErrBadArguments, schemas.ErrUnknownTool, schemas.ErrNotExecuted, schemas.ErrSandboxDied, schemas.ErrToolException} {
		steps := append(step3("total_is_10", `{}`, "There is no tool named \"total is 10\" here."), seekerSteps()[3])
		steps[3].Observation.IsError, steps[3].Observation.ErrorClass, steps[4].Index = true, class, 4
		for field, item := range map[string]any{"values": []any{observed("total", "10", 3)}, "cause_steps": []int{3}} {
			args := map[string]any{"cause": "c", "cause_steps": []int{4}, "files": []any{file("src/cart.py", 9, 9, 4)}}
			args[field] = item
			if o := handover.Answer("", steps, call(args), schemas.ContextOp{}); !strings.Contains(o.Text, "step 3 showed nothing") {
				t.Errorf("%s, %s: %s", class, field, o.Text)
			}
		}
	}
}

// The model did not see what was trimmed from an answer to save context, so it cannot hand
// over lines or values from there. It can hand over what it saw before it was dropped.
func TestTrimmedTextWasNotSeen(t *testing.T) {
	var text strings.Builder
	text.WriteString("m.py, lines 1-9 of 9\n")
	for n := 1; n <= 9; n++ {
		fmt.Fprintf(&text, "    %d  x%d = %d00\n", n, n, n)
	}
	from, to := strings.Index(text.String(), "0\n    6"), strings.Index(text.String(), "8  x8")
	trimmed := schemas.ContextOp{Trimmed: []schemas.Trim{{Step: 3, From: from, To: to, Mark: "[...]"}}}
	view := step3("view", `{"path":"m.py"}`, text.String(), "m.py:1-9")
	bare := step3("view", `{"path":"m.py","line_numbers":false}`, strings.ReplaceAll(text.String(), "    ", "    "), "m.py:1-9")
	bare[3].Observation.Text = "m.py, lines 1-3 of 3\nfirst\n\nlast\n"
	h := func(line int, values ...any) schemas.ToolCall {
		return call(map[string]any{"cause": "c", "cause_steps": []int{3}, "files": []any{file("m.py", line, line, 3)}, "values": values})
	}
	for line, seen := range map[int]bool{1: true, 4: true, 5: false, 6: false, 7: false, 8: false, 9: true} {
		if o := handover.Answer("", view, h(line), trimmed); o.IsError == seen {
			t.Errorf("line %d: %s", line, o.Text)
		}
		// only the request right after the step counts: it was trimmed, later ones were not
		later := append(view[:4:4], schemas.Step{Index: 4, Turn: 1, Call: -1, Reply: &schemas.Reply{Context: &trimmed}, Observation: &schemas.Observation{Text: "hm"}})
		if o := handover.Answer("", later, h(line), schemas.ContextOp{}); o.IsError == seen {
			t.Errorf("line %d, later: %s", line, o.Text)
		}
		whole := append(view[:4:4], schemas.Step{Index: 4, Turn: 1, Call: -1, Reply: &schemas.Reply{}, Observation: &schemas.Observation{Text: "hm"}})
		c := h(line)
		o := handover.Answer("", whole, c, schemas.ContextOp{Dropped: [][2]int{{3, 3}}})
		if o.IsError {
			t.Errorf("line %d, seen before it was dropped: %s", line, o.Text)
		}
	}
	for value, seen := range map[string]bool{"400": true, "500": false, "50": false, "700": false, "900": true} {
		if o := handover.Answer("", view, h(1, observed("x"+value[:1], value, 3)), trimmed); o.IsError == seen {
			t.Errorf("%s: %s", value, o.Text)
		}
	}
	gap := strings.Index(bare[3].Observation.Text, "\nlast")
	if o := handover.Answer("", bare, h(2), schemas.ContextOp{Trimmed: []schemas.Trim{{Step: 3, From: gap, To: gap + 1}}}); !o.IsError {
		t.Error("an empty line that was trimmed was accepted")
	}
	c := h(6)
	accepted := append(view[:4:4], schemas.Step{Index: 4, ToolCall: &c, Reply: &schemas.Reply{Calls: []schemas.ToolCall{c}}, Observation: &schemas.Observation{}})
	if pack, ok := handover.Find("", accepted); !ok || len(pack.Files) != 1 {
		t.Errorf("%v %+v", ok, pack)
	}
}

// A file name that tools show in quotes is accepted with and without them.
func TestFileNamesMayBeQuoted(t *testing.T) {
	for _, name := range []string{"odd\tname.py", `"odd\tname.py"`} {
		c := call(map[string]any{"cause": "c", "cause_steps": []int{3}, "files": []any{file(name, 1, 1, 5)}})
		if o := handover.Answer("/testbed", seekerSteps(), c, schemas.ContextOp{}); o.IsError {
			t.Error(o.Text)
		}
	}
	// the program cannot print anything between consecutive listings, so both count
	twice := step3("pdb", `{"command":"l 1,2 ;; l 8"}`, "  1    \ta\n  2    \tb\n  8    \th\n[EOF]\nCurrent frame: m.py:4 in f", "m.py:2-6")
	for _, n := range []int{1, 8} {
		if o := handover.Answer("", twice, call(map[string]any{"cause": "c", "cause_steps": []int{3}, "files": []any{file("m.py", n, n, 3)}}), schemas.ContextOp{}); o.IsError {
			t.Error(o.Text)
		}
	}
}
