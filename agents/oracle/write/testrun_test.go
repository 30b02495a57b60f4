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

// The error of a chain that ends the test is its last one.
func TestLastError(t *testing.T) {
	pytest := "F\n____ test_y ____\n\nE   KeyError: 'a'\n\ntests/test_a.py:9: KeyError\n\nThe above exception was the direct cause of the following exception:\n\n" +
		"E   ValueError: no\n\na.py:3: ValueError\n\nDuring handling of the above exception, another exception occurred:\n\nE   LookupError: last\n\na.py:5: LookupError\n"
	unittest := "F\n" + strings.Repeat("=", 70) + "\nERROR: test_y (tests.test_a.T)\n" + strings.Repeat("-", 70) + "\nTraceback (most recent call last):\n  File \"/testbed/a.py\", line 3, in f\n    x\nKeyError: 'a'\n\n" +
		"During handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  File \"/testbed/tests/test_a.py\", line 9, in test_y\n    f()\nLookupError: last\n"
	for _, text := range []string{"1 failed.\n  tests/test_a.py::test_y (failed)\n" + pytest, "1 failed.\n  tests.test_a.T.test_y (failed)\n" + unittest} {
		if f := readFailures(text, "/testbed"); len(f) != 1 || f[0].Message != "LookupError: last" {
			t.Errorf("%+v", f)
		}
	}
}

// A generated test begins at the function that contains the line at which it fails, not at one with its name.
func TestStartOfGeneratedTest(t *testing.T) {
	n := &Notes{source: *program(3, `
def generate(name):
    def test(self):
        assert f(name)
    return test
`), Test: &Failure{ID: "p.py::T::test_markdown", At: Place{"p.py", 5}}}
	if o := n.startOfTest(); o != nil {
		t.Errorf("the first line of the test is shown, but the agent would read more: %+v", o)
	}
	n.source = *program(4, "    def test(self):\n        assert f(name)\n")
	if o := n.startOfTest(); len(o) != 1 {
		t.Error("the agent does not read the lines before the test")
	}
}

// A report from whose middle lines were cut may end with lines of another test, so it is not read.
func TestCutReport(t *testing.T) {
	text := "2 failed.\n  tests/test_a.py::test_x (failed)\n  tests/test_a.py::test_y (failed)\n\n____ test_x ____\n\n[... 514690 of 580094 bytes cut here; run a single test ...]\n\na.py:7: KeyError\nE   KeyError: 1\n" +
		"____ test_y ____\n\nE   ValueError: no\n\ntests/test_a.py:9: ValueError\n"
	f := readFailures(text, "/testbed")
	if len(f) != 2 || f[0].report != "" || f[0].Message != "" || len(f[0].Frames) > 0 || f[1].Message != "ValueError: no" {
		t.Errorf("%+v", f)
	}
}
