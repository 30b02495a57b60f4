package envtest

import (
	"context"
	"testing"

	"github.com/tracesmith/tracesmith/env"
)

// Driver returns the driver of a kind without settings. The test must import env/drivers.
func Driver(t testing.TB, kind string) env.Driver {
	t.Helper()
	d, err := env.Drivers.Build(kind, nil, struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Sandbox starts a sandbox of a kind and closes it at the end of the test. Its label is
// the test's name if the spec has none.
func Sandbox(t testing.TB, kind string, spec env.SandboxSpec) env.Sandbox {
	t.Helper()
	if spec.Label == "" {
		spec.Label = t.Name()
	}
	sb, err := Driver(t, kind).Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sb.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return sb
}
