package docker

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/client"

	"github.com/tracesmith/tracesmith/env/drivers"
	"github.com/tracesmith/tracesmith/env/guest"
)

// The driver copies the host's files that sandboxes need into volumes of the daemon, once per daemon, and every sandbox
// mounts them read-only. To fill a volume, it copies to a container that it never starts. The fixed name of that
// container is the lock between processes. The file completeMark, written last, marks a complete copy.
const (
	fillPath   = "/" + fillRoot
	fillPrefix = "tracesmith-fill-"
	guestDir   = "/run/tracesmith/host" // where containers mount the guest's volume
	guestPath  = guestDir + "/guest"
	// fillTimeout is how long withHelper waits while another process has a container with the same name.
	fillTimeout = 5 * time.Minute
)

// guestVolume returns the name of the volume that holds the guest, and fills it if necessary.
func (d *driver) guestVolume(ctx context.Context, cli *client.Client, imageID string) (string, error) {
	binary, err := guest.Binary()
	if err != nil {
		return "", err
	}
	fi, err := os.Stat(binary)
	if err != nil {
		return "", err
	}
	// Path, size and time identify a build of the guest on this machine. The machine is part of the name because other
	// machines may use the same daemon.
	name := "tracesmith-guest-" + digest(drivers.MachineID(), binary, fi.Size(), fi.ModTime().UnixNano())
	return name, d.fillVolume(ctx, cli, imageID, name, labelsOfFile(binary), func(w *tar.Writer) error { return tarFile(w, binary, "guest") })
}

// fillVolume fills the volume called name with the archive that write writes, unless the volume is already complete.
func (d *driver) fillVolume(ctx context.Context, cli *client.Client, imageID, name string, labels map[string]string, write func(*tar.Writer) error) error {
	d.filling.Lock()
	defer d.filling.Unlock()
	if d.filled[name] {
		return nil
	}
	target := mount.Mount{Type: mount.TypeVolume, Source: name, Target: fillPath, VolumeOptions: &mount.VolumeOptions{NoCopy: true, Labels: labels}}
	err := d.withHelper(ctx, cli, imageID, fillPrefix+name, target, func(id string) error {
		_, err := cli.ContainerStatPath(ctx, id, fillPath+"/"+completeMark)
		if !cerrdefs.IsNotFound(err) {
			return err
		}
		r, w := io.Pipe()
		written := make(chan struct{})
		go func() {
			defer close(written)
			out := tar.NewWriter(w)
			err := write(out)
			if err == nil {
				err = out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: fillRoot + "/" + completeMark, Mode: 0o444})
			}
			w.CloseWithError(errors.Join(err, out.Close()))
		}()
		// Copy to the root, because the daemon does not change the owner and mode of the directory that it copies to.
		err = cli.CopyToContainer(ctx, id, "/", r, container.CopyToContainerOptions{})
		r.CloseWithError(errors.New("the daemon stopped reading"))
		<-written
		return err
	})
	d.filled[name] = err == nil
	return err
}

// withHelper creates a container with one mount, calls use without starting the container, and removes the container.
// It waits while another process has a container with this name.
func (d *driver) withHelper(ctx context.Context, cli *client.Client, imageID, name string, m mount.Mount, use func(id string) error) error {
	ctx, cancel := context.WithTimeout(ctx, fillTimeout)
	defer cancel()
	labels := labelsOfOwner()
	labels[labelName] = "copying files"
	for {
		created, err := cli.ContainerCreate(ctx,
			&container.Config{Image: imageID, Entrypoint: []string{"/never"}, Labels: labels},
			&container.HostConfig{NetworkMode: "none", Mounts: []mount.Mount{m}}, nil, d.config.platform(), name)
		if err == nil {
			err = use(created.ID)
			late, done := context.WithTimeout(context.WithoutCancel(ctx), drivers.RemoveTimeout)
			defer done()
			return errors.Join(err, cli.ContainerRemove(late, created.ID, container.RemoveOptions{Force: true}))
		}
		if !cerrdefs.IsConflict(err) || ctx.Err() != nil {
			return err
		}
		if c, err := cli.ContainerInspect(ctx, name); err == nil {
			if o, ok := drivers.ParseOwner(c.Config.Labels[labelOwner]); ok && o.Dead() {
				_ = cli.ContainerRemove(ctx, c.ID, container.RemoveOptions{Force: true}) // fails if another process has removed it
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// sharesFiles reports whether the daemon sees the same files at path p as this host. It compares the modification time
// in nanoseconds, because even a daemon with a local socket may have another file system.
func (d *driver) sharesFiles(ctx context.Context, cli *client.Client, imageID, p string) (bool, error) {
	d.filling.Lock()
	defer d.filling.Unlock()
	if known, ok := d.shared[p]; ok {
		return known, nil
	}
	fi, err := os.Stat(p)
	if err != nil {
		return false, err
	}
	same := false
	err = d.withHelper(ctx, cli, imageID, fillPrefix+drivers.RandomName(),
		mount.Mount{Type: mount.TypeBind, Source: p, Target: fillPath, ReadOnly: true}, func(id string) error {
			stat, err := cli.ContainerStatPath(ctx, id, fillPath+"/.")
			same = err == nil && stat.Mtime.Equal(fi.ModTime())
			return err
		})
	if err != nil && strings.Contains(err.Error(), "bind source path does not exist") {
		err = nil
	}
	if err == nil {
		d.shared[p] = same
	}
	return same, err
}

func digest(parts ...any) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", parts))
	return hex.EncodeToString(sum[:12])
}
