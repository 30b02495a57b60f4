package env_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/env"
	_ "github.com/tracesmith/tracesmith/env/drivers/bubblewrap"
	"github.com/tracesmith/tracesmith/env/guest"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/internal/tooltest"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/tools"
	_ "github.com/tracesmith/tracesmith/tools/builtin"
)

func TestMain(m *testing.M) {
	guest.MainIfGuest()
	os.Exit(m.Run())
}

var repo = fstest.MapFS{
	"calc.py":      {Data: []byte("def double(x):\n    y = x + 1\n    return y\n"), Mode: 0o644},
	"test_calc.py": {Data: []byte("from calc import double\n\ndef test_double():\n    assert double(4) == 8\n\ndef test_two():\n    assert double(1) == 2\n"), Mode: 0o644},
}

var task = schemas.Task{
	Instructions: "double is wrong", Entrypoint: "python3 -m pytest -q test_calc.py", Workdir: "/testbed", GoldPatch: "secret",
	Tests: schemas.TestSpec{Method: schemas.VerifyPytest, FailToPass: []string{"test_calc.py::test_double"}, PassToPass: []string{"test_calc.py::test_two"}},
}

// listener records the events it receives and keeps the session for the test.
func listener(heard *[]string, sess **env.Session) tools.Tool {
	return tools.Define(tools.Def[struct{}]{
		Name: "listener", Category: "other", Description: "Says what it hears.",
		Call: func(context.Context, *env.Session, struct{}) (schemas.Observation, error) {
			return schemas.Observation{Text: "called"}, nil
		},
		On: func(_ context.Context, s *env.Session, e env.Event) (schemas.Observation, error) {
			*sess = s
			word := e.Kind
			if e.Edit != nil {
				word += " " + e.Edit.File
			}
			*heard = append(*heard, word)
			return schemas.Observation{Text: "heard " + word}, nil
		},
	})
}

type fixture struct {
	*env.Environment
	t     *testing.T
	heard []string
	sess  *env.Session
}

// open returns an environment with the bubblewrap driver and all tools. The functions in change
// edit its configuration last.
func open(t *testing.T, change ...func(*env.Config)) *fixture {
	t.Helper()
	files, err := workspace.FromFS(repo, ".")
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t}
	f.Environment = tooltest.Environment(t, func(cfg *env.Config) {
		cfg.Task, cfg.Tree = task, files
		cfg.Toolbox = tooltest.Set(t, append([]tools.Tool{listener(&f.heard, &f.sess)}, tooltest.Kit(t, nil)...))
		for _, c := range change {
			c(cfg)
		}
	})
	return f
}

func (f *fixture) reset(soft bool) env.Info {
	f.t.Helper()
	info, err := f.Reset(f.t.Context(), soft)
	if err != nil {
		f.t.Fatal(err)
	}
	return info
}

func (f *fixture) step(tool, args string) env.Info {
	f.t.Helper()
	info, err := f.Step(f.t.Context(), schemas.ToolCall{Name: tool, Arguments: []byte(args)})
	if err != nil {
		f.t.Fatalf("%s %s: %v", tool, args, err)
	}
	return info
}

func sources(info env.Info) (out []string) {
	for _, o := range info.Observations {
		out = append(out, o.Source)
	}
	return out
}

func TestStepsOfAnEpisode(t *testing.T) {
	f := open(t)
	if _, err := f.Step(t.Context(), schemas.ToolCall{Name: "eval"}); err == nil {
		t.Error("a step before the first reset succeeded")
	}
	info := f.reset(true) // the first reset ignores soft
	if info.Observation.Text != "double is wrong" || !slices.Equal(sources(info), []string{"env", "listener"}) || len(info.Tools) != 9 {
		t.Errorf("reset: %+v", info)
	}
	want := schemas.EnvState{Breakpoints: []schemas.Breakpoint{}}
	if d := cmp.Diff(want, info.State); d != "" {
		t.Errorf("state after reset (-want +got)\n%s", d)
	}
	if f.sess.Task.GoldPatch != "" {
		t.Error("a tool can see the gold patch")
	}
	if got := f.step("bash", `{"command":"git log --oneline | wc -l; git status --short; ls"}`); got.Observation.Text != "1\ncalc.py\ntest_calc.py\n" {
		t.Errorf("workspace: %q", got.Observation.Text)
	}

	info = f.step("eval", `{}`)
	if s := info.State; s.EvalPassed == nil || *s.EvalPassed || s.MaxScore == nil || s.TestsPassed == nil || *s.TestsPassed != 1 || *s.TestsFailed != 1 {
		t.Errorf("eval: %+v\n%s", s, info.Observation.Text)
	}
	f.step("pdb", `{"command":"b calc.py:3"}`)
	info = f.step("pdb", `{"command":"c"}`)
	if s := info.State; s.Frame == nil || s.Frame.File != "calc.py" || s.Frame.Line != 3 || len(s.Breakpoints) != 1 || s.EvalPassed == nil {
		t.Errorf("at the breakpoint: %+v\n%s", s, info.Observation.Text)
	}
	info = f.step("edit", `{"path":"calc.py","new_code":"    # twice\n    y = x * 2","start":2}`)
	if d := cmp.Diff([]string{"calc.py"}, info.State.FilesChanged); d != "" || !slices.Equal(sources(info), []string{"edit", "listener"}) {
		t.Errorf("edit: %s %v", d, sources(info))
	}
	if b := info.State.Breakpoints; len(b) != 1 || b[0].Line != 4 {
		t.Errorf("breakpoints after the edit: %+v", b)
	}
	info = f.step("eval", `{}`)
	if s := info.State; !*s.EvalPassed || s.Terminated || s.FilesChanged != nil || s.Score != *s.MaxScore {
		t.Errorf("eval after the fix: %+v\n%s", s, info.Observation.Text)
	}
	f.step("bash", `{"command":"echo new >made.txt; git add -A; git commit -qm x; rm test_calc.py"}`)
	patch, sha, err := f.Patch(t.Context())
	if err != nil || len(sha) == 0 {
		t.Fatalf("patch: %v", err)
	}
	for _, part := range []string{"+    y = x * 2", "b/made.txt", "deleted file mode"} {
		if !strings.Contains(string(patch), part) {
			t.Errorf("the patch lacks %q:\n%s", part, patch)
		}
	}

	if info := f.step("submit", `{}`); !info.State.Terminated {
		t.Error("submit does not end the episode")
	}
	info = f.step("bash", `{"command":"touch after"}`)
	if !info.State.Terminated || info.Observation.Source != "env" || !strings.Contains(info.Observation.Text, "not run") {
		t.Errorf("after the end: %+v", info.Observation)
	}
	if got, _, err := f.Patch(t.Context()); err != nil || strings.Contains(string(got), "b/after") {
		t.Errorf("a step after the end was executed (%v)", err)
	}
	if d := cmp.Diff([]string{"reset", "file_change calc.py"}, f.heard); d != "" {
		t.Errorf("events (-want +got)\n%s", d)
	}
}

