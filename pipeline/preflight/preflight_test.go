package preflight_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/guest"
	"github.com/tracesmith/tracesmith/env/pdb"
	"github.com/tracesmith/tracesmith/pipeline/preflight"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
	"github.com/tracesmith/tracesmith/sinks/stores"

	_ "github.com/tracesmith/tracesmith/env/drivers/local"
)

func TestMain(m *testing.M) {
	guest.MainIfGuest()
	os.Exit(m.Run())
}

// statuses returns "check status" of each result.
func statuses(results []preflight.Result) string {
	var out []string
	for _, r := range results {
		out = append(out, r.Check+" "+string(r.Status))
	}
	return strings.Join(out, ", ")
}

// A debugger that does not stop the program fails, although the sandbox and Python work. A sandbox that lacks programs
// fails, and nothing else is checked in it.
func TestSandbox(t *testing.T) {
	t.Parallel()
	driver, err := env.Drivers.Build("local", nil, struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	newDebugger := func(entrypoint string) func(env.Sandbox, schemas.Task) env.Debugger {
		return func(sb env.Sandbox, task schemas.Task) env.Debugger {
			if entrypoint == "" {
				entrypoint = task.Entrypoint
			}
			return pdb.New(pdb.Config{Sandbox: sb, Workdir: task.Workdir, Entrypoint: entrypoint})
		}
	}
	works := func(context.Context, env.Sandbox) error { return nil }
	lacks := func(context.Context, env.Sandbox) error { return errors.New("no bash") }
	for name, c := range map[string]struct {
		sandbox preflight.Sandbox
		want    string
	}{
		"works":         {preflight.Sandbox{Programs: works, NewDebugger: newDebugger("")}, "sandbox warning, python ok, debugger ok"},
		"no debugger":   {preflight.Sandbox{Programs: works}, "sandbox warning"},
		"never stops":   {preflight.Sandbox{Programs: works, NewDebugger: newDebugger("python3 other.py")}, "sandbox warning, python ok, debugger failed"},
		"lacks program": {preflight.Sandbox{Programs: lacks, NewDebugger: newDebugger("")}, "sandbox failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.sandbox.Driver, c.sandbox.Spec = driver, env.SandboxSpec{Label: "preflight", Workdir: schemas.DefaultWorkdir}
			if results := c.sandbox.Check(t.Context()); statuses(results) != c.want {
				t.Errorf("got %+v, want %s", results, c.want)
			}
		})
	}
}

// An unsupported version of Python is a warning. An interpreter that does not run is a failure, and the debugger is
// not checked.
func TestPythonVersions(t *testing.T) {
	t.Parallel()
	driver, err := env.Drivers.Build("local", nil, struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	for script, want := range map[string]string{
		"echo 2.7.18":      "sandbox warning, python warning, debugger failed",
		"echo broken":      "sandbox warning, python failed",
		"echo 3.9; exit 1": "sandbox warning, python failed",
	} {
		bin := t.TempDir()
		if err := os.WriteFile(filepath.Join(bin, "python3"), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		s := preflight.Sandbox{
			Driver: driver, Spec: env.SandboxSpec{Label: "preflight", Workdir: schemas.DefaultWorkdir, Env: []string{"PATH=" + bin + ":/usr/bin:/bin"}},
			Programs: func(context.Context, env.Sandbox) error { return nil },
			NewDebugger: func(sb env.Sandbox, task schemas.Task) env.Debugger {
				return pdb.New(pdb.Config{Sandbox: sb, Workdir: task.Workdir, Entrypoint: task.Entrypoint})
			},
		}
		if results := s.Check(t.Context()); statuses(results) != want {
			t.Errorf("%s: got %+v, want %s", script, results, want)
		}
	}
}

// unsafeStore is a store that ignores conditional writes.
type unsafeStore struct{ sinks.Store }

func (unsafeStore) Probe(context.Context) error { return sinks.ErrUnsafe }

// Each failure of a store has its exit code and its remedy. A check leaves nothing behind.
func TestStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func(place string) (sinks.Store, error) { return stores.Open(t.Context(), place, stores.S3Config{}) }
	unsafe := func(place string) (sinks.Store, error) {
		s, err := open(place)
		return unsafeStore{s}, err
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		check  preflight.Check
		status preflight.Status
		code   int
		remedy string
	}{
		"new directory": {preflight.Directory("publish.to", filepath.Join(dir, "a/b"), open), preflight.OK, 0, ""},
		"below a file":  {preflight.Directory("publish.to", filepath.Join(file, "b"), open), preflight.Failed, 2, "can write"},
		"unsafe":        {preflight.Directory("publish.to", dir, unsafe), preflight.Failed, 8, "two writers"},
	} {
		t.Run(name, func(t *testing.T) {
			r := c.check(t.Context())[0]
			var withCode interface{ ExitCode() int }
			if code := errors.As(r.Err, &withCode); r.Status != c.status || code && withCode.ExitCode() != c.code || !strings.Contains(r.Remedy, c.remedy) {
				t.Errorf("%+v", r)
			}
		})
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the checks left %v, %v", entries, err)
	}
}

// A disk with less than the required space fails with both numbers, and one with little space warns.
func TestDisk(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "not/there")
	for status, need := range map[preflight.Status]preflight.Space{
		preflight.OK: {}, preflight.Warning: {Warn: 1 << 62}, preflight.Failed: {Fail: 1 << 62},
	} {
		if r := preflight.Disk("run directory", dir, need)(t.Context())[0]; r.Status != status || !strings.Contains(r.Message, "iB") {
			t.Errorf("%s: %+v", status, r)
		}
	}
}
