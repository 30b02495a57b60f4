package handover_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/agents/handover"
	"github.com/tracesmith/tracesmith/schemas"
)

// seekerSteps returns the steps of an agent that looks for the cause of a bug (the seeker) and
// can hand over what it finds.
func seekerSteps() []schemas.Step {
	steps := []schemas.Step{
		{Turn: -1, Source: "system", Text: "sys"},
		{Turn: -1, Source: "user", Text: "problem"},
		{Turn: -1, Source: "env", Text: "1 failed", Observation: &schemas.Observation{Source: "eval", Text: "1 failed in 0.2s"}},
	}
	add := func(tool, args, text string, targets ...string) {
		call := schemas.ToolCall{ID: fmt.Sprint("c", len(steps)), Name: tool, Arguments: json.RawMessage(args)}
		steps = append(steps, schemas.Step{Turn: len(steps) - 3, Source: "agent", ToolCall: &call,
			Reply:       &schemas.Reply{Calls: []schemas.ToolCall{call}},
			Observation: &schemas.Observation{Source: tool, Text: text, Targets: targets}})
	}
	add("view", `{"path":"src/cart.py","start":9,"end":11}`, // step 3
		"src/cart.py, lines 9-11 of 40 (B marks a breakpoint)\n    9  def total(lines):\nB  10      # adds up\n   11      return sum(l.net for l in lines)\n[more lines follow]\n", "src/cart.py:9-11")
	add("view", `{"path":"notes.txt","line_numbers":false}`, "notes.txt, lines 1-3 of 3\n    9  not a number\n\nlast\n", "notes.txt:1-3")
	add("grep", `{"pattern":"net","context":1}`,
		"3 matches in 2 files:\n\nsrc/cart.py\n   10-     # adds up\n   11:     return sum(l.net for l in lines)\n    --\n   30: net = 2\n\n\"odd\\tname.py\"\n    1: net\n", "src/cart.py", "odd\tname.py")
	add("pdb", `{"command":"b src/cart.py:11 ;; c ;; p lines[0].net"}`, // step 6
		"Decimal('0.335')\n 99    \tprinted by the program\n> src/cart.py(11)total()\n 10    \t    # adds up\n 11 B->\t    return sum(l.net for l in lines)\n 12    \t", "src/cart.py:10-12")
	add("bash", `{"command":"cat src/cart.py"}`, "    9  def total(lines):\nin all \x1b[1m-13.50\x1b[0m EUR\n")
	steps = append(steps, schemas.Step{Turn: 5, Call: -1, Source: "agent", Reply: &schemas.Reply{Message: "hm"}, Observation: &schemas.Observation{Source: "env", Text: "call a tool"}})
	for i := range steps {
		steps[i].Index = i
	}
	return steps
}

func call(args map[string]any) schemas.ToolCall {
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return schemas.ToolCall{ID: "h", Name: handover.Name, Arguments: raw}
}

func file(path string, start, end, step int) map[string]any {
	return map[string]any{"path": path, "start": start, "end": end, "step": step}
}

func observed(expression, value string, step int) map[string]any {
	return map[string]any{"expression": expression, "value": value, "step": step}
}

