package write

import (
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/schemas"
)

// A test whose report is missing in the output of all tests is run alone, and then read where it fails.
func TestRunAlone(t *testing.T) {
	var tr transcript
	tr.Task.Entrypoint = "python3 -m pytest -q"
	tr.Tools = []schemas.ToolSchema{{Name: "bash"}, {Name: "pdb"}}
	tr.Steps = []schemas.Step{{Text: "The tests are run with: python3 -m pytest -q"}}
	step := func(name, argument, value, text string, claims ...schemas.Claim) {
		tr.Steps = append(tr.Steps, schemas.Step{Index: len(tr.Steps), Reply: &schemas.Reply{Claims: claims}, Observation: &schemas.Observation{Text: text},
			ToolCall: &schemas.ToolCall{Name: name, Arguments: schemas.NewToolCall(name, map[string]any{argument: value}).Arguments}})
	}
	step("eval", "x", "", "2 failed.\n  tests/test_a.py::test_x (failed)\n  tests/test_a.py::test_y (failed)\n\n____ test_x ____\n\ntests/test_a.py:3: AssertionError\n")
	var kinds []string
	options := Read(&tr.Transcript).Options()
	for _, o := range options {
		kinds = append(kinds, o.Kind+" "+o.Test)
	}
	if got := strings.Join(kinds, ", "); got != "read_test tests/test_a.py::test_x, run_alone tests/test_a.py::test_y, read_test tests/test_a.py::test_y, give_up " {
		t.Fatalf("options: %s", got)
	}
	alone := options[1]
	command := argument(schemas.Step{ToolCall: &alone.call}, "command")
	if command != "python3 -m pytest -q tests/test_a.py::test_y" {
		t.Errorf("command: %s", command)
	}
	step("bash", "command", command, "F\n=== FAILURES ===\n____ test_y ____\n\n    def test_y():\n>       assert f(1) == 2\nE       assert 3 == 2\n\ntests/test_a.py:9: AssertionError\n=== short test summary info ===\n", alone.say.claims...)
	n := Read(&tr.Transcript)
	if n.Test == nil || n.Test.ID != "tests/test_a.py::test_y" || n.Test.At != (Place{"tests/test_a.py", 9}) || n.Test.Message != "assert 3 == 2" {
		t.Fatalf("after the run: %+v", n.Test)
	}
	if o := n.Options(); len(o) != 2 || o[0].Kind != ReadTest || !strings.Contains(o[0].say.text, "assert 3 == 2") {
		t.Errorf("after the run: %+v", o)
	}
	step("view", "path", "tests/test_a.py", "def test_y():")
	if !Read(&tr.Transcript).hasRead {
		t.Error("the agent does not know that it has read the test")
	}
}
