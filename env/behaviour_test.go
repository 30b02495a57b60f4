package env_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/verify"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
)

// countingDriver records the specs of the sandboxes that it started and counts those that were
// closed.
type countingDriver struct {
	env.Driver
	specs  []env.SandboxSpec
	closed int
}

// countSandboxes returns a change of a configuration that wraps the driver and sets *driver.
func countSandboxes(driver **countingDriver) func(*env.Config) {
	return func(c *env.Config) {
		*driver = &countingDriver{Driver: c.Driver}
		c.Driver = *driver
	}
}

func (d *countingDriver) Start(ctx context.Context, spec env.SandboxSpec) (env.Sandbox, error) {
	sb, err := d.Driver.Start(ctx, spec)
	d.specs = append(d.specs, spec)
	return &countedSandbox{sb, d}, err
}

type countedSandbox struct {
	env.Sandbox
	driver *countingDriver
}

func (s *countedSandbox) Close(ctx context.Context) error {
	s.driver.closed++
	return s.Sandbox.Close(ctx)
}

func withTree(t *testing.T, files fstest.MapFS) func(*env.Config) {
	t.Helper()
	repo, err := workspace.FromFS(files, ".")
	if err != nil {
		t.Fatal(err)
	}
	return func(c *env.Config) { c.Tree = repo }
}

// An Info contains the observations of its own step and the state that results from all steps.
func TestInfoOfResetAndStep(t *testing.T) {
	f := open(t)
	text := func(source, s string) schemas.Observation {
		return schemas.Observation{Source: source, Text: s, FullBytes: int64(len(s))}
	}
	unmeasured := cmpopts.IgnoreFields(env.Info{}, "Wall", "Tools")
	want := env.Info{
		Observation:  text("env", "double is wrong"),
		Observations: []schemas.Observation{text("env", "double is wrong"), text("listener", "heard reset")},
		State:        schemas.EnvState{Breakpoints: []schemas.Breakpoint{}},
	}
	got := f.reset(false)
	if d := cmp.Diff(want, got, unmeasured); d != "" || len(got.Tools) != 9 || got.Wall <= 0 {
		t.Errorf("reset: %d tools, %s", len(got.Tools), d)
	}
	own := text("bash", "hi\n[exit code 3]\n")
	own.ExitCode, own.IsError, own.ErrorClass = new(3), true, schemas.ErrNonzeroExit
	got = f.step("bash", `{"command":"echo hi; (exit 3)"}`)
	want.Observation, want.Observations = own, []schemas.Observation{own}
	if d := cmp.Diff(want, got, unmeasured); d != "" || got.Tools != nil {
		t.Errorf("step: %d tools, %s", len(got.Tools), d)
	}
}

// Two evaluations of the same files are equal in everything but wall time.
func TestEvaluationsOfTheSameFilesAreEqual(t *testing.T) {
	var reports []env.EvalReport
	f := open(t, func(c *env.Config) {
		c.Evaluate = func(ctx context.Context, sb env.Sandbox, task schemas.Task, limit time.Duration) (env.EvalReport, error) {
			r, err := verify.Eval(ctx, sb, task, limit)
			reports = append(reports, r)
			return r, err
		}
	})
	f.reset(false)
	first, second := f.step("eval", `{}`), f.step("eval", `{}`)
	if d := cmp.Diff(first, second, cmpopts.IgnoreFields(env.Info{}, "Wall")); d != "" {
		t.Error(d)
	}
	if first.Observation.Source != "eval" || first.Observation.Text == "" {
		t.Errorf("%+v", first.Observation)
	}
	want := map[string]string{"test_calc.py::test_double": "failed", "test_calc.py::test_two": "passed"}
	for _, r := range reports {
		passed, failed := r.Counts()
		if d := cmp.Diff(want, r.Tests); d != "" || passed != 1 || failed != 1 || r.Passed || r.ExitCode == 0 || r.Wall <= 0 {
			t.Errorf("%+v %s", r, d)
		}
	}
}

