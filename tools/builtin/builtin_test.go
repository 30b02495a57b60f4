package builtin

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/internal/tooltest"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/tools"
)

// Numbers such as B23 in the names of tests are rows of docs/internals/parity.md.

var update = flag.Bool("update", false, "rewrite the golden files")

func TestConform(t *testing.T) {
	tooltest.Conform(t, tooltest.Kit(t, nil), func(t *testing.T) *env.Session { return newToolSession(t, project).Session })
}

// Each changed word is a change of the dataset and needs a line in the changelog.
func TestGoldenSchemas(t *testing.T) {
	for _, tool := range tooltest.Kit(t, nil) {
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
			t.Fatalf("%v: write it with -update", err)
		}
		if d := cmp.Diff(string(want), got); d != "" {
			t.Errorf("%s (-want +got)\n%s", golden, d)
		}
	}
}

func TestEval(t *testing.T) {
	b := newToolSession(t, files{})
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
	b.report = env.EvalReport{Passed: true, Tests: map[string]string{"t.py::a": "passed", "t.py::b": "failed"}, Output: "1 failed, 1 passed\n"}
	if got := b.ok("eval", args{}); got != "The required tests pass. 1 passed, 1 failed. The failed tests are not required.\n  t.py::b (failed)\n\n1 failed, 1 passed\n" {
		t.Errorf("got %q", got)
	}
	b.report = env.EvalReport{TimedOut: true, Output: "partial"}
	if o := b.call("eval", nil); !o.TimedOut || o.ErrorClass != schemas.ErrTimeout || o.ExitCode != nil || !strings.HasPrefix(o.Text, "The tests did not finish in time") {
		t.Errorf("timed out: %+v", o)
	}
}

func TestEvalOfTestsThatEndEarly(t *testing.T) {
	b := newToolSession(t, files{})
	one := map[string]string{"t.py::a": "passed"}
	for want, report := range map[string]env.EvalReport{
		"The tests do not pass. 1 passed, 0 failed. The test process ended early, in t.py::b, with exit code 0.\n2 tests did not run:\n  t.py::c\n  t.py::d": {
			Tests: one, Died: true, Running: "t.py::b", NotRun: []string{"t.py::c", "t.py::d"}},
		"The tests do not pass. 1 passed, 0 failed. The test process ended early, in t.py::b, with exit code 139 (signal 11, segmentation fault).": {
			Tests: one, Died: true, Running: "t.py::b", ExitCode: 139},
		"The tests do not pass. 1 passed, 0 failed. The test process ended early, between two tests, with exit code 200.\n1 test did not run:\n  t.py::b": {
			Tests: one, Died: true, NotRun: []string{"t.py::b"}, ExitCode: 200},
		"The tests do not pass. 1 passed, 0 failed. The test process ended early, after the last test, with exit code 1.":    {Tests: one, Died: true, ExitCode: 1},
		"The tests do not pass. The test process ended early, before any test began, with exit code 137 (signal 9, killed).": {Died: true, ExitCode: 137},
		"The tests did not finish in time and were stopped. 1 passed, 0 failed. The running test was t.py::b.\n1 test did not run:\n  t.py::c": {
			Tests: one, TimedOut: true, Running: "t.py::b", NotRun: []string{"t.py::c"}},
	} {
		b.report = report
		if got, _, _ := strings.Cut(b.call("eval", nil).Text, "\n\n"); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

func TestPdb(t *testing.T) {
	b := newToolSession(t, files{})
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
	if d := cmp.Diff([]string{"p x; p y|python t.py|1h0m0s|falsefalse", "c||1m0s|falsefalse"}, b.debugger.asked); d != "" {
		t.Error(d)
	}
	b.refused("pdb", args{"command": " "}, "empty")
}

func TestB23PdbSchema(t *testing.T) {
	schema := func(with map[string]any) (required []string, entrypoint json.RawMessage, description string) {
		tool, err := tools.Registry.Build("pdb", with, struct{}{})
		if err != nil {
			t.Fatal(err)
		}
		var s struct {
			Properties map[string]struct{ Type json.RawMessage }
			Required   []string
		}
		if err := json.Unmarshal(tool.Schema().Parameters, &s); err != nil {
			t.Fatal(err)
		}
		if string(s.Properties["command"].Type) != `"string"` {
			t.Errorf("command: %s", s.Properties["command"].Type)
		}
		return s.Required, s.Properties["entrypoint"].Type, tool.Schema().Description
	}
	required, entrypoint, text := schema(nil)
	if !slices.Equal(required, []string{"command"}) || string(entrypoint) != `["null","string"]` || strings.Contains(text, "must give the entrypoint") {
		t.Errorf("by default %q, %s: %s", required, entrypoint, text)
	}
	required, entrypoint, text = schema(map[string]any{"set_default_entrypoint": false})
	if !slices.Equal(required, []string{"command", "entrypoint"}) || string(entrypoint) != `"string"` ||
		!strings.Contains(text, "Every call must give the entrypoint") || !strings.Contains(text, `"entrypoint":"python -m pytest`) {
		t.Errorf("with a mandatory entrypoint %q, %s: %s", required, entrypoint, text)
	}
}

func TestB24PdbSettings(t *testing.T) {
	b := newToolSessionWith(t, files{}, settings{"pdb": {"set_default_entrypoint": false, "auto_list": false, "persistent_breakpoints": false}})
	for _, a := range []args{{"command": "c"}, {"command": "c", "entrypoint": nil}} {
		if o := b.call("pdb", a); o.ErrorClass != schemas.ErrBadArguments {
			t.Errorf("%v: %+v", a, o)
		}
	}
	b.refused("pdb", args{"command": "c", "entrypoint": " "}, "The entrypoint is empty")
	b.call("pdb", args{"command": "c", "entrypoint": "python t.py"})
	if d := cmp.Diff([]string{"c|python t.py|1m0s|truetrue"}, b.debugger.asked); d != "" {
		t.Error(d)
	}
	text := func(with map[string]any) string {
		tool, err := tools.Registry.Build("pdb", with, struct{}{})
		if err != nil {
			t.Fatal(err)
		}
		return tool.Schema().Description
	}
	on := map[string]any{"set_default_entrypoint": true, "auto_list": true, "persistent_breakpoints": true}
	if text(on) != text(nil) {
		t.Error("the settings are not true by default")
	}
	for setting, says := range map[string]string{"auto_list": "l lists the source", "persistent_breakpoints": "Breakpoints are removed"} {
		if got := text(map[string]any{setting: false}); !strings.Contains(got, says) || strings.Contains(text(nil), says) {
			t.Errorf("%s: %s", setting, got)
		}
	}
}
