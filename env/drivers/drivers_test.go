package drivers

import (
	"testing"

	"github.com/docker/docker/api/types/container"
	"go.uber.org/goleak"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/guest"
	"github.com/tracesmith/tracesmith/internal/envtest"
)

func TestMain(m *testing.M) {
	guest.MainIfGuest()
	// client-go ends it at a close message, or else at its next ping, within 5 s: a
	// connection that broke off in the last test leaves it behind for that long.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/client-go/tools/remotecommand.(*heartbeat).start"))
}

func build(t *testing.T, kind string, with map[string]any) env.Driver {
	t.Helper()
	d, err := env.Drivers.Build(kind, with, struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestBubblewrap(t *testing.T) {
	envtest.Run(t, envtest.Suite{Driver: build(t, "bubblewrap", nil), Isolated: true, Remove: killGuest})
}

func TestLocal(t *testing.T) {
	envtest.Run(t, envtest.Suite{Driver: build(t, "local", nil)})
}

func TestDocker(t *testing.T) {
	cli := needDocker(t)
	envtest.Run(t, envtest.Suite{Driver: build(t, "docker", nil), Isolated: true, Remove: func(t *testing.T, label string) {
		err := cli.ContainerRemove(t.Context(), containerOf(t, cli, label).ID, container.RemoveOptions{Force: true})
		if err != nil {
			t.Error(err)
		}
	}})
}
