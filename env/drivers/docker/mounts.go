package docker

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/client"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/drivers"
)

// mountCleanup describes what must be done for the mounts of a sandbox when it ends.
type mountCleanup struct {
	writable []env.Mount // mounts whose content must be copied back
	volumes  []string    // to remove
}

// copyBack copies the content of writable mounts back to this host.
func (m mountCleanup) copyBack(ctx context.Context, cli *client.Client, id string) error {
	var errs []error
	for _, mounted := range m.writable {
		if err := copyDirBack(ctx, cli, id, path.Clean(mounted.Path), mounted.Host); err != nil {
			errs = append(errs, fmt.Errorf("fetching %s from the daemon: %w", mounted.Path, err))
		}
	}
	return errors.Join(errs...)
}

// removeVolumes removes the volumes that only this sandbox uses.
func (m mountCleanup) removeVolumes(ctx context.Context, cli *client.Client) error {
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), drivers.RemoveTimeout)
	defer cancel()
	var errs []error
	for _, v := range m.volumes {
		if err := cli.VolumeRemove(late, v, true); !cerrdefs.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// addMounts adds the mounts of a sandbox to host: bind mounts if the daemon sees this host's files, and volumes
// otherwise. cleanup is also valid if there is an error.
func (d *driver) addMounts(ctx context.Context, cli *client.Client, spec env.SandboxSpec, img *image, host *container.HostConfig) (cleanup mountCleanup, err error) {
	wanted := slices.Clone(spec.Mounts)
	for _, m := range d.config.Mounts {
		wanted = append(wanted, env.Mount{Host: m.Host, Path: m.Path})
	}
	for _, m := range wanted {
		if err := drivers.CheckContainerPath("mount", m.Path); err != nil {
			return cleanup, err
		}
		if m.Write {
			uid, gid, err := d.config.user()
			if err == nil {
				err = os.Chown(m.Host, uid, gid)
			}
			if err != nil {
				return cleanup, fmt.Errorf("handing the mount %s over to the container's user: %w", m.Host, err)
			}
		}
		shared, err := d.sharesFiles(ctx, cli, img.id, m.Host)
		if err != nil {
			return cleanup, fmt.Errorf("mounting %s: %w", m.Host, err)
		}
		dockerMount := mount.Mount{Type: mount.TypeBind, Source: m.Host, Target: path.Clean(m.Path), ReadOnly: !m.Write}
		if !shared {
			dockerMount.Type, dockerMount.VolumeOptions = mount.TypeVolume, &mount.VolumeOptions{NoCopy: true}
			if dockerMount.Source, err = d.mountVolume(ctx, cli, img.id, m, &cleanup); err != nil {
				return cleanup, fmt.Errorf("copying %s to the daemon: %w", m.Host, err)
			}
		}
		host.Mounts = append(host.Mounts, dockerMount)
	}
	cleanup.addDeclared(img, host)
	return cleanup, nil
}

// addDeclared mounts the volumes that an image declares, unless something else is mounted there. They contain the
// image's files and are read-only like the rest of the image; by default, the daemon would create writable volumes
// without a limit. They have names because the daemon does not support read-only volumes without one.
func (m *mountCleanup) addDeclared(img *image, host *container.HostConfig) {
	for _, v := range img.volumes {
		if _, covered := host.Tmpfs[v]; covered || slices.ContainsFunc(host.Mounts, func(m mount.Mount) bool { return m.Target == v }) {
			continue
		}
		name := "tracesmith-image-" + drivers.RandomName()
		m.volumes = append(m.volumes, name)
		host.Mounts = append(host.Mounts, mount.Mount{
			Type: mount.TypeVolume, Source: name, Target: v, ReadOnly: true,
			VolumeOptions: &mount.VolumeOptions{Labels: labelsOfOwner()},
		})
	}
}

// mountVolume copies a mount to a volume and returns its name, for a daemon that does not see this host's files.
func (d *driver) mountVolume(ctx context.Context, cli *client.Client, imageID string, m env.Mount, cleanup *mountCleanup) (string, error) {
	name, labels := "tracesmith-mount-"+drivers.RandomName(), labelsOfOwner()
	if m.Write {
		cleanup.writable, cleanup.volumes = append(cleanup.writable, m), append(cleanup.volumes, name)
	} else {
		sum, err := fingerprint(m.Host)
		if err != nil {
			return "", err
		}
		name, labels = "tracesmith-mount-"+digest(drivers.MachineID(), sum), labelsOfFile(m.Host)
	}
	return name, d.fillVolume(ctx, cli, imageID, name, labels, func(w *tar.Writer) error { return tarDir(w, m.Host) })
}
