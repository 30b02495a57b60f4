package metrics

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// answered returns the row of a tool call and its observation.
func answered(tool, arguments, observation string) schemas.StepRow {
	return schemas.StepRow{ToolName: &tool, ArgumentsJSON: &arguments, Observation: &observation, ObservationSHA256: new(schemas.HashBytes([]byte(observation)))}
}

// debugging returns the row of a debugger command. The debugger printed output, is stopped at a
// line of f in m.py and lists all four lines of f.
func debugging(command, output string, line int) schemas.StepRow {
	arguments, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		panic(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nCurrent frame: m.py:%d in f\n", output, line)
	for i, text := range []string{"def f(x, y):", "    z = x + y", "    w = z * 2", "    return w"} {
		mark := "  "
		if i+1 == line {
			mark = "->"
		}
		fmt.Fprintf(&b, "%3d  %s\t%s\n", i+1, mark, text)
	}
	return answered("pdb", string(arguments), b.String())
}

// refused returns the row of a call that was not executed.
func refused(r schemas.StepRow) schemas.StepRow {
	r.ErrorClass = new(schemas.ErrNotExecuted)
	return r
}

// step is a row, and whether its observation has new information.
type step struct {
	row  schemas.StepRow
	want bool
}

const report = "The tests do not pass. 1 passed, 1 failed.\n  t.py::test_f (failed)\n\n    def test_f():\n>       assert f(1, 2) == 5\nE       assert 6 == 5\n1 failed, 1 passed in %s\n"

var transcripts = map[string][]step{
	"values of the debugger": {
		{debugging("b m.py:2", "Breakpoint 1 set at m.py:2", 1), true},
		{debugging("c", "Breakpoint 1 hit.\n> m.py(2)f()\n-> z = x + y", 2), true},
		{debugging("a", "x = 1\ny = [<o at 0x7f11aa>, 'b, c']", 2), true},
		{debugging("p x", "1", 2), false},
		{debugging("pp y", "[<o at 0x7f22bb>,\n 'b, c']", 2), false},
		{debugging("p(x)", "1", 2), false},
		{debugging("print(x)", "1", 2), false},
		{debugging("p x, y", "(1, [<o at 0x7f11aa>, 'b, c'])", 2), false},
		{debugging("p locals()", "{'x': 1, 'y': [<o at 0x7f11aa>, 'b, c']}", 2), false},
		{debugging("p x ;; p y", "1\n[<o at 0x7f11aa>, 'b, c']", 2), false},
		{debugging("p x + 1", "2", 2), true},
		{debugging("x", "1", 2), false},
		{debugging("n", "> m.py(3)f()\n-> w = z * 2", 3), true},
		{debugging("p x", "1", 3), false},
		{debugging("p z", "3", 3), true},
		{debugging("locals()", "{'x': 1,\n 'y': [<o at 0x7f11aa>, 'b, c'],\n 'z': 3}", 3), false},
		{debugging("l", "  1  \tdef f(x, y):\n  2  \t    z = x + y", 3), false},
		{debugging("w", "  t.py(4)test_f()\n-> assert f(1, 2) == 5\n> m.py(3)f()\n-> w = z * 2", 3), true},
		{debugging("w", "  t.py(4)test_f()\n-> assert f(1, 2) == 5\n> m.py(3)f()\n-> w = z * 2", 3), false},
		{debugging("r", "--Return--\n> m.py(4)f()->6\n-> return w", 4), true},
		{debugging("retval", "6", 4), false},
		{debugging("c", "Breakpoint 1 hit.\n> m.py(2)f()\n-> z = x + y", 2), false}, // the same place, without other output
		{debugging("a", "x = 8\ny = []", 2), true},
		{debugging("p y", "[]", 2), false},
		{debugging("p q", "*** NameError: name 'q' is not defined", 2), true},
		{debugging("b m.py:2", "Breakpoint 2 set at m.py:2", 2), false},
		{debugging("tbreak m.py:4", "Breakpoint 3 set at m.py:4", 2), true},
	},
	"another frame": {
		{debugging("p x", "1", 2), true},
		{answered("pdb", `{"command":"p x"}`, "1\nCurrent frame: m.py:9 in g\n  9  ->\treturn f(x, 2)"), true},
	},
	"members": {
		{debugging("p vars(self)", "{'name': 'ada', 'tags': ['a', 'b']}", 2), true},
		{debugging("p self.name", "'ada'", 2), false},
		{debugging("p self.tags", "['a', 'b']", 2), false},
		{debugging("p self.age", "7", 2), true},
	},
	"what the program prints": {
		{debugging("n", "> m.py(3)f()\n-> w = z * 2\nhello", 3), true},
		{debugging("n", "> m.py(4)f()\n-> return w", 4), true},
		{debugging("c", "hello\n> m.py(3)f()\n-> w = z * 2", 3), false},
		{debugging("c", "bye\n> m.py(3)f()\n-> w = z * 2", 3), true},
	},
	"lines of files": {
		{answered("view", `{"path":"m.py"}`, "m.py, lines 1-2 of 4\n    1  def f(x, y):\n    2      z = x + y\n[lines 3-4 are not shown; view them with start=3]\n"), true},
		{answered("view", `{"path":"m.py","end":1}`, "m.py, lines 1-1 of 4 (B marks a breakpoint)\nB   1  def f(x, y):\n"), false},
		{answered("view", `{"path":"n.py","end":1}`, "n.py, lines 1-1 of 9\n    1  def f(x, y):\n"), true},
		{answered("grep", `{"pattern":"def"}`, "1 match in 1 file:\n\nm.py\n    1: def f(x, y):\n"), false},
		{answered("grep", `{"pattern":"z"}`, "2 matches in 1 file:\n\nm.py\n    2:     z = x + y\n    --\n    3:     w = z * 2\n"), true},
		{answered("bash", `{"command":"cat m.py"}`, "def f(x, y):\n    z = x + y\n    w = z * 2\n"), false},
		{answered("bash", `{"command":"grep -rn def ."}`, "./m.py:1:def f(x, y):\n"), false},
		{answered("bash", `{"command":"cat m.py"}`, "    return w\n"), true},
		{debugging("c", "> m.py(2)f()", 2), true},
		{answered("view", `{"path":"m.py","start":4}`, "m.py, lines 4-4 of 4\n    4      return w\n"), false},
		{answered("edit", `{"path":"m.py"}`, "Replaced line 4 of m.py with 1 line.\n--- a/m.py\n+++ b/m.py\n@@ -3,2 +3,2 @@\n     w = z * 2\n-    return w\n+    return w + 1\n"), false},
		{answered("view", `{"path":"m.py","start":4}`, "m.py, lines 4-4 of 4\n    4      return w + 1\n"), false},
		{answered("edit", `{"path":"m.py"}`, "Deleted line 1 of m.py.\n--- a/m.py\n+++ b/m.py\n@@ -1,2 +1,1 @@\n-def f(x, y):\n     z = x + y\n"), false},
		{answered("edit", `{"path":"k.py"}`, "k.py does not exist."), true},
	},
	"lines of files in a shell": {
		{answered("view", `{"path":"m.py"}`, "m.py, lines 1-4 of 9\n    1  def f(x, y):\n    2      z = x + y\n    3      w = z * 0x1000  # 5s\n    4      return w\n"), true},
		{answered("bash", `{"command":"grep -n -A 1 def m.py"}`, "1:def f(x, y):\n2-    z = x + y\n--\n4:    return w\n"), false},
		{answered("bash", `{"command":"cd /testbed && cat m.py | grep -in 'f('"}`, "1:def f(x, y):\n"), false},
		{answered("bash", `{"command":"rg --line-number def m.py"}`, "1:def f(x, y):\n"), false},
		{answered("bash", `{"command":"sed -n 2,3p m.py"}`, "    z = x + y\n    w = z * 0x1000  # 5s\n"), false},
		{answered("bash", `{"command":"head -n 1 m.py"}`, "def f(x, y):\n"), false},
		{answered("bash", `{"command":"nl m.py"}`, "     1\tdef f(x, y):\n     2\t    z = x + y\n"), false},
		{answered("bash", `{"command":"grep -n g m.py"}`, "7:def g(w):\n"), true},
		{answered("view", `{"path":"m.py","start":7}`, "m.py, lines 7-7 of 9\n    7  def g(w):\n"), false},
		{answered("bash", `{"command":"sed -n 9p m.py"}`, "    sleep(5s)\n"), true},
		{answered("view", `{"path":"m.py","start":9}`, "m.py, lines 9-9 of 9\n    9      sleep(5s)\n"), false},
		{answered("bash", `{"command":"python -c 'print(clock)'"}`, "2:    z = x + y\n"), true},
	},
	"long files": {
		{answered("pdb", `{"command":"n"}`, "> m.py(999)f()\n-> a = 1\nCurrent frame: m.py:999 in f\n999  ->\ta = 1\n1000   \tb = 2\n"), true},
		{answered("pdb", `{"command":"b"}`, "No breakpoints are set.\nCurrent frame: m.py:999 in f\n999  ->\ta = 1\n1000   \tb = 2\n"), true},
		{answered("pdb", `{"command":"l"}`, " 999  ->\ta = 1\n1000   \tb = 2\nCurrent frame: m.py:999 in f\n"), false},
		{answered("bash", `{"command":"cut -f1,2 t.tsv"}`, "1\t5\n2\t6\n"), true},
		{answered("bash", `{"command":"cut -f2,1 t.tsv"}`, "7\t5\n8\t6\n"), true},
	},
	"entries": {
		{answered("listdir", `{"depth":2}`, "/testbed/\n  a/\n    x.py\n  b.py\n"), true},
		{answered("listdir", `{}`, "/testbed/\n  a/\n  b.py\n"), false},
		{answered("listdir", `{"path":"a"}`, "/testbed/a/\n  x.py\n"), false},
		{answered("listdir", `{"path":"a"}`, "/testbed/a/\n  x.py\n  y.py*\n"), true},
	},
	"reports of tests": {
		{answered("eval", `{}`, fmt.Sprintf(report, "0.02s")), true},
		{answered("eval", `{}`, fmt.Sprintf(report, "1.31s")), false},
		{answered("eval", `{}`, "The tests pass. 2 passed, 0 failed.\n2 passed in 0.01s\n"), true},
	},
	"silence": {
		{answered("bash", `{"command":"true"}`, ""), true},
		{answered("bash", `{"command":"true"}`, ""), false},
		{answered("bash", `{"command":"test -f m.py"}`, ""), true},
	},
	"refused calls": {
		{refused(debugging("p x", "not run", 2)), true},
		{refused(debugging("p y", "not run", 2)), false},
	},
	"nothing found": {
		{answered("grep", `{"pattern":"zap"}`, `No line matches "zap" in the workspace.`), true},
		{answered("grep", `{"pattern":"zap"}`, `No line matches "zap" in the workspace.`), false},
		{answered("grep", `{"pattern":"zip"}`, `No line matches "zip" in the workspace.`), true},
	},
	"an import": {
		{answered("pdb", `{"command":"p x"}`, "Pdb command output:\n1\n\nCurrent frame:\nm.py\n\nContext around the current frame:\n  1  ->\tdef f(x):\n[EOF]"), true},
		{answered("pdb", `{"command":"n"}`, "Pdb command output:\n> m.py(2)f()\n-> return x\n\nCurrent frame:\nm.py\n\nContext around the current frame:\n  1  \tdef f(x):\n  2  ->\treturn x\n[EOF]"), true},
		{answered("pdb", `{"command":"p x"}`, "Pdb command output:\n1\n\nCurrent frame:\nm.py\n\nContext around the current frame:\n  1  \tdef f(x):\n  2  ->\treturn x\n[EOF]"), false},
	},
}

func TestNewsIsInformationNotShownBefore(t *testing.T) {
	for name, steps := range transcripts {
		var rows []schemas.StepRow
		var want, got []string
		for i, s := range steps {
			rows = append(rows, s.row)
			want = append(want, fmt.Sprintf("%d %s %s: %t", i, *s.row.ToolName, *s.row.ArgumentsJSON, s.want))
		}
		MarkNewInformation(Read(rows, ""))
		for i, r := range rows {
			got = append(got, fmt.Sprintf("%d %s %s: %t", i, *r.ToolName, *r.ArgumentsJSON, *r.IsNewInformation))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// In recorded episodes, a value that was shown among the arguments of a function is not new when it
// is printed later, although the source listing next to it looks different.
func TestNewsOfRecordedEpisodes(t *testing.T) {
	files, err := filepath.Glob("../../schemas/testdata/1.3.0/run/staging/*/*.json.zst")
	if err != nil || len(files) != 2 {
		t.Fatalf("%v, %v", files, err)
	}
	want := map[string]string{ // the calls of each episode without new information
		"archivist": "p user, p document, edit",
		"taskboard": "edit, edit",
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s, err := sinks.DecodeStaged(body)
		if err != nil {
			t.Fatal(err)
		}
		MarkNewInformation(Read(s.Steps, ""))
		var notNew []string
		for i := range s.Steps {
			if r := &s.Steps[i]; r.IsNewInformation != nil && !*r.IsNewInformation {
				name := *r.ToolName
				if name == "pdb" {
					name = strings.TrimSpace(Command(&schemas.ToolCall{Arguments: json.RawMessage(schemas.Value(r.ArgumentsJSON))}))
				}
				notNew = append(notNew, name)
			}
		}
		if diff := cmp.Diff(want[s.Episode.InstanceID], strings.Join(notNew, ", ")); diff != "" {
			t.Errorf("%s: %s", s.Episode.InstanceID, diff)
		}
	}
}
