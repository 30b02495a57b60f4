package builtin

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/internal/envtest"
	"github.com/tracesmith/tracesmith/internal/tooltest"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/tools"
)

// files maps the names of a workspace's files to their contents. "-> x" is a symbolic link
// to x, and "#!" makes a file executable.
type files map[string]string

func (f files) tar(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(f)) {
		h := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(f[name])), Typeflag: tar.TypeReg}
		if strings.HasPrefix(f[name], "#!") {
			h.Mode = 0o755
		}
		if target, ok := strings.CutPrefix(f[name], "-> "); ok {
			h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, target, 0
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := w.Write([]byte(f[name])); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// toolSession is a session over a real sandbox that records what the tools did to it.
type toolSession struct {
	t   testing.TB
	set *tools.Set
	*env.Session
	edits     []env.Edit
	submitted bool
	evals     int
	report    env.EvalReport
	debugger  *scriptedDebugger
}

// scriptedDebugger answers as the test sets it; env/pdb has its own tests.
type scriptedDebugger struct {
	points []schemas.Breakpoint
	reply  env.DebuggerReply
	asked  []string
}

func (d *scriptedDebugger) Command(_ context.Context, c env.DebuggerCommand) (env.DebuggerReply, error) {
	d.asked = append(d.asked, fmt.Sprintf("%s|%s|%s|%v%v", c.Text, c.Entrypoint, c.Timeout, c.NoListing, c.Forget))
	return d.reply, nil
}
func (d *scriptedDebugger) Breakpoints() []schemas.Breakpoint { return d.points }
func (d *scriptedDebugger) Frame() *schemas.Frame             { return nil }
func (d *scriptedDebugger) Edited(env.Edit)                   {}
func (d *scriptedDebugger) Reset(context.Context, bool) error { return nil }
func (d *scriptedDebugger) Close(context.Context) error       { return nil }

func newToolSession(t *testing.T, f files) *toolSession { return newToolSessionWith(t, f, nil) }

type settings = tooltest.Settings

func newToolSessionWith(t *testing.T, f files, with settings) *toolSession {
	t.Helper()
	set, err := tools.NewSet(tooltest.Kit(t, with))
	if err != nil {
		t.Fatal(err)
	}
	const workdir = "/testbed"
	b := &toolSession{t: t, set: set, debugger: &scriptedDebugger{reply: env.DebuggerReply{Text: "(no output)\n"}}}
	b.Session = &env.Session{
		Sandbox: envtest.Sandbox(t, "bubblewrap", env.SandboxSpec{Workdir: workdir}), Debugger: b.debugger, Workdir: workdir, CommandTimeout: time.Minute,
		Eval:        func(context.Context, time.Duration) (env.EvalReport, error) { b.evals++; return b.report, nil },
		Submit:      func() { b.submitted = true },
		FileChanged: func(_ context.Context, e env.Edit) { b.edits = append(b.edits, e) },
	}
	if err := b.Sandbox.TarIn(t.Context(), workdir, bytes.NewReader(f.tar(t))); err != nil {
		t.Fatal(err)
	}
	return b
}

type args map[string]any

// call runs a tool. An error of the sandbox fails the test.
func (b *toolSession) call(tool string, a args) schemas.Observation {
	b.t.Helper()
	raw, err := json.Marshal(a)
	if err != nil {
		b.t.Fatal(err)
	}
	o, err := b.set.Call(b.t.Context(), b.Session, schemas.ToolCall{Name: tool, Arguments: raw})
	if err != nil {
		b.t.Fatalf("%s %s: %v", tool, raw, err)
	}
	return o
}

// ok returns the text of a call that must succeed.
func (b *toolSession) ok(tool string, a args) string {
	b.t.Helper()
	o := b.call(tool, a)
	if o.IsError {
		b.t.Fatalf("%s %v: %s", tool, a, o.Text)
	}
	return o.Text
}

// refused checks that a call is an error of the model whose text contains all of says.
func (b *toolSession) refused(tool string, a args, says ...string) {
	b.t.Helper()
	o := b.call(tool, a)
	if o.ErrorClass != schemas.ErrUserError {
		b.t.Errorf("%s %v: class %q, want user_error: %s", tool, a, o.ErrorClass, o.Text)
	}
	for _, s := range says {
		if !strings.Contains(o.Text, s) {
			b.t.Errorf("%s %v: %q does not say %q", tool, a, o.Text, s)
		}
	}
}

// content reads a file of the workspace.
func (b *toolSession) content(name string) string {
	b.t.Helper()
	data, _, err := b.Sandbox.ReadFile(b.t.Context(), b.Workdir+"/"+name, 1<<20)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}
