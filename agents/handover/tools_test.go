package handover_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tracesmith/tracesmith/agents/handover"
	"github.com/tracesmith/tracesmith/env"
	_ "github.com/tracesmith/tracesmith/env/drivers/bubblewrap"
	"github.com/tracesmith/tracesmith/env/guest"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/internal/tooltest"
	"github.com/tracesmith/tracesmith/schemas"
	_ "github.com/tracesmith/tracesmith/tools/builtin"
)

func TestMain(m *testing.M) {
	guest.MainIfGuest()
	os.Exit(m.Run())
}

// Answer accepts the lines that the real tools show, and no others. The test fails if
// a tool changes its output format.
func TestLinesThatToolsShow(t *testing.T) {
	program := "import sys\n\n\ndef double(x):\n    print(' 99  ->\\tfake = 1')\n    y = x + 1\n\treturn_ = 0\n    return y\n\n\nprint(double(4))\n"
	program = strings.Replace(program, "\treturn_", "    return_", 1)
	files, err := workspace.FromFS(fstest.MapFS{
		"calc.py":        {Data: []byte(program), Mode: 0o644},
		"dir/crlf.py":    {Data: []byte("one = 1\r\ntwo = 2\r\n"), Mode: 0o644},
		"dir/tab\tin.py": {Data: []byte("two = '\x1b[31m'\n"), Mode: 0o644},
	}, ".")
	if err != nil {
		t.Fatal(err)
	}
	task := schemas.Task{Instructions: "double is wrong", Entrypoint: "python3 calc.py", Workdir: "/testbed"}
	e := tooltest.Environment(t, func(c *env.Config) { c.Task, c.Tree = task, files })
	if _, err := e.Reset(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	code := strings.Split(program, "\n")
	lines := func(first, last int) map[int]string {
		out := map[int]string{}
		for n := first; n <= last; n++ {
			out[n] = code[n-1]
		}
		return out
	}
	for i, c := range []struct {
		tool, args, file string
		want             map[int]string
		not              int // a line that was not shown
	}{
		{"view", `{"path":"calc.py"}`, "calc.py", lines(1, 11), 12},
		{"pdb", `{"command":"b calc.py:8"}`, "calc.py", lines(1, 6), 7},
		{"view", `{"path":"/testbed/calc.py","start":4,"end":8}`, "/testbed/calc.py", lines(4, 8), 3}, // line 8 has a breakpoint mark
		{"view", `{"path":"calc.py","start":2,"end":3,"line_numbers":"false"}`, "calc.py", lines(2, 3), 4},
		{"view", `{"path":"dir/crlf.py"}`, "dir/crlf.py", map[int]string{1: "one = 1", 2: "two = 2"}, 3},
		{"grep", `{"pattern":"two|double","context":1}`, "dir/tab\tin.py", map[int]string{1: `two = '\x1b[31m'`}, 2},
		{"grep", `{"pattern":"two|double","context":1}`, "calc.py", map[int]string{3: "", 4: code[3], 5: code[4], 10: "", 11: code[10]}, 6},
		{"pdb", `{"command":"c"}`, "calc.py", lines(3, 11), 99}, // the program prints a line that looks like a listing
		{"pdb", `{"command":"ll"}`, "calc.py", lines(4, 8), 3},
		{"pdb", `{"command":"u ;; l 1, 4"}`, "calc.py", lines(1, 4), 5},
		{"pdb", `{"command":"p ' 98  ->\\tfake'\nll"}`, "calc.py", nil, 98},
		{"bash", `{"command":"cat -n calc.py"}`, "calc.py", lines(1, 11), 12},
		{"bash", `{"command":"cat /testbed/calc.py"}`, "calc.py", lines(1, 11), 12},
		{"bash", `{"command":"sed -n '4,6p' calc.py"}`, "calc.py", lines(4, 6), 1},
		{"bash", `{"command":"grep -n 'double' ./calc.py"}`, "calc.py", map[int]string{4: code[3], 11: code[10]}, 5},
		{"bash", `{"command":"head -n 2 calc.py"}`, "calc.py", lines(1, 2), 3},
		{"bash", `{"command":"cat -n calc.py; echo '    99\tfake'"}`, "calc.py", nil, 99},
		{"bash", `{"command":"cat -n calc.py | tail -n 1"}`, "calc.py", nil, 11},
		{"bash", `{"command":"cat -n $(ls calc.py)"}`, "calc.py", nil, 4},
	} {
		call := schemas.ToolCall{ID: fmt.Sprint(i), Name: c.tool, Arguments: json.RawMessage(c.args)}
		info, err := e.Step(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		step := schemas.Step{Index: 2, Turn: 0, Source: "agent", ToolCall: &call, Observation: &info.Observation, Reply: &schemas.Reply{Calls: []schemas.ToolCall{call}}}
		handOver := func(n int) schemas.Observation {
			raw, err := json.Marshal(map[string]any{"cause": "c", "cause_steps": []int{2}, "files": []any{file(c.file, n, n, 2)}})
			if err != nil {
				t.Fatal(err)
			}
			h := schemas.ToolCall{Name: handover.Name, Arguments: raw}
			o := handover.Answer(task.Workdir, []schemas.Step{step}, h, schemas.ContextOp{})
			if pack, ok := handover.Find(task.Workdir, []schemas.Step{step, {Index: 3, ToolCall: &h, Observation: &o}}); ok && pack.Files[0].Lines[0].Text != c.want[n] {
				t.Errorf("%s %s, line %d: %q, want %q", c.tool, c.args, n, pack.Files[0].Lines[0].Text, c.want[n])
			}
			return o
		}
		for n := range c.want {
			if o := handOver(n); o.IsError {
				t.Errorf("%s %s, line %d: %s\n%s", c.tool, c.args, n, o.Text, info.Observation.Text)
			}
		}
		if o := handOver(c.not); !o.IsError {
			t.Errorf("%s %s: line %d was accepted\n%s", c.tool, c.args, c.not, info.Observation.Text)
		}
	}
}
