package drivers

import (
	"testing"

	"github.com/docker/docker/api/types/container"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/envtest"
)

func TestDockerContainerRemovedUnderneath(t *testing.T) {
	cli := needDocker(t)
	for why, end := range map[string]func(id string) error{
		"removed": func(id string) error {
			return cli.ContainerRemove(t.Context(), id, container.RemoveOptions{Force: true})
		},
		"killed its container": func(id string) error { return cli.ContainerKill(t.Context(), id, "KILL") },
	} {
		s, err := build(t, "docker", nil).Start(t.Context(), env.SandboxSpec{Label: t.Name() + why})
		if err != nil {
			t.Fatal(err)
		}
		envtest.DiesUnderneath(t, s, why, func() {
			if err := end(containerOf(t, cli, t.Name()+why).ID); err != nil {
				t.Error(err)
			}
		})
		if err := s.Close(t.Context()); err != nil {
			t.Errorf("closing what is gone: %v", err)
		}
	}
}
