package drivers

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/client"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/guest"
)

// What a daemon must have of this host's files is copied into a volume, once per
// daemon, and mounted read-only by every sandbox. A volume is filled through a
// container that is never started; its fixed name is the lock between processes,
// and a last file says that the copy is whole.
const (
	fillRoot    = "fill"
	fillPlace   = "/" + fillRoot
	fillWhole   = ".whole"
	fillPrefix  = "tracesmith-fill-"
	guestDir    = "/run/tracesmith/host" // where containers see the guest's volume
	dockerGuest = guestDir + "/guest"
	// fillBound is how long another process may take to fill a volume.
	fillBound = 5 * time.Minute
)

// guestVolume is the volume that holds this guest.
func (d *docker) guestVolume(ctx context.Context, cli *client.Client, image string) (string, error) {
	binary, err := guest.Binary()
	if err != nil {
		return "", err
	}
	fi, err := os.Stat(binary)
	if err != nil {
		return "", err
	}
	// Path, size and time name a build of ours on this host; the host is part of
	// the name because others use the same daemon.
	name := "tracesmith-guest-" + digest(here().host, binary, fi.Size(), fi.ModTime().UnixNano())
	return name, d.fill(ctx, cli, image, name, ofFile(binary), func(w *tar.Writer) error { return tarFile(w, binary, "guest") })
}

// ofFile labels a copy of what lies at a path of this host: when that is gone, so
// may the copy.
func ofFile(p string) map[string]string {
	return map[string]string{dockerMark: "1", dockerSource: here().host + ":" + p}
}

// ofOwner labels what must not outlive this process.
func ofOwner() map[string]string {
	return map[string]string{dockerMark: "1", dockerOwner: self().String()}
}

// fill makes the volume called name hold what write writes.
func (d *docker) fill(ctx context.Context, cli *client.Client, image, name string, labels map[string]string, write func(*tar.Writer) error) error {
	d.filling.Lock()
	defer d.filling.Unlock()
	if d.full[name] {
		return nil
	}
	place := mount.Mount{Type: mount.TypeVolume, Source: name, Target: fillPlace, VolumeOptions: &mount.VolumeOptions{NoCopy: true, Labels: labels}}
	err := d.aside(ctx, cli, image, fillPrefix+name, place, func(id string) error {
		_, err := cli.ContainerStatPath(ctx, id, fillPlace+"/"+fillWhole)
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
				err = out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: fillRoot + "/" + fillWhole, Mode: 0o444})
			}
			w.CloseWithError(errors.Join(err, out.Close()))
		}()
		// From the root, because the daemon leaves the directory it copies to as it is.
		err = cli.CopyToContainer(ctx, id, "/", r, container.CopyToContainerOptions{})
		r.CloseWithError(errors.New("the daemon has its answer"))
		<-written
		return err
	})
	d.full[name] = err == nil
	return err
}

