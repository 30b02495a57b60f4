package write

import (
	"slices"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/schemas"
)

// An edit after which the tests fail can be taken back. After that, the agent has changed nothing.
func TestUndo(t *testing.T) {
	const failing = "The tests do not pass. 0 passed, 1 failed.\n  tests/test_p.py::test_f (failed)\n"
	step := func(tool string, args map[string]any, answer string, claims ...schemas.Claim) schemas.Step {
		call := schemas.NewToolCall(tool, args)
		o := &schemas.Observation{Text: answer}
		if file, isView := args["path"].(string); isView && tool == "view" {
			o.Targets = []string{file + ":1-2"}
		}
		return schemas.Step{ToolCall: &call, Observation: o, Reply: &schemas.Reply{Claims: claims}}
	}
	edit := func(text string) schemas.Step {
		return step("edit", map[string]any{"path": "p.py", "start": 2, "end": 2, "new_code": text}, "Replaced line 2 of p.py with 1 line.")
	}
	steps := []schemas.Step{
		step("eval", nil, failing),
		step("view", map[string]any{"path": "tests/test_p.py"}, "tests/test_p.py, lines 1-2 of 2\n    1  def test_f():\n    2      assert f(1) == 3", schemas.Claim{Kind: schemas.ClaimFails, Test: "tests/test_p.py::test_f"}),
		step("view", map[string]any{"path": "p.py"}, "p.py, lines 1-2 of 2\n    1  def f(a):\n    2      return a + 1"),
		edit("    return a - 1"),
	}
	undo := func() (Option, bool) {
		for _, o := range Read(&agents.Transcript{Steps: steps}).Options() {
			if o.Kind == Undo {
				return o, true
			}
		}
		return Option{}, false
	}
	if _, ok := undo(); ok {
		t.Error("the edit can be taken back before the tests have run")
	}
	steps = append(steps, step("eval", nil, failing))
	o, ok := undo()
	if !ok || o.Statement != "return a - 1" || o.say.claims[0].Test != "tests/test_p.py::test_f" {
		t.Fatalf("%v: %+v", ok, o)
	}
	if want := edit("    return a + 1").ToolCall; string(o.call.Arguments) != string(want.Arguments) {
		t.Errorf("%s, want %s", o.call.Arguments, want.Arguments)
	}
	other := steps
	steps = append(slices.Clone(steps[:len(steps)-1]), step("eval", nil, strings.Replace(failing, "test_f", "test_g", 1)))
	if o, ok := undo(); !ok || !strings.Contains(o.say.text, "`tests/test_p.py::test_f`") || strings.Contains(o.say.text, "still fails") {
		t.Errorf("the followed test passes: %v %q", ok, o.say.text)
	}
	steps = append(slices.Clone(steps[:len(steps)-1]), step("eval", nil, strings.Replace(strings.Replace(failing, "test_f", "test_g", 1), "1 failed", "27 failed", 1)))
	if o, ok := undo(); !ok || !strings.Contains(o.say.text, "Now 27 tests fail instead of 1.") || strings.Contains(o.say.text, "test_f") {
		t.Errorf("the answer names only the first failing tests: %v %q", ok, o.say.text)
	}
	cut := step("eval", nil, "The tests did not finish in time and were stopped. The running test was tests/test_p.py::test_f.")
	cut.Observation.TimedOut = true
	steps = append(slices.Clone(steps[:len(steps)-1]), cut)
	if o, ok := undo(); !ok || len(o.say.claims) > 0 || strings.Contains(o.say.text, "test_f") {
		t.Errorf("the tests did not end: %v %q", ok, o.say.text)
	}
	steps = append(other, edit("    return a + 1"))
	n := Read(&agents.Transcript{Steps: steps})
	if n.Edits != 0 || !n.Undone || n.text(Place{"p.py", 2}) != "return a + 1" {
		t.Errorf("%d edits, undone %v, line 2 is %q", n.Edits, n.Undone, n.text(Place{"p.py", 2}))
	}
	if _, ok := undo(); ok {
		t.Error("an edit that was taken back can be taken back again")
	}
}
