package kubetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"strconv"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// container is a bubblewrap sandbox that uses this machine's programs as its image. Each
// container has a separate tmpfs of limited size for an in-memory volume, because the
// driver's containers do not exchange data through such volumes.
type container struct {
	name   string
	spec   *corev1.Container
	args   []string // arguments of nsenter, to run a command in the container
	env    []string
	cmd    *exec.Cmd
	output outputHead
	// ended is closed once the container is gone; code is valid then.
	ended chan struct{}
	code  int
}

// ImageEnv is an environment variable that the image of every container sets.
const ImageEnv = "IMAGE_SAYS=hello"

// newContainer starts a container.
func (p *pod) newContainer(spec *corev1.Container) (*container, error) {
	user := strconv.FormatInt(*spec.SecurityContext.RunAsUser, 10)
	args := []string{
		"--unshare-user", "--uid", user, "--gid", user, "--cap-drop", "ALL", "--unshare-ipc", "--unshare-pid", "--unshare-uts",
		"--hostname", p.Spec.Hostname, "--die-with-parent", "--new-session", "--as-pid-1",
		"--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dir", "/etc", "--dir", "/var", "--dir", "/run",
	}
	isolated := p.server.noNetwork(p)
	if isolated {
		args = append(args, "--unshare-net")
	}
	for _, dir := range []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64"} {
		if target, err := os.Readlink(dir); err == nil {
			args = append(args, "--symlink", target, dir)
		} else if _, err := os.Stat(dir); err == nil {
			args = append(args, "--ro-bind", dir, dir)
		}
	}
	for _, file := range []string{"/etc/ld.so.cache", "/etc/alternatives", "/etc/passwd"} {
		args = append(args, "--ro-bind-try", file, file)
	}
	if p.server.isExecTarget(spec) {
		// With a complete /dev, bubblewrap would use a second user namespace, which an
		// unprivileged nsenter cannot enter.
		args = append(args, "--dev-bind", "/dev/null", "/dev/null")
	} else {
		args = append(args, "--dev", "/dev", "--remount-ro", "/dev")
	}
	args, err := p.mounts(args, spec)
	if err != nil {
		return nil, err
	}
	host, port := p.server.address()
	c := &container{name: spec.Name, spec: spec, ended: make(chan struct{}), env: []string{
		"PATH=/usr/local/bin:/usr/bin:/bin", ImageEnv, "HOSTNAME=sandbox", "KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port,
	}}
	for _, e := range spec.Env {
		c.env = append(c.env, e.Name+"="+e.Value)
	}
	dir := spec.WorkingDir
	if dir == "" {
		dir = "/"
	}
	args = append(args, "--chdir", dir, "--remount-ro", "/", "--info-fd", "3")
	return c, c.start(args, isolated)
}

// isExecTarget reports whether the driver executes commands in the container.
func (s *Server) isExecTarget(spec *corev1.Container) bool { return spec.Name != "sandbox" }

func (p *pod) mounts(args []string, spec *corev1.Container) ([]string, error) {
	volumes := map[string]*corev1.EmptyDirVolumeSource{}
	for _, v := range p.Spec.Volumes {
		volumes[v.Name] = v.EmptyDir
	}
	for _, m := range spec.VolumeMounts {
		v := volumes[m.Name]
		switch {
		case v == nil:
			return nil, fmt.Errorf("volume %q is not an emptyDir", m.Name)
		case v.Medium == corev1.StorageMediumMemory:
			if v.SizeLimit != nil {
				args = append(args, "--size", strconv.FormatInt(v.SizeLimit.Value(), 10))
			}
			args = append(args, "--tmpfs", m.MountPath)
			continue
		}
		dir, err := p.volume(m.Name)
		if err != nil {
			return nil, err
		}
		flag := "--bind"
		if m.ReadOnly {
			flag = "--ro-bind"
		}
		args = append(args, flag, path.Join(dir, m.SubPath), m.MountPath)
	}
	return args, nil
}

func (c *container) start(args []string, ownNet bool) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	c.cmd = exec.Command("bwrap", append(append(args, "--"), c.spec.Command...)...)
	c.cmd.Env, c.cmd.ExtraFiles, c.cmd.Stdout, c.cmd.Stderr = c.env, []*os.File{w}, &c.output, &c.output
	unprivileged(c.cmd)
	if err := errors.Join(c.cmd.Start(), w.Close()); err != nil {
		return err
	}
	go func() {
		defer close(c.ended)
		_ = c.cmd.Wait()
		c.code = c.cmd.ProcessState.ExitCode()
		if c.code < 0 {
			c.code = 128 + 9
		}
	}()
	var info struct {
		Child int `json:"child-pid"`
	}
	raw, err := io.ReadAll(r)
	if err == nil {
		err = json.Unmarshal(raw, &info)
	}
	if err != nil {
		<-c.ended
		return fmt.Errorf("%w: %s", err, c.output.String())
	}
	// While the process is still bwrap, the sandbox is not complete.
	line := "/proc/" + strconv.Itoa(info.Child) + "/cmdline"
	for begun := false; !begun; {
		select {
		case <-c.ended:
			begun = true
		case <-time.After(time.Millisecond):
			raw, err := os.ReadFile(line)
			begun = err != nil || !bytes.HasPrefix(raw, []byte("bwrap\x00"))
		}
	}
	c.args = []string{"--target", strconv.Itoa(info.Child), "--user", "--mount", "--pid", "--uts", "--ipc", "--preserve-credentials"}
	if ownNet {
		c.args = append(c.args, "--net")
	}
	return nil
}

func (c *container) kill() {
	_ = c.cmd.Process.Kill() // it may have ended already
	<-c.ended
}

// enter returns a command that runs in the container.
func (c *container) enter(args []string) *exec.Cmd {
	cmd := exec.Command("nsenter", append(append(c.args, "--"), args...)...)
	cmd.Env = c.env
	unprivileged(cmd)
	return cmd
}

// containerUID is the user of containers on the host if the test runs as root. It is far
// above the ids that systems assign.
const containerUID = 2_000_000_000

// unprivileged makes cmd run as another user if the test runs as root.
func unprivileged(cmd *exec.Cmd) {
	cmd.Dir = "/"
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: containerUID, Gid: containerUID}}
	}
}

// outputHead keeps the beginning of a container's output.
type outputHead struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *outputHead) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.buf.Len() < 4096 {
		s.buf.Write(p)
	}
	return len(p), nil
}

func (s *outputHead) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}
