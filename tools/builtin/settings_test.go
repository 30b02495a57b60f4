package builtin

import (
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/tools"
)

// Numbers such as B2 in the names of tests are rows of docs/internals/parity.md.

// reset notifies the tools of a reset and returns their observations.
func (b *toolSession) reset() []schemas.Observation {
	b.t.Helper()
	observations, err := b.set.Notify(b.t.Context(), b.Session, env.Event{Kind: env.EventReset})
	if err != nil {
		b.t.Fatal(err)
	}
	return observations
}

// The model sees the failure of a command.
func TestB2SetupCommandsRunAtEachReset(t *testing.T) {
	b := newToolSessionWith(t, files{}, settings{
		"view": {"setup": []string{"pwd >>/tmp/runs", "echo oh; echo no >&2; exit 3", "echo done >>/tmp/runs"}},
		"grep": {"setup": []string{"true"}},
	})
	for range 2 {
		observations := b.reset()
		if len(observations) != 1 || observations[0].Source != "view" || observations[0].ErrorClass != schemas.ErrNonzeroExit || !observations[0].IsError ||
			observations[0].Text != "The setup command \"echo oh; echo no >&2; exit 3\" failed (exit code 3). Its output:\noh\nno\n" {
			t.Errorf("observations %+v", observations)
		}
	}
	if got := b.sh("cat /tmp/runs"); got != "/testbed\ndone\n/testbed\ndone\n" {
		t.Errorf("ran %q", got)
	}
	// A tool that also listens to the reset reports both.
	b = newToolSessionWith(t, files{}, settings{"eval": {"on_reset": true, "setup": []string{"exit 1"}}})
	b.report = env.EvalReport{Passed: true}
	if observations := b.reset(); len(observations) != 1 || !strings.Contains(observations[0].Text, "failed (exit code 1)") || !strings.Contains(observations[0].Text, "The tests pass.") {
		t.Errorf("observations %+v", observations)
	}
}

// A tool has the same name in the registry and for the model, because statistics over a
// dataset rely on it. A suffix does not make a second tool.
func TestB3ToolsHaveOneName(t *testing.T) {
	for _, name := range []string{"bash:2", "Bash", "bashtool"} {
		if _, err := tools.Registry.Build(name, nil, struct{}{}); err == nil || !strings.Contains(err.Error(), "choose one of bash, edit, eval, grep, listdir, pdb, submit, view") {
			t.Errorf("%s: %v", name, err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a tool was registered twice")
		}
	}()
	spec, _ := tools.Registry.Lookup("bash")
	tools.Registry.Register(spec)
}

func TestSettingsAreChecked(t *testing.T) {
	for want, c := range map[string]struct {
		tool string
		with map[string]any
	}{
		`tool "bash": unknown field "timeuot": did you mean "timeout"? known are setup, timeout`: {"bash", map[string]any{"timeuot": 3}},
		`tool "bash": timeout must be from 1 to 3600 seconds, not 4000`:                          {"bash", map[string]any{"timeout": 4000}},
		`tool "bash": setting "timeout" must not be a string`:                                    {"bash", map[string]any{"timeout": "1h"}},
		`tool "submit": unknown field "on_reset": known are setup, eval_on_submit`:               {"submit", map[string]any{"on_reset": true}},
		`tool "edit": setting "setup" must not be a string`:                                      {"edit", map[string]any{"setup": "true"}},
	} {
		if _, err := tools.Registry.Build(c.tool, c.with, struct{}{}); err == nil || err.Error() != want {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}

// The tests run at each reset only if on_reset is set: they cost time and tokens, and the
// instructions already describe the bug.
func TestB21EvalAtReset(t *testing.T) {
	b := newToolSessionWith(t, files{}, settings{"eval": {"on_reset": true}})
	b.report = env.EvalReport{Tests: map[string]string{"t.py::a": "failed"}, ExitCode: 1, Output: "E  oh\n"}
	if observations := b.reset(); len(observations) != 1 || observations[0].Source != "eval" || observations[0].Text != "The tests do not pass. 0 passed, 1 failed.\n  t.py::a (failed)\n\nE  oh\n" {
		t.Errorf("observations %+v", observations)
	}
	if _, err := b.set.Notify(t.Context(), b.Session, env.Event{Kind: env.EventFileChange, Edit: &env.Edit{}}); err != nil {
		t.Fatal(err)
	}
	b.report = env.EvalReport{Passed: true}
	if got := b.ok("eval", nil); !strings.HasPrefix(got, "The tests pass.") {
		t.Errorf("eval shows an old report: %q", got)
	}
	if b.evals != 2 {
		t.Errorf("the tests ran %d times, want 2: a changed file does not run them", b.evals)
	}
	if observations := newToolSession(t, files{}).reset(); len(observations) != 0 {
		t.Errorf("by default %+v", observations)
	}
}

func TestB22SubmitMayRunTheTests(t *testing.T) {
	b := newToolSessionWith(t, files{}, settings{"submit": {"eval_on_submit": true}})
	b.report = env.EvalReport{Passed: true, Output: "OK\n"}
	if got := b.ok("submit", args{"message": nil}); got != "Submitted. The session has ended.\n\nThe tests pass. The command ended with exit code 0.\n\nOK\n" || !b.submitted {
		t.Errorf("%q, submitted %v", got, b.submitted)
	}
	b = newToolSession(t, files{})
	if got := b.ok("submit", args{"message": "done"}); got != "Submitted. The session has ended.\nMessage: done" || !b.submitted || b.evals != 0 {
		t.Errorf("%q, submitted %v, %d evaluations", got, b.submitted, b.evals)
	}
}

func TestBashTimeoutSetting(t *testing.T) {
	b := newToolSessionWith(t, files{}, settings{"bash": {"timeout": 1}})
	if o := b.call("bash", args{"command": "sleep 100"}); !o.TimedOut || !strings.Contains(o.Text, "longer than 1s") {
		t.Errorf("%+v", o)
	}
	if got := b.ok("bash", args{"command": "sleep 1.1; echo late", "timeout": 60}); got != "late\n" {
		t.Errorf("the call's own timeout: %q", got)
	}
}
