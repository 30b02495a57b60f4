package builtin

import (
	"context"
	"os"
	"testing"

	"github.com/tracesmith/tracesmith/env"
	_ "github.com/tracesmith/tracesmith/env/drivers"
	"github.com/tracesmith/tracesmith/env/guest"
)

func TestMain(m *testing.M) {
	guest.MainIfGuest()
	os.Exit(m.Run())
}

func startSandbox(t *testing.T, workdir string) env.Sandbox {
	t.Helper()
	d, err := env.Drivers.Build("bubblewrap", nil, struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	sb, err := d.Start(t.Context(), env.SandboxSpec{Label: t.Name(), Workdir: workdir})
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
