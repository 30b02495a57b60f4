package drivers

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"

	"github.com/tracesmith/tracesmith/env"
)

// needDocker leaves tests to the runs that have a daemon.
func needDocker(t testing.TB) *client.Client {
	t.Helper()
	if os.Getenv("TRACESMITH_TEST_DOCKER") != "1" {
		t.Skip("TRACESMITH_TEST_DOCKER=1 runs this; it needs a daemon and scripts/docker-image.sh's image")
	}
	cli, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cli.Close() })
	return cli
}

// mustStart starts a sandbox that ends with the test.
func mustStart(t *testing.T, d env.Driver, spec env.SandboxSpec) env.Sandbox {
	t.Helper()
	if spec.Label == "" {
		spec.Label = t.Name()
	}
	s, err := d.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return s
}

// says runs a command that must succeed.
func says(t *testing.T, s env.Sandbox, args ...string) string {
	t.Helper()
	r, err := s.Run(t.Context(), env.Command{Args: args, Timeout: time.Minute})
	if err != nil || r.ExitCode != 0 {
		t.Fatalf("%q: exit %d, %v, %q", args, r.ExitCode, err, r.Output)
	}
	return string(r.Output)
}

// containerOf is the container that carries a label of ours.
func containerOf(t *testing.T, cli *client.Client, label string) container.InspectResponse {
	t.Helper()
	list, err := cli.ContainerList(t.Context(), container.ListOptions{All: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		if c.Labels[dockerLabel] == label {
			found, err := cli.ContainerInspect(t.Context(), c.ID)
			if err != nil {
				t.Fatal(err)
			}
			return found
		}
	}
	t.Fatalf("no container is labelled %q", label)
	return container.InspectResponse{}
}