func TestPackQuotesWhatWasShown(t *testing.T) {
	steps := seekerSteps()
	c := call(map[string]any{"cause": " total() adds\nunrounded nets. ", "cause_steps": []any{"6", 3.0},
		"files": []any{
			file("/testbed/src/cart.py", 10, 11, 3), file("./notes.txt", 1, 3, 4), file("src/cart.py", 30, 30, 5), file("odd\tname.py", 1, 1, 5),
			map[string]any{"path": "src/cart.py", "start": "12", "step": 6, "note": "nothing there", "end": nil},
		},
		"values": []any{observed("lines[0].net", "Decimal('0.335')", 6), observed("eval", "1 failed", 2), observed("return", "return   sum(l.net\nfor l in lines)", 3), observed("in all", "-13.50 EUR", 7)},
	})
	o := handover.Answer("/testbed", steps, c, schemas.ContextOp{})
	if o.IsError || o.Text != "Handed over: 5 code excerpts and 4 values (for 3 of them, it is not verified that the value belongs to its expression). Your part of the work is done." || o.Source != handover.Name {
		t.Fatalf("%+v", o)
	}
	steps = append(steps, schemas.Step{Index: len(steps), Turn: 6, ToolCall: &c, Reply: &schemas.Reply{Calls: []schemas.ToolCall{c}}, Observation: &o})
	pack, ok := handover.Find("/testbed", steps)
	want := handover.Pack{Cause: "total() adds unrounded nets.", CauseSteps: []int{6, 3},
		Files: []handover.Excerpt{
			{Path: "src/cart.py", Start: 10, End: 11, Step: 3, Tool: "view", Lines: []handover.Line{{Number: 10, Text: "    # adds up"}, {Number: 11, Text: "    return sum(l.net for l in lines)"}}},
			{Path: "notes.txt", Start: 1, End: 3, Step: 4, Tool: "view", Lines: []handover.Line{{Number: 1, Text: "    9  not a number"}, {Number: 2}, {Number: 3, Text: "last"}}},
			{Path: "src/cart.py", Start: 30, End: 30, Step: 5, Tool: "grep", Lines: []handover.Line{{Number: 30, Text: "net = 2"}}},
			{Path: "odd\tname.py", Start: 1, End: 1, Step: 5, Tool: "grep", Lines: []handover.Line{{Number: 1, Text: "net"}}},
			{Path: "src/cart.py", Start: 12, End: 12, Step: 6, Tool: "pdb", Note: "nothing there", Lines: []handover.Line{{Number: 12}}},
		},
		Values: []handover.Value{
			{Expression: "lines[0].net", Value: "Decimal('0.335')", Step: 6, Tool: "pdb", Unverified: true}, {Expression: "eval", Value: "1 failed", Step: 2, Tool: "eval"},
			{Expression: "return", Value: "return sum(l.net for l in lines)", Step: 3, Tool: "view", Unverified: true}, {Expression: "in all", Value: "-13.50 EUR", Step: 7, Tool: "bash", Unverified: true},
		}}
	if diff := cmp.Diff(want, pack); !ok || diff != "" {
		t.Error(ok, diff)
	}
	if _, ok := handover.Find("/testbed", seekerSteps()); ok {
		t.Error("Find returned a pack, but nothing was handed over")
	}
}

