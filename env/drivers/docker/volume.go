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

// The driver copies what a daemon needs of this host's files into a volume, once per daemon, and every sandbox mounts
// it read-only. A container that is never started serves to fill the volume; its fixed name is the lock between
// processes. The file fillDone, written last, marks a complete copy.
const (
	fillPlace  = "/" + fillRoot
	fillPrefix = "tracesmith-fill-"
	guestDir   = "/run/tracesmith/host" // where containers mount the guest's volume
	guestPath  = guestDir + "/guest"
	// fillTimeout is how long this process waits for another one that fills a volume.
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
	// Path, size and time identify a build on this machine. The machine is part of the name because others may use the
	// same daemon.
	name := "tracesmith-guest-" + digest(drivers.Machine(), binary, fi.Size(), fi.ModTime().UnixNano())
	return name, d.fill(ctx, cli, imageID, name, labelsOfFile(binary), func(w *tar.Writer) error { return tarFile(w, binary, "guest") })
}

// fill makes the volume called name hold what write writes, unless it does already.
func (d *driver) fill(ctx context.Context, cli *client.Client, imageID, name string, labels map[string]string, write func(*tar.Writer) error) error {
	d.filling.Lock()
	defer d.filling.Unlock()
	if d.filled[name] {
		return nil
	}
	place := mount.Mount{Type: mount.TypeVolume, Source: name, Target: fillPlace, VolumeOptions: &mount.VolumeOptions{NoCopy: true, Labels: labels}}
	err := d.withHelper(ctx, cli, imageID, fillPrefix+name, place, func(id string) error {
		_, err := cli.ContainerStatPath(ctx, id, fillPlace+"/"+fillDone)
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
				err = out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: fillRoot + "/" + fillDone, Mode: 0o444})
			}
			w.CloseWithError(errors.Join(err, out.Close()))
		}()
		// The archive starts at the root, because the daemon does not change the directory that it copies to.
		err = cli.CopyToContainer(ctx, id, "/", r, container.CopyToContainerOptions{})
		r.CloseWithError(errors.New("the daemon has answered"))
		<-written
		return err
	})
	d.filled[name] = err == nil
	return err
}

// withHelper makes a container with one mount, calls use without starting the container, and removes it. It waits
// while another process has a container of this name.
func (d *driver) withHelper(ctx context.Context, cli *client.Client, imageID, name string, m mount.Mount, use func(id string) error) error {
	ctx, cancel := context.WithTimeout(ctx, fillTimeout)
	defer cancel()
	labels := labelsOfOwner()
	labels[labelName] = "copying files"
	for {
		made, err := cli.ContainerCreate(ctx,
			&container.Config{Image: imageID, Entrypoint: []string{"/never"}, Labels: labels},
			&container.HostConfig{NetworkMode: "none", Mounts: []mount.Mount{m}}, nil, d.config.platform(), name)
		if err == nil {
			err = use(made.ID)
			late, done := context.WithTimeout(context.WithoutCancel(ctx), drivers.RemoveTimeout)
			defer done()
			return errors.Join(err, cli.ContainerRemove(late, made.ID, container.RemoveOptions{Force: true}))
		}
		if !cerrdefs.IsConflict(err) || ctx.Err() != nil {
			return err
		}
		if c, err := cli.ContainerInspect(ctx, name); err == nil {
			if o, ok := drivers.ParseOwner(c.Config.Labels[labelOwner]); ok && o.Dead() {
				_ = cli.ContainerRemove(ctx, c.ID, container.RemoveOptions{Force: true}) // unless another process has
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// shares reports whether the daemon sees at a path the same files as this host, by comparing the time of the last
// change in nanoseconds. The address does not tell: even a daemon with a local socket may have another file system.
func (d *driver) shares(ctx context.Context, cli *client.Client, imageID, p string) (bool, error) {
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
		mount.Mount{Type: mount.TypeBind, Source: p, Target: fillPlace, ReadOnly: true}, func(id string) error {
			there, err := cli.ContainerStatPath(ctx, id, fillPlace+"/.")
			same = err == nil && there.Mtime.Equal(fi.ModTime())
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
