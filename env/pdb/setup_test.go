package pdb

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tracesmith/tracesmith/env"
	_ "github.com/tracesmith/tracesmith/env/drivers/bubblewrap"
	_ "github.com/tracesmith/tracesmith/env/drivers/local"
	"github.com/tracesmith/tracesmith/env/guest"
	"github.com/tracesmith/tracesmith/internal/envtest"
	"github.com/tracesmith/tracesmith/internal/suite"
)

func TestMain(m *testing.M) {
	guest.MainIfGuest()
	goleak.VerifyTestMain(m)
}

// pythons returns the interpreters to test: those of TRACESMITH_TEST_PYTHONS (a
// PATH-like list, see scripts/pythons.sh), or else the python3 in PATH.
func pythons(t *testing.T) []string {
	t.Helper()
	if list := filepath.SplitList(suite.Pythons.Value(t)); len(list) > 0 {
		return list
	}
	out, err := exec.Command("python3", "-c", "import os,sys;print(os.path.realpath(sys.executable))").Output()
	if err != nil {
		t.Fatalf("running python3 (install it): %v", err)
	}
	return []string{strings.TrimSpace(string(out))}
}

// eachPython runs f once per interpreter; py is its path.
func eachPython(t *testing.T, f func(t *testing.T, py string)) {
	for _, py := range pythons(t) {
		t.Run(filepath.Base(filepath.Dir(filepath.Dir(py)))+"/"+filepath.Base(py), func(t *testing.T) {
			t.Parallel()
			f(t, py)
		})
	}
}

// testDebugger is a Debugger on a copy of testdata/shop in a new sandbox.
type testDebugger struct {
	*Debugger
	t  testing.TB
	sb env.Sandbox
}

const workdir = "/testbed"

func open(t *testing.T, entrypoint string) *testDebugger {
	t.Helper()
	return openIn(t, "local", "", Config{Entrypoint: entrypoint})
}

// openIn starts a sandbox of the given kind in which python3 is py ("" = the default).
func openIn(t testing.TB, kind, py string, cfg Config) *testDebugger {
	t.Helper()
	sb := envtest.Sandbox(t, kind, env.SandboxSpec{Label: "pdb-test", Workdir: workdir, Python: py})
	var tree bytes.Buffer
	w := tar.NewWriter(&tree)
	if err := errors.Join(w.AddFS(os.DirFS("testdata/shop")), w.Close()); err != nil {
		t.Fatal(err)
	}
	if err := sb.TarIn(t.Context(), workdir, &tree); err != nil {
		t.Fatal(err)
	}
	cfg.Workdir, cfg.Sandbox = workdir, sb
	d := New(cfg)
	t.Cleanup(func() {
		if err := d.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return &testDebugger{d, t, sb}
}

// write replaces a file of the workspace.
func (b *testDebugger) write(name, text string) {
	b.t.Helper()
	if err := b.sb.WriteFile(b.t.Context(), workdir+"/"+name, []byte(text), 0); err != nil {
		b.t.Fatal(err)
	}
}

func (b *testDebugger) read(name string) string {
	b.t.Helper()
	raw, _, err := b.sb.ReadFile(b.t.Context(), workdir+"/"+name, 1<<20)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(raw)
}

// do runs a command that must succeed.
func (b *testDebugger) do(command string) env.DebuggerReply {
	b.t.Helper()
	r := b.try(command)
	if r.IsError {
		b.t.Fatalf("%q was refused:\n%s", command, r.Text)
	}
	return r
}

// forbiddenText matches text that differs from run to run or that shows parts of the debugger.
var forbiddenText = regexp.MustCompile(`\r\n|7717;[A-Z0-9]{26}|(?m:^(Current|Break).*tracesmith-local)|<pdb shim>|bdb\.py`)

// longTimeout is for commands that end by themselves. shortTimeout is for commands that hang; it is
// long enough for the program to reach the point at which it hangs, even on a busy machine.
const (
	longTimeout  = 5 * time.Minute
	shortTimeout = 2 * time.Second
)

// withLongGrace makes the debugger wait for a program that is slow to react to an interrupt.
func (b *testDebugger) withLongGrace() *testDebugger {
	b.d.cfg.Grace = longTimeout
	return b
}

// try runs a command that may fail.
func (b *testDebugger) try(command string) env.DebuggerReply {
	b.t.Helper()
	return b.doWithin(command, longTimeout)
}

func (b *testDebugger) doWithin(command string, timeout time.Duration) env.DebuggerReply {
	b.t.Helper()
	r, err := b.Command(b.t.Context(), env.DebuggerCommand{Text: command, Timeout: timeout})
	if err != nil {
		b.t.Fatalf("%q: %v", command, err)
	}
	b.t.Logf("(Pdb) %s\n%s", command, r.Text)
	if forbiddenText.MatchString(r.Text) {
		b.t.Errorf("%q: text that must not be shown in %q", command, r.Text)
	}
	return r
}

// has checks that the text contains every part.
func (b *testDebugger) has(r env.DebuggerReply, parts ...string) {
	b.t.Helper()
	for _, p := range parts {
		if !strings.Contains(r.Text, p) {
			b.t.Errorf("missing %q in:\n%s", p, r.Text)
		}
	}
}

func (b *testDebugger) hasNot(r env.DebuggerReply, parts ...string) {
	b.t.Helper()
	for _, p := range parts {
		if strings.Contains(r.Text, p) {
			b.t.Errorf("unexpected %q in:\n%s", p, r.Text)
		}
	}
}

// at checks the current position.
func (b *testDebugger) at(r env.DebuggerReply, file string, line int) {
	b.t.Helper()
	if r.Frame == nil || r.Frame.File != file || r.Frame.Line != line {
		b.t.Errorf("position %+v, want %s:%d\n%s", r.Frame, file, line, r.Text)
	}
}

func envCommand(args ...string) env.Command { return env.Command{Args: args, Dir: workdir} }