// A call with an item that its step did not show is refused as a whole, with the reason.
func TestUnseenItemsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		field string
		item  any
		want  string
	}{
		"a step that is not there":       {"files", file("src/cart.py", 9, 9, 99), "files[1] (src/cart.py): step 99 does not exist"},
		"the problem itself":             {"files", file("src/cart.py", 9, 9, 1), "step 1 showed nothing"},
		"a reply without a call":         {"files", file("src/cart.py", 9, 9, 8), "step 8 did not call a tool"},
		"a line after those shown":       {"files", file("src/cart.py", 9, 12, 3), "step 3 did not show line 12 of this file, only 9-11"},
		"lines between two matches":      {"files", file("src/cart.py", 10, 30, 5), "step 5 did not show line 12 of this file, only 10-11, 30"},
		"another file":                   {"files", file("src/tax.py", 9, 9, 3), "step 3 did not show this file, but src/cart.py"},
		"a program's output":             {"files", file("src/cart.py", 99, 99, 6), "step 6 did not show line 99 of this file, only 10-12"},
		"output of a shell":              {"files", file("src/cart.py", 9, 9, 7), "step 7 is an answer of bash that shows no numbered lines"},
		"a line after the end of a file": {"files", file("notes.txt", 4, 4, 4), "step 4 did not show line 4 of this file, only 1-3"},
		"no range":                       {"files", file("src/cart.py", 11, 9, 3), "lines 11-9 are not a range"},
		"a huge range":                   {"files", file("src/cart.py", 1, 1<<40, 3), "too many"},
		"a value that was not shown":     {"values", observed("lines[0].net", "Decimal('0.336')", 6), `values[0] (lines[0].net): step 6 did not show the value "Decimal('0.336')"`},
		"part of a number":               {"values", observed("in all", "13.50", 7), `did not show the value "13.50"`},
		"digits of a number":             {"values", observed("in all", "-13", 7), `did not show the value "-13"`},
		"part of a word":                 {"values", observed("lines", "ecimal", 6), `did not show`},
		"another expression":             {"values", observed("lines[1].net", "Decimal('0.335')", 6), `step 6 neither asked for "lines[1].net" nor showed it`},
		"the value of another step":      {"values", observed("lines", "Decimal('0.335')", 3), "step 3 did not show the value"},
		"no value":                       {"values", observed("lines", " ", 6), "must both be given"},
		"no cause":                       {"cause", " ", "cause: is empty"},
		"a cause from nowhere":           {"cause_steps", []int{1, 44}, "cause_steps: step 44 does not exist"},
		"no step for the cause":          {"cause_steps", []int{}, "name at least one"},
		"a whole log":                    {"values", observed("in all", "-13.50 "+strings.Repeat("x", 5000), 7), "at most 4000"},
		"an essay":                       {"cause", strings.Repeat("because ", 200), "one sentence of at most"},
		"no code":                        {"files", nil, "give at least one excerpt"},
	} {
		t.Run(name, func(t *testing.T) {
			args := map[string]any{"cause": "c", "cause_steps": []int{3}, "files": []any{file("src/cart.py", 9, 9, 3)}, "values": []any{}}
			switch item := c.item.(type) {
			case map[string]any:
				args[c.field] = append(args[c.field].([]any), item)
			case nil:
				args[c.field] = []any{}
			default:
				args[c.field] = item
			}
			o := handover.Answer("/testbed", seekerSteps(), call(args), schemas.ContextOp{})
			if !o.IsError || o.ErrorClass != schemas.ErrUserError || !strings.Contains(o.Text, c.want) || !strings.HasPrefix(o.Text, "Nothing was handed over:") {
				t.Errorf("%s: %s", o.ErrorClass, o.Text)
			}
		})
	}
	for _, raw := range []string{``, `{`, `[]`, `{"cause":1}`, `{"cause":"c","cause_steps":3,"files":"src"}`, `{"cause":"c","cause_steps":[1],"files":[{"path":"x"}]}`} {
		c := schemas.ToolCall{Name: handover.Name, Arguments: []byte(raw)}
		if o := handover.Answer("/testbed", seekerSteps(), c, schemas.ContextOp{}); !o.IsError || o.ErrorClass != schemas.ErrBadArguments || !strings.Contains(o.Text, `"cause_steps":[9]`) {
			t.Errorf("%s: %+v", raw, o)
		}
	}
}

// The seeker had not seen the answers to other calls of the same reply.
func TestAnswersOfTheSameReplyAreNoEvidence(t *testing.T) {
	steps := seekerSteps()
	h := call(map[string]any{"cause": "c", "cause_steps": []int{3}, "files": []any{file("src/cart.py", 9, 9, 3), file("src/cart.py", 9, 9, 9)}})
	view := *steps[3].ToolCall
	steps = append(steps, schemas.Step{Index: 9, Turn: 6, Source: "agent", ToolCall: &view,
		Reply: &schemas.Reply{Calls: []schemas.ToolCall{view, h}}, Observation: steps[3].Observation})
	if o := handover.Answer("", steps, h, schemas.ContextOp{}); !strings.Contains(o.Text, "step 9 belongs to the same reply as this handover") {
		t.Error(o.Text)
	}
	steps[9].Reply.Calls = steps[9].Reply.Calls[:1] // the handover is in a later reply
	if o := handover.Answer("", steps, h, schemas.ContextOp{}); o.IsError {
		t.Error(o.Text)
	}
}

