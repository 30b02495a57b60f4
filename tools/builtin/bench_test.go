package builtin

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/internal/envtest"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/tools"
)

// BenchmarkTools measures one call of a tool in a bubblewrap sandbox, end to end.
func BenchmarkTools(b *testing.B) {
	sb := envtest.Sandbox(b, "bubblewrap", env.SandboxSpec{Workdir: "/testbed"})
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	body := strings.Repeat("def f(x):\n    return x\n", 100)
	if err := w.WriteHeader(&tar.Header{Name: "app.py", Mode: 0o644, Size: int64(len(body)), Typeflag: tar.TypeReg}); err != nil {
		b.Fatal(err)
	}
	if _, err := w.Write([]byte(body)); err != nil {
		b.Fatal(err)
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	if err := sb.TarIn(b.Context(), "/testbed", &archive); err != nil {
		b.Fatal(err)
	}
	session := &env.Session{
		Sandbox: sb, Debugger: &scriptedDebugger{}, Workdir: "/testbed", CommandTimeout: 20 * time.Second,
		FileChanged: func(context.Context, env.Edit) {},
	}
	for _, c := range [][2]string{
		{"bash", `{"command":"true"}`}, {"view", `{"path":"app.py"}`}, {"listdir", `{}`},
		{"grep", `{"pattern":"def f"}`}, {"edit", `{"path":"new.py","new_code":"x = %d\n"}`},
	} {
		b.Run(c[0], func(b *testing.B) {
			tool, err := tools.Registry.Build(c[0], nil, struct{}{})
			if err != nil {
				b.Fatal(err)
			}
			set, err := tools.NewSet([]tools.Tool{tool})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				arguments := strings.ReplaceAll(c[1], "%d", strconv.Itoa(n))
				o, err := set.Call(b.Context(), session, schemas.ToolCall{Name: c[0], Arguments: json.RawMessage(arguments)})
				if err != nil || o.IsError {
					b.Fatal(o.Text, err)
				}
			}
		})
	}
}
