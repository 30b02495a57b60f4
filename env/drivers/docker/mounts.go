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

// mountCleanup is what the mounts of one sandbox need at its end.
type mountCleanup struct {
	back    []env.Mount // writable ones that must be copied back
	volumes []string    // to remove
}

// copyBack copies the content of writable mounts back to this host.
func (m mountCleanup) copyBack(ctx context.Context, cli *client.Client, id string) error {
	var errs []error
	for _, one := range m.back {
		if err := copyDirBack(ctx, cli, id, path.Clean(one.Path), one.Host); err != nil {
			errs = append(errs, fmt.Errorf("fetching %s from the daemon: %w", one.Path, err))
		}
	}
	return errors.Join(errs...)
}

// removeVolumes removes the volumes of this sandbox alone.
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

// mounts adds the mounts of a sandbox: binds if the daemon shares this host's files, and volumes otherwise. done is
// also valid with an error.
func (d *driver) mounts(ctx context.Context, cli *client.Client, spec env.SandboxSpec, img *image, host *container.HostConfig) (done mountCleanup, err error) {
	wanted := slices.Clone(spec.Mounts)
	for _, m := range d.config.Mounts {
		wanted = append(wanted, env.Mount{Host: m.Host, Path: m.Path})
	}
	for _, m := range wanted {
		if err := drivers.CheckContainerPath("mount", m.Path); err != nil {
			return done, err
		}
		if m.Write {
			uid, gid, err := d.config.user()
			if err == nil {
				err = os.Chown(m.Host, uid, gid)
			}
			if err != nil {
				return done, fmt.Errorf("handing the mount %s over to the container's user: %w", m.Host, err)
			}
		}
		shared, err := d.shares(ctx, cli, img.id, m.Host)
		if err != nil {
			return done, fmt.Errorf("mounting %s: %w", m.Host, err)
		}
		made := mount.Mount{Type: mount.TypeBind, Source: m.Host, Target: path.Clean(m.Path), ReadOnly: !m.Write}
		if !shared {
			made.Type, made.VolumeOptions = mount.TypeVolume, &mount.VolumeOptions{NoCopy: true}
			if made.Source, err = d.mountVolume(ctx, cli, img.id, m, &done); err != nil {
				return done, fmt.Errorf("copying %s to the daemon: %w", m.Host, err)
			}
		}
		host.Mounts = append(host.Mounts, made)
	}
	done.addDeclared(img, host)
	return done, nil
}

// addDeclared makes the volumes that an image declares, with their files, as read-only as the rest of it, unless
// something else is mounted there. Otherwise the daemon would make writable volumes without a limit. They have names
// because the daemon has no read-only volumes without one.
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

// mountVolume returns the name of a volume that replaces a mount if the daemon does not share this host's files.
func (d *driver) mountVolume(ctx context.Context, cli *client.Client, imageID string, m env.Mount, done *mountCleanup) (string, error) {
	name, labels := "tracesmith-mount-"+drivers.RandomName(), labelsOfOwner()
	if m.Write {
		done.back, done.volumes = append(done.back, m), append(done.volumes, name)
	} else {
		sum, err := fingerprint(m.Host)
		if err != nil {
			return "", err
		}
		name, labels = "tracesmith-mount-"+digest(drivers.Machine(), sum), labelsOfFile(m.Host)
	}
	return name, d.fill(ctx, cli, imageID, name, labels, func(w *tar.Writer) error { return tarDir(w, m.Host) })
}