// Answer never panics, whatever a tool prints or a call contains. A pack holds only text that was shown.
func FuzzAnswer(f *testing.F) {
	for _, s := range seekerSteps() {
		if s.ToolCall != nil {
			f.Add(s.ToolCall.Name, s.Observation.Text, strings.Join(s.Observation.Targets, "|"), string(call(map[string]any{"cause": "c", "cause_steps": []int{0}, "files": []any{file("src/cart.py", 9, 9, 0)}, "values": []any{observed("x", "1", 0)}}).Arguments))
		}
	}
	f.Add("view", "", "a:1-9223372036854775807", `{"cause":"c","cause_steps":[0],"files":[{"path":"a","start":1,"step":0}]}`)
	f.Fuzz(func(t *testing.T, tool, text, target, args string) {
		view := schemas.ToolCall{Name: tool, Arguments: []byte(args)}
		steps := []schemas.Step{{ToolCall: &view, Reply: &schemas.Reply{Calls: []schemas.ToolCall{view}}, Observation: &schemas.Observation{Text: text, Targets: []string{target}}}}
		c := schemas.ToolCall{Name: handover.Name, Arguments: []byte(args)}
		o := handover.Answer("/testbed", steps, c, schemas.ContextOp{})
		steps = append(steps, schemas.Step{Index: 1, ToolCall: &c, Reply: &schemas.Reply{Calls: []schemas.ToolCall{c}}, Observation: &o})
		pack, ok := handover.Find("/testbed", steps)
		if ok == o.IsError {
			t.Fatal(o.Text)
		}
		text = schemas.Plain(text)
		for _, e := range pack.Files {
			for _, l := range e.Lines {
				if !strings.Contains(text, l.Text) {
					t.Errorf("%q was never shown", l.Text)
				}
			}
		}
		for _, v := range pack.Values {
			if !strings.Contains(text, v.Value) {
				t.Errorf("%q was never shown", v.Value)
			}
		}
	})
}

var update = flag.Bool("update", false, "rewrite the golden file; then say so in CHANGELOG.md, under Dataset")

// The tool's description is part of the dataset.
func TestToolDescription(t *testing.T) {
	s := handover.Schema()
	got := s.Description + "\n" + string(s.Parameters) + "\n"
	golden := filepath.Join("testdata", "handover.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" || s.Name != handover.Name {
		t.Error(diff)
	}
}

func TestPackIsBounded(t *testing.T) {
	var text strings.Builder
	text.WriteString("big.py, lines 1-40 of 40\n")
	for n := 1; n <= 40; n++ {
		fmt.Fprintf(&text, " %4d  %s\n", n, strings.Repeat("x", 1100))
	}
	view := schemas.ToolCall{ID: "v", Name: "view", Arguments: json.RawMessage(`{"path":"big.py"}`)}
	steps := []schemas.Step{{Reply: &schemas.Reply{Calls: []schemas.ToolCall{view}}, ToolCall: &view, Observation: &schemas.Observation{Text: text.String(), Targets: []string{"big.py:1-40"}}}}
	whole := file("big.py", 1, 40, 0)
	for n, want := range map[int]string{1: "Handed over: 1 code excerpt and 0 values.", 2: "have 88000 bytes in total", 26: "have 1040 lines in total", 41: "at most 40 of each"} {
		var files []any
		for range n {
			files = append(files, whole)
		}
		o := handover.Answer("", steps, call(map[string]any{"cause": "c", "cause_steps": []int{0}, "files": files}), schemas.ContextOp{})
		if !strings.Contains(o.Text, want) {
			t.Errorf("%d times the file: %s, want %s", n, o.Text, want)
		}
	}
}