// aside makes a container with one mount that is never started, for use, and
// removes it. While another process holds the name it waits.
func (d *docker) aside(ctx context.Context, cli *client.Client, image, name string, m mount.Mount, use func(id string) error) error {
	ctx, cancel := context.WithTimeout(ctx, fillBound)
	defer cancel()
	labels := ofOwner()
	labels[dockerLabel] = "copying files"
	for {
		made, err := cli.ContainerCreate(ctx,
			&container.Config{Image: image, Entrypoint: []string{"/never"}, Labels: labels},
			&container.HostConfig{NetworkMode: "none", Mounts: []mount.Mount{m}}, nil, d.config.platform(), name)
		if err == nil {
			err = use(made.ID)
			late, done := context.WithTimeout(context.WithoutCancel(ctx), removeBound)
			defer done()
			return errors.Join(err, cli.ContainerRemove(late, made.ID, container.RemoveOptions{Force: true}))
		}
		if !cerrdefs.IsConflict(err) || ctx.Err() != nil {
			return err
		}
		if c, err := cli.ContainerInspect(ctx, name); err == nil {
			if o, ok := parseOwner(c.Config.Labels[dockerOwner]); ok && o.dead() {
				_ = cli.ContainerRemove(ctx, c.ID, container.RemoveOptions{Force: true}) // or somebody else does
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// mounted is what the mounts of one sandbox leave to do at its end.
type mounted struct {
	back    []env.Mount // writable ones that must be copied back
	volumes []string    // theirs
}

// fetch copies back what writable mounts hold now.
func (m mounted) fetch(ctx context.Context, cli *client.Client, id string) error {
	var errs []error
	for _, one := range m.back {
		if err := fetchDir(ctx, cli, id, path.Clean(one.Path), one.Host); err != nil {
			errs = append(errs, fmt.Errorf("fetching %s from the daemon: %w", one.Path, err))
		}
	}
	return errors.Join(errs...)
}

// drop removes the volumes that nobody else uses.
func (m mounted) drop(ctx context.Context, cli *client.Client) error {
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeBound)
	defer cancel()
	var errs []error
	for _, v := range m.volumes {
		if err := cli.VolumeRemove(late, v, true); !cerrdefs.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// mounts adds the mounts of a sandbox: bound where the daemon sees this host's
// files, else through volumes.
func (d *docker) mounts(ctx context.Context, cli *client.Client, spec env.SandboxSpec, img *dockerImage, host *container.HostConfig) (done mounted, err error) {
	wanted := slices.Clone(spec.Mounts)
	for _, m := range d.config.Mounts {
		wanted = append(wanted, env.Mount{Host: m.Host, Path: m.Path})
	}
	for _, m := range wanted {
		if err := checkContainerPlace(path.Clean(m.Path)); err != nil {
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
		near, err := d.sees(ctx, cli, img.id, m.Host)
		if err != nil {
			return done, fmt.Errorf("mounting %s: %w", m.Host, err)
		}
		made := mount.Mount{Type: mount.TypeBind, Source: m.Host, Target: path.Clean(m.Path), ReadOnly: !m.Write}
		if !near {
			made.Type, made.VolumeOptions = mount.TypeVolume, &mount.VolumeOptions{NoCopy: true}
			if made.Source, err = d.mountVolume(ctx, cli, img.id, m, &done); err != nil {
				return done, fmt.Errorf("copying %s to the daemon: %w", m.Host, err)
			}
		}
		host.Mounts = append(host.Mounts, made)
	}
	done.declared(img, host)
	return done, nil
}

// declared makes the places that an image declares as volumes as read-only as the
// rest of it, its files there included, unless something else lies there. The
// daemon would make volumes without limit of them, and has no read-only ones
// without a name.
func (m *mounted) declared(img *dockerImage, host *container.HostConfig) {
	for _, v := range img.volumes {
		if _, covered := host.Tmpfs[v]; covered || slices.ContainsFunc(host.Mounts, func(m mount.Mount) bool { return m.Target == v }) {
			continue
		}
		name := "tracesmith-image-" + randomName()
		m.volumes = append(m.volumes, name)
		host.Mounts = append(host.Mounts, mount.Mount{
			Type: mount.TypeVolume, Source: name, Target: v, ReadOnly: true,
			VolumeOptions: &mount.VolumeOptions{Labels: ofOwner()},
		})
	}
}

// mountVolume is a volume that stands for a mount where the daemon cannot see it.
func (d *docker) mountVolume(ctx context.Context, cli *client.Client, image string, m env.Mount, done *mounted) (string, error) {
	name, labels := "tracesmith-mount-"+randomName(), ofOwner()
	if m.Write {
		done.back, done.volumes = append(done.back, m), append(done.volumes, name)
	} else {
		sum, err := fingerprint(m.Host)
		if err != nil {
			return "", err
		}
		name, labels = "tracesmith-mount-"+digest(here().host, sum), ofFile(m.Host)
	}
	return name, d.fill(ctx, cli, image, name, labels, func(w *tar.Writer) error { return tarDir(w, m.Host) })
}

// sees tells whether the daemon finds at a path what this host has there: the
// time of its last change, to the nanosecond, says so. Addresses say nothing: a
// daemon behind a local socket may live in a file system of its own.
func (d *docker) sees(ctx context.Context, cli *client.Client, image, p string) (bool, error) {
	d.filling.Lock()
	defer d.filling.Unlock()
	if known, ok := d.seen[p]; ok {
		return known, nil
	}
	fi, err := os.Stat(p)
	if err != nil {
		return false, err
	}
	same := false
	err = d.aside(ctx, cli, image, fillPrefix+randomName(),
		mount.Mount{Type: mount.TypeBind, Source: p, Target: fillPlace, ReadOnly: true}, func(id string) error {
			there, err := cli.ContainerStatPath(ctx, id, fillPlace+"/.")
			same = err == nil && there.Mtime.Equal(fi.ModTime())
			return err
		})
	if err != nil && strings.Contains(err.Error(), "bind source path does not exist") {
		err = nil
	}
	if err == nil {
		d.seen[p] = same
	}
	return same, err
}

// fingerprint names the content of a directory by what a walk sees: names,
// sizes, modes, link targets and times.
func fingerprint(dir string) (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := e.Info()
		if err != nil {
			return err
		}
		target, _ := os.Readlink(p)
		fmt.Fprintf(h, "%q %d %v %d %q\n", p, fi.Size(), fi.Mode(), fi.ModTime().UnixNano(), target)
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)[:12]), err
}

func digest(parts ...any) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", parts))
	return hex.EncodeToString(sum[:12])
}

func tarFile(w *tar.Writer, file, name string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: fillRoot + "/" + name, Mode: int64(fi.Mode().Perm()) | 0o444, Size: fi.Size()}); err != nil {
		return err
	}
	_, err = io.CopyN(w, f, fi.Size())
	return err
}

// tarDir writes a directory with owners, modes and times, itself first.
func tarDir(w *tar.Writer, dir string) error {
	return filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := e.Info()
		if err != nil {
			return err
		}
		if !fi.Mode().IsRegular() && !fi.IsDir() && fi.Mode()&fs.ModeSymlink == 0 {
			return nil // sockets and the like mean nothing elsewhere
		}
		target, _ := os.Readlink(p)
		h, err := tar.FileInfoHeader(fi, target)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		h.Name, h.Uname, h.Gname = path.Join(fillRoot, rel), "", ""
		if err := w.WriteHeader(h); err != nil || !fi.Mode().IsRegular() {
			return err
		}
		f, err := os.Open(p)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.CopyN(w, f, fi.Size())
		return err
	})
}

// maxFetch bounds what is copied back of a writable mount.
const maxFetch = 16 << 30

// fetchDir copies a container's directory into dir, which is the root nothing
// in the stream can leave.
func fetchDir(ctx context.Context, cli *client.Client, id, place, dir string) error {
	stream, _, err := cli.CopyFromContainer(ctx, id, place+"/.")
	if err != nil {
		return err
	}
	defer stream.Close()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	in := tar.NewReader(io.LimitReader(stream, maxFetch))
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := fetchEntry(root, h, in); err != nil {
			return err
		}
	}
}

func fetchEntry(root *os.Root, h *tar.Header, in io.Reader) error {
	name := path.Clean(h.Name)
	if name == "." || name == fillWhole {
		return nil
	}
	mode := fs.FileMode(h.Mode).Perm()
	switch h.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(name, mode|0o700)
	case tar.TypeSymlink:
		return root.Symlink(h.Linkname, name)
	case tar.TypeLink:
		return root.Link(path.Clean(h.Linkname), name)
	case tar.TypeReg:
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, in)
		return errors.Join(err, f.Close())
	}
	return nil // devices and the like
}
