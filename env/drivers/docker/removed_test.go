package docker

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/docker/docker/api/types/container"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/guest"
	"github.com/tracesmith/tracesmith/internal/envtest"
)

func TestDockerRemovedContainerIsASandboxDeath(t *testing.T) {
	cli := needDocker(t)
	for why, end := range map[string]func(id string) error{
		"removed": func(id string) error {
			return cli.ContainerRemove(t.Context(), id, container.RemoveOptions{Force: true})
		},
		"container was killed": func(id string) error { return cli.ContainerKill(t.Context(), id, "KILL") },
	} {
		s, err := envtest.Driver(t, "docker").Start(t.Context(), env.SandboxSpec{Label: t.Name() + why})
		if err != nil {
			t.Fatal(err)
		}
		envtest.CheckRemoval(t, s, why, func() {
			if err := end(containerOf(t, cli, t.Name()+why).ID); err != nil {
				t.Error(err)
			}
		})
		if err := s.Close(t.Context()); err != nil {
			t.Errorf("closing a sandbox without a container: %v", err)
		}
	}
}

// If the volume with the guest is removed between two sandboxes of one driver, the driver creates it again.
func TestDockerRemovedVolumeIsCreatedAgain(t *testing.T) {
	cli := needDocker(t)
	// Use a copy of the guest, because other tests use the volume of the original.
	binary, err := guest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(t.TempDir(), "guest")
	if err := os.WriteFile(own, raw, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TRACESMITH_GUEST", own)
	d := envtest.Driver(t, "docker").(*driver)
	envtest.Start(t, d, env.SandboxSpec{Label: t.Name() + " before"})
	image, err := d.image(t.Context(), cli, d.config.Image)
	if err != nil {
		t.Fatal(err)
	}
	name, err := d.guestVolume(t.Context(), cli, image.id)
	if err != nil {
		t.Fatal(err)
	}
	used := containerOf(t, cli, t.Name()+" before").ID
	if err := cli.ContainerRemove(t.Context(), used, container.RemoveOptions{Force: true}); err != nil {
		t.Fatal(err)
	}
	if err := cli.VolumeRemove(t.Context(), name, true); err != nil {
		t.Fatal(err)
	}
	if got := envtest.Output(t, envtest.Start(t, d, env.SandboxSpec{}), "echo", "again"); got != "again\n" {
		t.Errorf("%q", got)
	}
}

// If a start fails after it has created the container, it removes the container.
func TestDockerFailedStartLeavesNothing(t *testing.T) {
	cli := needDocker(t)
	name := makeImage(t, cli, map[string]string{"file": ""})
	_, err := envtest.Driver(t, "docker").Start(t.Context(), env.SandboxSpec{
		Image: name, Label: t.Name(), Mounts: []env.Mount{{Host: t.TempDir(), Path: "/file/below"}},
	})
	if err == nil {
		t.Fatal("the sandbox started")
	}
	list, err := cli.ContainerList(t.Context(), container.ListOptions{All: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		if c.Labels[labelName] == t.Name() {
			t.Errorf("container %s still exists", c.ID)
		}
	}
}
