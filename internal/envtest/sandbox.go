package envtest

import (
	"context"
	"testing"

	"github.com/tracesmith/tracesmith/env"
)

// Driver returns a driver of the given kind, with default settings. The test must import the
// driver's package.
func Driver(t testing.TB, kind string) env.Driver {
	t.Helper()
	return Build(t, kind, nil)
}

// Build is like Driver, but with the given settings.
func Build(t testing.TB, kind string, with map[string]any) env.Driver {
	t.Helper()
	d, err := env.Drivers.Build(kind, with, struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Sandbox starts a sandbox with a driver of the given kind; see Start.
func Sandbox(t testing.TB, kind string, spec env.SandboxSpec) env.Sandbox {
	t.Helper()
	return Start(t, Driver(t, kind), spec)
}

// Start starts a sandbox that is closed at the end of the test. If the spec has no label, the label is the test's name.
func Start(t testing.TB, d env.Driver, spec env.SandboxSpec) env.Sandbox {
	t.Helper()
	if spec.Label == "" {
		spec.Label = t.Name()
	}
	sb, err := d.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	CloseAtEnd(t, sb)
	return sb
}

// CloseAtEnd closes a sandbox at the end of the test.
func CloseAtEnd(t testing.TB, sb env.Sandbox) {
	t.Helper()
	t.Cleanup(func() {
		if err := sb.Close(context.Background()); err != nil {
			t.Errorf("closing the sandbox: %v", err)
		}
	})
}

// Output runs a command in a sandbox and returns its output. It ends the test if the command fails.
func Output(t testing.TB, sb env.Sandbox, args ...string) string {
	t.Helper()
	r, err := sb.Run(t.Context(), env.Command{Args: args, Timeout: patience})
	if err != nil || r.ExitCode != 0 {
		t.Fatalf("%q: exit %d, %v, %q", args, r.ExitCode, err, r.Output)
	}
	return string(r.Output)
}