func TestHardResetStartsOver(t *testing.T) {
	var driver *countingDriver
	f := open(t, countSandboxes(&driver))
	f.reset(false)
	f.step("eval", `{}`)
	f.step("pdb", `{"command":"b calc.py:3"}`)
	f.step("bash", `{"command":"touch made"}`)
	f.heard = nil
	info := f.reset(false)
	if len(driver.specs) != 2 || driver.closed != 1 {
		t.Errorf("%d sandboxes started, %d closed", len(driver.specs), driver.closed)
	}
	if got := info.Observations[0]; got.Source != "env" || got.Text != "double is wrong" {
		t.Errorf("the first observation is not the instructions: %+v", got)
	}
	if d := cmp.Diff([]string{"env", "listener"}, sources(info)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(schemas.EnvState{Breakpoints: []schemas.Breakpoint{}}, info.State); d != "" {
		t.Errorf("score or breakpoints before an evaluation: %s", d)
	}
	if got := f.step("bash", `{"command":"ls"}`); got.Observation.Text != "calc.py\ntest_calc.py\n" {
		t.Errorf("files: %q", got.Observation.Text)
	}
	if d := cmp.Diff([]string{"reset"}, f.heard); d != "" {
		t.Errorf("events of one reset (-want +got)\n%s", d)
	}
}

func TestUnknownToolListsTheTools(t *testing.T) {
	f := open(t)
	var names []string
	for _, schema := range f.reset(false).Tools {
		names = append(names, schema.Name)
	}
	info := f.step("warp", `{"to":1}`)
	o := info.Observation
	if o.Source != "env" || o.ErrorClass != schemas.ErrUnknownTool || !strings.Contains(o.Text, `"warp"`) || !strings.Contains(o.Text, strings.Join(names, ", ")) {
		t.Errorf("%+v, tools %v", o, names)
	}
	if info.State.Terminated || f.step("listener", `{}`).Observation.Text != "called" {
		t.Error("the episode does not continue")
	}
}

// Mistakes of the model are explained in the model's terms, without Go or Python internals.
func TestMistakesAreObservations(t *testing.T) {
	f := open(t)
	f.reset(false)
	for _, c := range []struct{ tool, args, class, want string }{
		{"view", `{"path":"calc.py","colour":"red"}`, schemas.ErrBadArguments, `unknown argument "colour"`},
		{"view", `{}`, schemas.ErrBadArguments, `argument "path"`},
		{"view", `{"path":["calc.py"]}`, schemas.ErrBadArguments, "must be a string"},
		{"view", `{"path":`, schemas.ErrBadArguments, "not valid JSON"},
		{"edit", `{"path":"../x","new_code":"x"}`, schemas.ErrUserError, "../x"},
		{"view", `{"path":"nowhere.py"}`, schemas.ErrUserError, "nowhere.py"},
	} {
		o := f.step(c.tool, c.args).Observation
		if !o.IsError || o.ErrorClass != c.class || o.Source != c.tool || !strings.Contains(o.Text, c.want) {
			t.Errorf("%s %s: %+v", c.tool, c.args, o)
		}
		for _, leak := range []string{"json:", "panic", "Traceback", "TypeError", "goroutine", "rpc error"} {
			if strings.Contains(o.Text, leak) {
				t.Errorf("%s %s: shows %q: %s", c.tool, c.args, leak, o.Text)
			}
		}
	}
}

// A passing evaluation does not end the episode; submit does. Calls after the end are answered but
// not executed, so that what is graded is what was submitted.
func TestOnlySubmitEndsAnEpisode(t *testing.T) {
	f := open(t)
	f.reset(false)
	f.step("edit", `{"path":"calc.py","old_code":"x + 1","new_code":"x * 2"}`)
	if s := f.step("eval", `{}`).State; s.EvalPassed == nil || !*s.EvalPassed || s.Terminated {
		t.Errorf("a passing evaluation: %+v", s)
	}
	if s := f.step("bash", `{"command":"true"}`).State; s.Terminated || !*s.EvalPassed {
		t.Errorf("the step after a passing evaluation: %+v", s)
	}
	if s := f.step("submit", `{}`).State; !s.Terminated {
		t.Errorf("submit: %+v", s)
	}
	info := f.step("edit", `{"path":"calc.py","old_code":"x * 2","new_code":"0"}`)
	patch, _, err := f.Patch(t.Context())
	if err != nil || !info.State.Terminated || !strings.Contains(string(patch), "+    y = x * 2") {
		t.Errorf("after the end: %+v, %v\n%s", info.Observation, err, patch)
	}
}

func TestScoreIsFromTheLastEvaluation(t *testing.T) {
	f := open(t)
	if s := f.reset(false).State; s.Score != 0 || s.MaxScore != nil || s.EvalPassed != nil {
		t.Errorf("before an evaluation: %+v", s)
	}
	checkScore := func(info env.Info, score, maxScore float64, passed bool) {
		t.Helper()
		if s := info.State; s.Score != score || s.MaxScore == nil || *s.MaxScore != maxScore || *s.EvalPassed != passed {
			t.Errorf("%+v, want %g of %g", s, score, maxScore)
		}
	}
	checkScore(f.step("eval", `{}`), 0, 1, false)
	checkScore(f.step("edit", `{"path":"calc.py","old_code":"x + 1","new_code":"x * 2"}`), 0, 1, false) // an edit evaluates nothing
	checkScore(f.step("eval", `{}`), 1, 1, true)
	checkScore(f.step("bash", `{"command":"true"}`), 1, 1, true)
}

func TestPatchIsExact(t *testing.T) {
	f := open(t, withTree(t, fstest.MapFS{"a.txt": {Mode: 0o644}, "b.txt": {Data: []byte("b\n"), Mode: 0o644}}))
	f.reset(false)
	if patch, _, err := f.Patch(t.Context()); err != nil || len(patch) != 0 {
		t.Errorf("patch without a change: %q, %v", patch, err)
	}
	f.step("bash", `{"command":"echo one >a.txt"}`)
	patch, _, err := f.Patch(t.Context())
	want := "diff --git a/a.txt b/a.txt\nindex e69de29bb2d1d6434b8b29ae775ad8c2e48c5391..5626abf0f72e58d7a153368ba57db4c673c0e171 100644\n--- a/a.txt\n+++ b/a.txt\n@@ -0,0 +1 @@\n+one\n"
	if d := cmp.Diff(want, string(patch)); err != nil || d != "" {
		t.Error(err, d)
	}
}

func TestToolsAreNotifiedInOrder(t *testing.T) {
	f := open(t)
	f.reset(false)
	f.step("edit", `{"path":"calc.py","old_code":"x + 1","new_code":"x * 2"}`)
	f.step("edit", `{"path":"calc.py","old_code":"no such text","new_code":""}`) // fails: nothing has changed
	f.step("edit", `{"path":"new/made.py","new_code":"pass\n"}`)
	f.reset(true)
	if d := cmp.Diff([]string{"reset", "file_change calc.py", "file_change new/made.py", "reset"}, f.heard); d != "" {
		t.Error(d)
	}
}

// A reset restarts the shell and the debugger. It does not run the tests, because the instructions
// say what fails.
func TestResetRestartsShellAndDebugger(t *testing.T) {
	evaluated := 0
	f := open(t, func(c *env.Config) {
		c.Evaluate = func(ctx context.Context, sb env.Sandbox, task schemas.Task, limit time.Duration) (env.EvalReport, error) {
			evaluated++
			return verify.Eval(ctx, sb, task, limit)
		}
	})
	f.reset(false)
	f.step("bash", `{"command":"cd /tmp; export SEEN=1"}`)
	f.step("pdb", `{"command":"b calc.py:3 ;; c"}`)
	info := f.reset(true)
	if s := info.State; s.Frame != nil || s.DebuggerEvent != "" || len(s.Breakpoints) != 0 {
		t.Errorf("the debugger was not reset: %+v", s)
	}
	if got := f.step("bash", `{"command":"pwd; echo [$SEEN]"}`); got.Observation.Text != "/testbed\n[]\n" {
		t.Errorf("the shell was not restarted: %q", got.Observation.Text)
	}
	if evaluated != 0 {
		t.Errorf("%d evaluations without a call of eval", evaluated)
	}
	// An edit moves breakpoints, and the next command runs the new program.
	f.step("pdb", `{"command":"b calc.py:3"}`)
	if b := f.step("edit", `{"path":"calc.py","new_code":"# first\n# second\ndef double(x):","start":1}`).State.Breakpoints; len(b) != 1 || b[0].Line != 5 {
		t.Errorf("breakpoints: %+v", b)
	}
	if s := f.step("pdb", `{"command":"c"}`).State; s.Frame == nil || s.Frame.Line != 5 {
		t.Errorf("frame after the edit: %+v, want line 5", s.Frame)
	}
}

// brokenTree is a tree that cannot be written.
type brokenTree struct{ env.Tree }

func (brokenTree) WriteTar(io.Writer) error { return errors.New("the disk is gone") }

func TestCloseWorksAtAnyTime(t *testing.T) {
	if err := (&env.Environment{}).Close(t.Context()); err != nil {
		t.Errorf("closing a zero Environment: %v", err)
	}
	var driver *countingDriver
	f := open(t, countSandboxes(&driver), func(c *env.Config) { c.Tree = brokenTree{c.Tree} })
	if err := f.Close(t.Context()); err != nil {
		t.Errorf("before a reset: %v", err)
	}
	if _, err := f.Reset(t.Context(), false); err == nil || !strings.Contains(err.Error(), "the disk is gone") || driver.closed != 1 {
		t.Errorf("a failed reset: %v, %d sandboxes closed", err, driver.closed)
	}
	if _, err := f.NoCall(t.Context()); err == nil {
		t.Error("a step after a failed reset succeeded")
	}
	if err := f.Close(t.Context()); err != nil {
		t.Errorf("after a failed reset: %v", err)
	}

	f = open(t, countSandboxes(&driver))
	f.reset(false)
	f.step("pdb", `{"command":"n"}`)
	f.step("bash", `{"command":"sleep 1000 &"}`)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 {
		if err := f.Close(cancelled); err != nil {
			t.Error(err)
		}
	}
	if driver.closed != 1 {
		t.Errorf("closed %d times", driver.closed)
	}
	if _, err := f.Step(t.Context(), schemas.ToolCall{Name: "bash"}); err == nil {
		t.Error("a step after Close succeeded")
	}
	f.reset(false) // a closed environment can be reset
}

// Every tool returns ErrSandboxDied as an error, not as an observation.
func TestEveryToolReturnsErrSandboxDied(t *testing.T) {
	f := open(t)
	calls := map[string]string{
		"bash": `{"command":"true"}`, "edit": `{"path":"calc.py","new_code":"x"}`, "eval": `{}`, "grep": `{"pattern":"x"}`,
		"listdir": `{}`, "pdb": `{"command":"n"}`, "view": `{"path":"calc.py"}`,
	}
	sandboxless := []string{"listener", "submit"} // these do not use the sandbox
	for _, schema := range f.reset(false).Tools {
		args, known := calls[schema.Name]
		if !known {
			if !slices.Contains(sandboxless, schema.Name) {
				t.Errorf("calls has no entry for %s", schema.Name)
			}
			continue
		}
		f.reset(false)
		if err := f.sess.Sandbox.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		info, err := f.Step(t.Context(), schemas.ToolCall{Name: schema.Name, Arguments: []byte(args)})
		if !errors.Is(err, env.ErrSandboxDied) || info.Observation.Source != "env" || !info.State.Terminated || info.State.EvalPassed != nil {
			t.Errorf("%s: %+v, %v", schema.Name, info, err)
		}
	}
}

// A failed reset, hard or soft, leaves no partial session, and the next reset starts a new one.
func TestFailedResetLeavesNoSession(t *testing.T) {
	f := open(t)
	f.reset(false)
	if err := f.sess.Sandbox.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.step("submit", `{}`)
	if info, err := f.NoCall(t.Context()); err != nil || !strings.Contains(info.Observation.Text, "has ended") {
		t.Errorf("after the end: %+v, %v", info.Observation, err)
	}
	if _, err := f.Reset(t.Context(), true); !errors.Is(err, env.ErrSandboxDied) {
		t.Errorf("a soft reset of a dead sandbox: %v", err)
	}
	if _, err := f.NoCall(t.Context()); err == nil {
		t.Error("a session remains after a failed reset")
	}
	if info := f.reset(true); info.State.Terminated || f.step("bash", `{"command":"echo alive"}`).Observation.Text != "alive\n" {
		t.Errorf("%+v", info.State)
	}
}
