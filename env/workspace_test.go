package env_test

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/tracesmith/tracesmith/env"
	_ "github.com/tracesmith/tracesmith/env/tasks/sources"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/tools"
)

// An evaluation that exceeds the time limit of eval is a failure, and its text says so.
func TestEvaluationHasATimeLimit(t *testing.T) {
	f := open(t, func(c *env.Config) {
		c.Task.Entrypoint = "sh -c 'echo begun; sleep 100'"
		tool, err := tools.Registry.Build("eval", map[string]any{"timeout": 5}, struct{}{})
		if err != nil {
			t.Fatal(err)
		}
		if c.Toolbox, err = tools.NewSet([]tools.Tool{tool}); err != nil {
			t.Fatal(err)
		}
	})
	f.reset(false)
	began := time.Now()
	info := f.step("eval", `{}`)
	if took := time.Since(began); took > time.Minute {
		t.Errorf("the evaluation took %s", took)
	}
	o := info.Observation
	if !o.TimedOut || o.ErrorClass != schemas.ErrTimeout || !strings.HasPrefix(o.Text, "The tests timed out after 5s and were stopped.") || !strings.Contains(o.Text, "begun\n") {
		t.Errorf("%+v", o)
	}
	if s := info.State; s.EvalPassed == nil || *s.EvalPassed || s.Score != 0 {
		t.Errorf("%+v", s)
	}
}

// The workspace is inside the sandbox, at a path that does not depend on the host's directories,
// and is removed with it.
func TestWorkspaceIsInsideTheSandbox(t *testing.T) {
	f := open(t)
	f.reset(false)
	if got := f.step("bash", `{"command":"pwd; touch made-here; ls"}`).Observation.Text; got != "/testbed\ncalc.py\nmade-here\ntest_calc.py\n" {
		t.Errorf("%q", got)
	}
	f.reset(false)
	if got := f.step("bash", `{"command":"ls"}`).Observation.Text; got != "calc.py\ntest_calc.py\n" {
		t.Errorf("after a reset: %q", got)
	}
}

// Reset places all files of a directory, including hidden ones. The source "path" rejects a path
// that is not a directory.
func TestWholeDirectoriesArePlaced(t *testing.T) {
	files, err := workspace.FromFS(fstest.MapFS{
		".hidden": {Data: []byte("h"), Mode: 0o644}, ".github/ci.yml": {Data: []byte("on: push"), Mode: 0o644},
		"run": {Data: []byte("#!/bin/sh\n"), Mode: 0o755}, "a b/c": {Mode: 0o600},
	}, ".")
	if err != nil {
		t.Fatal(err)
	}
	f := open(t, func(c *env.Config) { c.Tree = files })
	f.reset(false)
	if got := f.step("listdir", `{"depth":2}`).Observation.Text; got != "/testbed/\n  .git/\n  .github/\n    ci.yml\n  .hidden\n  a b/\n    c\n  run*\n" {
		t.Errorf("%q", got)
	}
	for _, path := range []string{"workspace_test.go", "no/such/directory"} {
		source, err := env.Sources.Build("path", map[string]any{"path": path, "entrypoint": "true"}, struct{}{})
		if err == nil {
			_, err = source.Tasks(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// No file of the workspace hides other files from the tools or makes them read-only: neither
// .gitignore nor .debugignore and .debugreadonly, in which debug-gym lists such files. An agent
// with a shell could bypass these rules.
func TestIgnoreFilesHideNothing(t *testing.T) {
	f := open(t)
	f.reset(false)
	f.step("bash", `{"command":"echo '*.py' >.debugignore; echo '*.py' >.debugreadonly; echo '*.py' >.gitignore"}`)
	for _, c := range [][2]string{
		{"listdir", `{}`}, {"view", `{"path":"calc.py"}`}, {"grep", `{"pattern":"def"}`}, {"edit", `{"path":"calc.py","insert_after":0,"new_code":"# calc"}`},
	} {
		if o := f.step(c[0], c[1]).Observation; o.IsError || !strings.Contains(o.Text, "calc.py") {
			t.Errorf("%s: %s", c[0], o.Text)
		}
	}
}