func TestSoftResetKeepsTheSandbox(t *testing.T) {
	f := open(t)
	f.reset(false)
	sandbox := f.sess.Sandbox
	f.step("pdb", `{"command":"b calc.py:3"}`)
	f.step("bash", `{"command":"touch kept; cd /tmp"}`)
	f.step("submit", `{}`)
	info := f.reset(true)
	if f.sess.Sandbox != sandbox || len(info.State.Breakpoints) != 0 || info.State.Terminated || len(f.heard) != 2 {
		t.Errorf("soft reset: %+v, events %v", info.State, f.heard)
	}
	if got := f.step("bash", `{"command":"pwd; ls kept"}`); got.Observation.Text != "/testbed\nkept\n" {
		t.Errorf("after a soft reset: %q", got.Observation.Text)
	}
	f.reset(false)
	if f.sess.Sandbox == sandbox {
		t.Error("a hard reset kept the sandbox")
	}
	if got := f.step("bash", `{"command":"ls kept"}`); *got.Observation.ExitCode == 0 {
		t.Errorf("after a hard reset: %q", got.Observation.Text)
	}
}

// After the program has ended, the debugger has no frame and says why.
func TestFinishedProgramHasNoFrame(t *testing.T) {
	f := open(t)
	event := func(info env.Info) string {
		if s := info.State; (s.Frame == nil) != (s.DebuggerEvent == "" || s.DebuggerEvent == "finished") {
			t.Errorf("frame %v with event %q", s.Frame, s.DebuggerEvent)
		}
		return info.State.DebuggerEvent
	}
	got := []string{
		event(f.reset(false)), event(f.step("pdb", `{"command":"n"}`)), event(f.step("pdb", `{"command":"c"}`)), event(f.step("view", `{"path":"calc.py"}`)),
		event(f.step("pdb", `{"command":"restart"}`)), event(f.step("pdb", `{"command":"c"}`)), event(f.reset(true)),
	}
	if d := cmp.Diff([]string{"", "line", "finished", "finished", "line", "finished", ""}, got); d != "" {
		t.Error(d)
	}
}

func TestReplyWithoutACallIsAStep(t *testing.T) {
	f := open(t)
	f.reset(false)
	info, err := f.NoCall(t.Context())
	o := info.Observation
	if err != nil || o.ErrorClass != schemas.ErrNoToolCall || o.Source != "env" || !strings.Contains(o.Text, "Call one tool") {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestSandboxDeathEndsTheEpisode(t *testing.T) {
	f := open(t)
	f.reset(false)
	if err := f.sess.Sandbox.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	info, err := f.Step(t.Context(), schemas.ToolCall{Name: "bash", Arguments: []byte(`{"command":"true"}`)})
	if !errors.Is(err, env.ErrSandboxDied) || info.Observation.ErrorClass != schemas.ErrSandboxDied || !info.State.Terminated {
		t.Errorf("%+v, %v", info, err)
	}
	if got := f.reset(false); got.State.Terminated {
		t.Error("the episode is still terminated after a hard reset")
	}
	if got := f.step("bash", `{"command":"echo alive"}`); got.Observation.Text != "alive\n" {
		t.Errorf("got %q", got.Observation.Text)
	}
}

func TestContextDeadlineIsAnError(t *testing.T) {
	f := open(t)
	f.reset(false)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := f.Step(ctx, schemas.ToolCall{Name: "bash", Arguments: []byte(`{"command":"sleep 60"}`)}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a step whose context ended: %v", err)
	}
	if got := f.step("bash", `{"command":"grep -lx sleep /proc/[0-9]*/comm; echo alive"}`); got.Observation.Text != "alive\n" {
		t.Errorf("the step after it: %q, want no process named sleep", got.Observation.Text)
	}
}

func TestConfigIsChecked(t *testing.T) {
	if _, err := env.New(env.Config{}); err == nil {
		t.Error("an empty configuration was accepted")
	}
}
