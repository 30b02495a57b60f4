package envtest

import (
	"context"
	"testing"

	"github.com/tracesmith/tracesmith/env"
)

// Driver is the driver of a kind, without settings. The test imports env/drivers.
func Driver(t testing.TB, kind string) env.Driver {
	t.Helper()
	d, err := env.Drivers.Build(kind, nil, struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Sandbox is a sandbox of a kind, closed with the test. Its label is the test's
// name where the spec has none.
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
