package drivers

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/client"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/tracesmith/tracesmith/env"
)

const removeBound = 30 * time.Second

// checkContainerPlace refuses a workspace that would cover what a container needs.
func checkContainerPlace(p string) error {
	taken := []string{"/proc", "/dev", "/sys", "/etc", "/bin", "/lib", "/lib64", "/usr/bin", "/usr/lib", "/run/tracesmith"}
	if !path.IsAbs(p) || p == "/" || p == "/usr" || p == "/tmp" || p == home ||
		slices.ContainsFunc(taken, func(t string) bool { return within(p, t) }) {
		return fmt.Errorf("workdir %q: use an absolute path of its own, such as %s", p, defaultWorkdir)
	}
	return nil
}

// container describes a sandbox: the guest as its first process, an unprivileged
// user, nothing writable but sized tmpfs. What an image declares beyond that
// (ENTRYPOINT, USER, HEALTHCHECK, STOPSIGNAL) is overruled, and its volumes are
// as read-only as the rest of it.
func (d *docker) container(spec env.SandboxSpec, img *dockerImage, guestVolume string) (*container.Config, *container.HostConfig, error) {
	uid, gid, err := d.config.user()
	if err != nil {
		return nil, nil, err
	}
	labels := maps.Clone(d.config.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[dockerMark], labels[dockerOwner], labels[dockerLabel] = "1", self().String(), spec.Label
	cfg := &container.Config{
		Image: img.id, User: fmt.Sprintf("%d:%d", uid, gid), Hostname: "sandbox", WorkingDir: spec.Workdir,
		Entrypoint: []string{dockerGuest}, Cmd: guestArgs(spec.Label), Env: []string{"GOMAXPROCS=2"},
		OpenStdin: true, StdinOnce: true, AttachStdin: true, AttachStdout: true, AttachStderr: true,
		Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
		StopSignal:  "SIGKILL", // the guest heeds no other
		Labels:      labels,
	}
	l := spec.Limits
	host := &container.HostConfig{
		NetworkMode: "none", ExtraHosts: []string{"sandbox:127.0.1.1"}, ReadonlyRootfs: true, CapDrop: []string{"ALL"},
		SecurityOpt: []string{"no-new-privileges"},
		LogConfig:   container.LogConfig{Type: "none"},
		Runtime:     d.config.Runtime,
		Tmpfs:       d.tmpfs(spec, uid, gid),
		Mounts: []mount.Mount{{
			Type: mount.TypeVolume, Source: guestVolume, Target: guestDir, ReadOnly: true,
			VolumeOptions: &mount.VolumeOptions{NoCopy: true},
		}},
	}
	if l.MemoryBytes > 0 {
		// tmpfs counts as memory of the container; the watchdog holds programs to
		// MemoryBytes, the cgroup is the fence behind it: too near, and the kernel
		// holds up the guest with everything else before the watchdog sees a burst.
		host.Memory = 2*l.MemoryBytes + max(l.DiskBytes, 0) + 64<<20
		host.MemorySwap = host.Memory
	}
	if l.CPUs > 0 {
		host.NanoCPUs = int64(l.CPUs * 1e9)
	}
	if l.Processes > 0 {
		// The guest's threads count too, and it must never be refused one.
		pids := int64(l.Processes + l.Processes/4 + 96)
		host.PidsLimit = &pids
	}
	if spec.Network {
		host.NetworkMode = "default"
	}
	return cfg, host, nil
}

// tmpfs lists the writable places with their mount options.
func (d *docker) tmpfs(spec env.SandboxSpec, uid, gid int) map[string]string {
	own := fmt.Sprintf(",mode=0755,uid=%d,gid=%d", uid, gid)
	disk := spec.Limits.DiskBytes
	out := map[string]string{}
	for _, place := range []struct {
		path   string
		size   int64
		access string
	}{
		// The runtime gives a mount the mode that the image has there: where that
		// is not everybody's, its owner can still write.
		{"/tmp", share(disk, 4), fmt.Sprintf(",mode=1777,uid=%d,gid=%d", uid, gid)},
		{"/dev/shm", share(disk, 1), ",mode=1777"},
		{home, share(disk, 1), own},
		{spec.Workdir, share(disk, 10), own},
		{binPath, 1 << 20, own},
	} {
		out[place.path] = tmpfsOptions(cmp.Or(d.config.Tmpfs[place.path], place.size)) + place.access
	}
	for place, size := range d.config.Tmpfs {
		if p := path.Clean(place); out[p] == "" {
			out[p] = tmpfsOptions(size) + own
		}
	}
	return out
}

// tmpfsOptions bounds bytes and inodes alike; a size below zero bounds nothing.
func tmpfsOptions(size int64) string {
	const all = "rw,exec,nosuid,nodev"
	if size < 0 {
		return all
	}
	return fmt.Sprintf("%s,size=%d,nr_inodes=%d", all, size, inodes(size))
}

// attached is the stream to a container's first process. The daemon interleaves
// output and errors; what is read here is output alone.
type attached struct {
	net.Conn
	out    *io.PipeReader
	stderr tail
	done   chan struct{}
	once   sync.Once
}

func attach(ctx context.Context, cli *client.Client, id string) (*attached, error) {
	h, err := cli.ContainerAttach(ctx, id, container.AttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	a := &attached{Conn: h.Conn, out: r, done: make(chan struct{})}
	go func() {
		defer close(a.done)
		_, err := stdcopy.StdCopy(w, &a.stderr, h.Reader)
		w.CloseWithError(err) // nil is EOF
	}()
	return a, nil
}

func (a *attached) Read(p []byte) (int, error) { return a.out.Read(p) }

func (a *attached) Close() error {
	var err error
	a.once.Do(func() {
		err = a.Conn.Close()
		_ = a.out.Close()
	})
	return err
}

// wait waits until nothing reads the stream any more, after it was closed.
func (a *attached) wait() error {
	<-a.done
	return nil
}
