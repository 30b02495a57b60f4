package builtin

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/tools/tooltest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestConform(t *testing.T) {
	tooltest.Conform(t, everyTool(t, nil), func(t *testing.T) *env.Session { return newBench(t, project).Session })
}

// A word changed here is a change of the dataset: say so in the changelog.
func TestGoldenSchemas(t *testing.T) {
	for _, tool := range everyTool(t, nil) {
		s := tool.Schema()
		var params bytes.Buffer
		if err := json.Indent(&params, s.Parameters, "", "  "); err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprintf("%s (%s)\n\n%s\n\n%s\n", s.Name, tool.Category(), s.Description, params.String())
		golden := "testdata/" + s.Name + ".golden"
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), got); d != "" {
			t.Errorf("%s (-want +got)\n%s", golden, d)
		}
	}
}

func TestEval(t *testing.T) {
	b := newBench(t, files{})
	b.report = env.EvalReport{
		Tests:    map[string]string{"t.py::b": "failed", "t.py::a": "error", "t.py::c": "passed", "t.py::d": "skipped"},
		ExitCode: 1, OutputBytes: 500,
		Output: "platform linux -- Python 3.11\nrootdir: /testbed\nE  <X object at 0x7f00aa112233> in /tmp/pytest-of-me/pytest-3/x\n" +
			"99 passed in 0.01s\n= 2 failed, 1 passed, 1 skipped in 12.34s (0:00:12) =\n",
	}
	o := b.call("eval", nil)
	want := "The tests do not pass. 1 passed, 2 failed.\n  t.py::a (error)\n  t.py::b (failed)\n\n" +
		"E  <X object at 0x...> in /tmp/.../x\n99 passed\n=== 2 failed, 1 passed, 1 skipped ===\n"
	if d := cmp.Diff(want, o.Text); d != "" || *o.ExitCode != 1 || o.IsError || o.FullBytes != 500 {
		t.Errorf("%+v (-want +got)\n%s", o, d)
	}
	b.report = env.EvalReport{Passed: true, Output: "Ran 3 tests in 0.002s\n\nOK\n"}
	if got := b.ok("eval", args{}); got != "The tests pass. The command ended with exit code 0.\n\nRan 3 tests\n\nOK\n" {
		t.Errorf("got %q", got)
	}
	b.report = env.EvalReport{TimedOut: true, Output: "partial"}
	if o := b.call("eval", nil); !o.TimedOut || o.ErrorClass != schemas.ErrTimeout || o.ExitCode != nil || !strings.HasPrefix(o.Text, "The tests did not finish in time") {
		t.Errorf("timed out: %+v", o)
	}
}

func TestPdb(t *testing.T) {
	b := newBench(t, files{})
	code := 1
	b.debugger.reply = env.DebuggerReply{Text: "*** NameError", IsError: true, ExitCode: &code, Targets: []string{"a.py:3"}}
	o := b.call("pdb", args{"command": "p x; p y", "entrypoint": " python t.py ", "timeout": 99999})
	if o.Text != "*** NameError" || o.ErrorClass != schemas.ErrUserError || *o.ExitCode != 1 || o.Targets[0] != "a.py:3" {
		t.Errorf("%+v", o)
	}
	b.debugger.reply = env.DebuggerReply{Text: "slow", TimedOut: true}
	if o := b.call("pdb", args{"command": "c", "entrypoint": nil}); o.ErrorClass != schemas.ErrTimeout || !o.TimedOut {
		t.Errorf("%+v", o)
	}
	if d := cmp.Diff([]string{"p x; p y|python t.py|1h0m0s|falsefalse", "c||20s|falsefalse"}, b.debugger.asked); d != "" {
		t.Error(d)
	}
	b.refused("pdb", args{"command": " "}, "empty")
}
