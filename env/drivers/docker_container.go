package drivers

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
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

// containerConfig describes the container: the guest as its first process, an
// unprivileged user, nothing writable but sized tmpfs.
func containerConfig(spec env.SandboxSpec, binary string) (*container.Config, *container.HostConfig, error) {
	user := fmt.Sprintf("%d:%d", insideUser, insideUser)
	cfg := &container.Config{
		Image: spec.Image, User: user, Hostname: "sandbox", WorkingDir: spec.Workdir,
		Entrypoint: []string{guestPath}, Cmd: guestArgs(spec.Label), Env: []string{"GOMAXPROCS=2"},
		OpenStdin: true, StdinOnce: true, AttachStdin: true, AttachStdout: true, AttachStderr: true,
		Labels: map[string]string{dockerMark: "1", dockerOwner: self().String(), dockerLabel: spec.Label},
	}
	l := spec.Limits
	// tmpfs counts as memory of the container; the watchdog holds programs to
	// MemoryBytes, the cgroup is the fence behind it.
	memory := l.MemoryBytes + l.DiskBytes + 64<<20
	// The guest's threads count too, and it must never be refused one.
	pids := int64(l.Processes + l.Processes/4 + 96)
	tmpfs := func(size int64) string {
		return fmt.Sprintf("rw,exec,nosuid,nodev,size=%d,nr_inodes=%d,mode=0755,uid=%d,gid=%d", size, size/4096+1024, insideUser, insideUser)
	}
	host := &container.HostConfig{
		NetworkMode: "none", ReadonlyRootfs: true, CapDrop: []string{"ALL"},
		SecurityOpt: []string{"no-new-privileges"},
		LogConfig:   container.LogConfig{Type: "none"},
		ShmSize:     share(l.DiskBytes, 1),
		Tmpfs: map[string]string{
			spec.Workdir: tmpfs(share(l.DiskBytes, 10)),
			"/tmp":       fmt.Sprintf("rw,exec,nosuid,nodev,size=%d,mode=1777", share(l.DiskBytes, 4)),
			home:         tmpfs(share(l.DiskBytes, 1)),
			binPath:      tmpfs(1 << 20),
		},
		Mounts: []mount.Mount{{Type: mount.TypeBind, Source: binary, Target: guestPath, ReadOnly: true}},
		Resources: container.Resources{
			Memory: memory, MemorySwap: memory, NanoCPUs: int64(l.CPUs * 1e9), PidsLimit: &pids,
		},
	}
	if spec.Network {
		host.NetworkMode = "default"
	}
	for _, m := range spec.Mounts {
		if err := checkContainerPlace(path.Clean(m.Path)); err != nil {
			return nil, nil, err
		}
		if m.Write {
			if err := os.Chown(m.Host, insideUser, insideUser); err != nil {
				return nil, nil, fmt.Errorf("handing the mount %s over to the container's user: %w", m.Host, err)
			}
		}
		host.Mounts = append(host.Mounts, mount.Mount{Type: mount.TypeBind, Source: m.Host, Target: path.Clean(m.Path), ReadOnly: !m.Write})
	}
	return cfg, host, nil
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
