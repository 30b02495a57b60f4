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

// bench is a Debugger on a copy of testdata/shop in a sandbox of its own.
type bench struct {
	*Debugger
	t  testing.TB
	sb env.Sandbox
}

const workdir = "/testbed"

func open(t *testing.T, entrypoint string) *bench {
	t.Helper()
	return openIn(t, "local", "", Config{Entrypoint: entrypoint})
}

// openIn makes a sandbox of the given kind whose python3 is py ("" = the default).
func openIn(t testing.TB, kind, py string, cfg Config) *bench {
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
	return &bench{d, t, sb}
}

// write replaces a file of the workspace.
func (b *bench) write(name, text string) {
	b.t.Helper()
	if err := b.sb.WriteFile(b.t.Context(), workdir+"/"+name, []byte(text), 0); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) read(name string) string {
	b.t.Helper()
	raw, _, err := b.sb.ReadFile(b.t.Context(), workdir+"/"+name, 1<<20)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(raw)
}

// do runs a command that must not be refused.
func (b *bench) do(command string) env.DebuggerReply {
	b.t.Helper()
	r := b.try(command)
	if r.IsError {
		b.t.Fatalf("%q was refused:\n%s", command, r.Text)
	}
	return r
}

// unclean text names what differs from run to run, or the debugger's own parts.
var unclean = regexp.MustCompile(`\r\n|7717;[A-Z0-9]{26}|(?m:^(Current|Break).*tracesmith-local)|<pdb shim>|bdb\.py`)

// patience is the limit of a command that ends by itself, and hangs the limit of one that
// does not: long enough to reach the point where it hangs, even on a busy machine.
const (
	patience = 5 * time.Minute
	hangs    = 2 * time.Second
)

// patient has the debugger wait long for a program to stop at an interrupt.
func (b *bench) patient() *bench {
	b.d.cfg.Grace = patience
	return b
}

// try runs a command that may fail.
func (b *bench) try(command string) env.DebuggerReply {
	b.t.Helper()
	return b.within(command, patience)
}

func (b *bench) within(command string, timeout time.Duration) env.DebuggerReply {
	b.t.Helper()
	r, err := b.Command(b.t.Context(), env.DebuggerCommand{Text: command, Timeout: timeout})
	if err != nil {
		b.t.Fatalf("%q: %v", command, err)
	}
	b.t.Logf("(Pdb) %s\n%s", command, r.Text)
	if unclean.MatchString(r.Text) {
		b.t.Errorf("%q: unclean text %q", command, r.Text)
	}
	return r
}

// has checks that the text contains every part.
func (b *bench) has(r env.DebuggerReply, parts ...string) {
	b.t.Helper()
	for _, p := range parts {
		if !strings.Contains(r.Text, p) {
			b.t.Errorf("missing %q in:\n%s", p, r.Text)
		}
	}
}

func (b *bench) hasNot(r env.DebuggerReply, parts ...string) {
	b.t.Helper()
	for _, p := range parts {
		if strings.Contains(r.Text, p) {
			b.t.Errorf("unexpected %q in:\n%s", p, r.Text)
		}
	}
}

// at checks where the debugger stands.
func (b *bench) at(r env.DebuggerReply, file string, line int) {
	b.t.Helper()
	if r.Frame == nil || r.Frame.File != file || r.Frame.Line != line {
		b.t.Errorf("stands at %+v, want %s:%d\n%s", r.Frame, file, line, r.Text)
	}
}

func envCommand(args ...string) env.Command { return env.Command{Args: args, Dir: workdir} }
