package docker

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/client"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/drivers"
	"github.com/tracesmith/tracesmith/internal/envtest"
)

// daemon is a Docker daemon that a test starts. Its mount namespace has another /tmp, so that it sees no files of the
// test, like a daemon on another machine. Its network namespace prevents changes to the bridges of this machine. It
// inherits the socket that it listens on.
type daemon struct {
	root string // its files
	cmd  *exec.Cmd
	log  *bytes.Buffer
	host string
	done chan struct{}
}

// startDaemon starts a daemon that listens on a TCP port. If certs, a directory of certificates, is not empty, the
// daemon uses TLS.
func startDaemon(t *testing.T, certs string) *daemon {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("a second daemon needs root")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	socket, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	root := filepath.Join("/var/lib/docker", "tracesmith-test-"+drivers.RandomName())
	if err := os.MkdirAll(root, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	args := "--tls=false"
	if certs != "" {
		if out, err := exec.Command("cp", "-r", certs, root+"/certs").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		args = fmt.Sprintf("--tlsverify --tlscacert %[1]s/certs/ca.pem --tlscert %[1]s/certs/server.pem --tlskey %[1]s/certs/server-key.pem", root)
	}
	d := &daemon{root: root, host: "tcp://" + l.Addr().String(), log: &bytes.Buffer{}, done: make(chan struct{})}
	d.cmd = exec.Command("unshare", "--net", "--mount", "--propagation", "private", "sh", "-c",
		"mount -t tmpfs tmpfs /tmp && LISTEN_PID=$$ LISTEN_FDS=1 exec dockerd --data-root "+root+"/data --exec-root "+root+"/exec --pidfile "+root+
			"/pid --bridge none --iptables=false --ip-masq=false -H fd:// "+args)
	d.cmd.ExtraFiles = []*os.File{socket}
	d.cmd.Stdout, d.cmd.Stderr = d.log, d.log
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(d.done)
		_ = d.cmd.Wait()
	}()
	t.Cleanup(func() { d.stop(t) })
	up := make(chan error, 1)
	go func() { // the socket accepts connections at once, and the daemon answers when it is ready
		if certs != "" {
			c, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // only whether it answers
			if err == nil {
				_, _ = c.Read(make([]byte, 1)) // the daemon closes a connection without a client certificate
				_ = c.Close()
			}
			up <- nil
			return
		}
		r, err := http.Get("http://" + l.Addr().String() + "/_ping")
		if err == nil {
			_ = r.Body.Close()
		}
		up <- err
	}()
	select {
	case err := <-up:
		if err != nil {
			t.Fatalf("dockerd: %v: %s", err, d.log)
		}
	case <-d.done:
		t.Fatalf("dockerd ended: %s", d.log)
	}
	return d
}

// stop ends the daemon. If the daemon was killed, stop also ends its containerd, and the shims of its containers with
// the containers below them.
func (d *daemon) stop(t *testing.T) {
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	<-d.done
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, line := range lines {
		raw, err := os.ReadFile(line)
		if err != nil || !strings.Contains(string(raw), d.root) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(line))); err == nil && pid != os.Getpid() {
			for _, child := range envtest.Children(t, pid) {
				_ = syscall.Kill(child, syscall.SIGKILL)
			}
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// certificates creates a directory with the certificates and keys of a CA, a server and a client, under the names that
// the docker command uses.
func certificates(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	put := func(name, kind string, der []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	template := func(serial int64) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: fmt.Sprint("test ", serial)},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true,
		}
	}
	var ca *x509.Certificate
	var caKey *ecdsa.PrivateKey
	for serial, names := range [][2]string{{"ca.pem", "ca-key.pem"}, {"server.pem", "server-key.pem"}, {"cert.pem", "key.pem"}} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		one := template(int64(serial + 1))
		if ca == nil {
			one.IsCA, one.KeyUsage, ca, caKey = true, x509.KeyUsageCertSign, one, key
		}
		der, err := x509.CreateCertificate(rand.Reader, one, ca, key.Public(), caKey)
		if err != nil {
			t.Fatal(err)
		}
		secret, err := x509.MarshalECPrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		put(names[0], "CERTIFICATE", der)
		put(names[1], "EC PRIVATE KEY", secret)
	}
	return dir
}

// For a daemon that shares no files with this host, the driver copies the guest and the mounts to the daemon, and the
// content of a writable mount back.
func TestDockerRemoteDaemon(t *testing.T) {
	needDocker(t)
	d := startDaemon(t, "")
	cli, err := client.NewClientWithOpts(client.WithHost(d.host), client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	defer cli.Close()
	image := small(t, cli)
	driver := envtest.Build(t, "docker", map[string]any{"host": d.host, "image": image})

	read, write := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"f": "cached\n", "sub/deep": "deep\n"} {
		p := filepath.Join(read, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	spec := env.SandboxSpec{Label: t.Name(), Mounts: []env.Mount{{Host: read, Path: "/opt/read"}, {Host: write, Path: "/opt/write", Write: true}}}
	s, err := driver.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if got := envtest.Output(t, s, "sh", "-c", "cat /opt/read/f /opt/read/sub/deep; touch /opt/read/x 2>/dev/null || echo refused; mkdir /opt/write/bin; echo made >/opt/write/bin/x"); got != "cached\ndeep\nrefused\n" {
		t.Errorf("%q", got)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(filepath.Join(write, "bin/x")); err != nil || string(got) != "made\n" {
		t.Errorf("the copied file: %q, %v", got, err)
	}
	// The next sandbox sees the changes on this host, and only the copies are left at the daemon.
	if err := os.WriteFile(filepath.Join(read, "f"), []byte("changed\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	spec.Mounts = spec.Mounts[:1]
	s = envtest.Start(t, driver, spec)
	if got := envtest.Output(t, s, "cat", "/opt/read/f"); got != "changed\n" {
		t.Errorf("%q", got)
	}
	out, err := exec.Command("docker", "-H", d.host, "volume", "ls", "-q").Output()
	if names := strings.Fields(string(out)); err != nil || len(names) != 3 { // the guest, two states of the mount
		t.Errorf("volumes %q, %v", names, err)
	}
}

// The certificates for a daemon with TLS come from the settings, from a context of the docker command or from the
// environment.
func TestDockerRemoteDaemonWithTLS(t *testing.T) {
	needDocker(t)
	certs := certificates(t)
	d := startDaemon(t, certs)
	if _, err := envtest.Build(t, "docker", map[string]any{"host": d.host}).Start(t.Context(), env.SandboxSpec{}); err == nil {
		t.Error("a daemon with TLS accepted a connection without TLS")
	}
	cli, err := client.NewClientWithOpts(client.WithHost(d.host), client.WithAPIVersionNegotiation(),
		client.WithTLSClientConfig(filepath.Join(certs, "ca.pem"), filepath.Join(certs, "cert.pem"), filepath.Join(certs, "key.pem")))
	if err != nil {
		t.Fatal(err)
	}
	defer cli.Close()
	image := small(t, cli)
	config := t.TempDir()
	t.Setenv("DOCKER_CONFIG", config)
	if out, err := exec.Command("docker", "context", "create", "far", "--docker",
		fmt.Sprintf("host=%s,ca=%[2]s/ca.pem,cert=%[2]s/cert.pem,key=%[2]s/key.pem", d.host, certs)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, with := range map[string]map[string]any{
		"settings":    {"host": d.host, "tls": certs},
		"context":     {"host": "far"},
		"environment": nil,
	} {
		if name == "environment" {
			t.Setenv("DOCKER_HOST", d.host)
			t.Setenv("DOCKER_TLS_VERIFY", "1")
			t.Setenv("DOCKER_CERT_PATH", certs)
		} else {
			t.Setenv("DOCKER_HOST", "unix:///nowhere")
			t.Setenv("DOCKER_TLS_VERIFY", "")
			t.Setenv("DOCKER_CERT_PATH", "")
		}
		s, err := envtest.Build(t, "docker", with).Start(t.Context(), env.SandboxSpec{Image: image, Label: name})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := envtest.Output(t, s, "echo", name); got != name+"\n" {
			t.Errorf("%q", got)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if _, err := envtest.Build(t, "docker", map[string]any{"host": "nowhere"}).Start(t.Context(), env.SandboxSpec{}); err == nil || !strings.Contains(err.Error(), "docker context ls") {
		t.Errorf("an unknown context: %v", err)
	}
}

// The driver reaches a daemon on another machine through ssh and the docker command there. In the test, a script called
// ssh runs the command on this machine.
func TestDockerOverSSH(t *testing.T) {
	needDocker(t)
	bin := t.TempDir()
	script := "#!/bin/sh\necho \"$@\" >>" + bin + "/calls\nwhile [ \"$1\" != -- ]; do shift; done\nshift 2\nunset DOCKER_HOST\nexec \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "ssh"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	s := envtest.Start(t, envtest.Build(t, "docker", map[string]any{"host": "ssh://builder@far:2222"}), env.SandboxSpec{})
	if got := envtest.Output(t, s, "echo", "there"); got != "there\n" {
		t.Errorf("%q", got)
	}
	calls, err := os.ReadFile(filepath.Join(bin, "calls"))
	if err != nil || !strings.Contains(string(calls), "-o BatchMode=yes -o ConnectTimeout=30 -l builder -p 2222 -- far docker system dial-stdio\n") {
		t.Errorf("%q, %v", calls, err)
	}
}

// When the daemon ends, the sandbox dies immediately, and the agent is not the cause.
func TestDockerDaemonThatEndsKillsTheSandbox(t *testing.T) {
	needDocker(t)
	for how, why := range map[syscall.Signal]string{
		syscall.SIGTERM: "", // the daemon kills its containers first, and may still answer
		syscall.SIGKILL: "the Docker daemon can no longer be reached",
	} {
		d := startDaemon(t, "")
		cli, err := client.NewClientWithOpts(client.WithHost(d.host), client.WithAPIVersionNegotiation())
		if err != nil {
			t.Fatal(err)
		}
		image := small(t, cli)
		s, err := envtest.Build(t, "docker", map[string]any{"host": d.host}).Start(t.Context(), env.SandboxSpec{Image: image, Label: t.Name()})
		if err != nil {
			t.Fatal(err)
		}
		envtest.CheckRemoval(t, s, why, func() {
			if err := d.cmd.Process.Signal(how); err != nil {
				t.Fatal(err)
			}
		})
		<-d.done
		_ = s.Close(t.Context()) // fails because the daemon has ended
		_ = cli.Close()
	}
}

// If the daemon is stopped, a call ends at its time limit.
func TestDockerCallsEndIfTheDaemonHangs(t *testing.T) {
	needDocker(t)
	d := startDaemon(t, "")
	cli, err := client.NewClientWithOpts(client.WithHost(d.host), client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	defer cli.Close()
	s, err := envtest.Build(t, "docker", map[string]any{"host": d.host}).Start(t.Context(), env.SandboxSpec{Image: small(t, cli), Label: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	_, err = s.Run(t.Context(), env.Command{Args: []string{"sleep", "55"}, Timeout: time.Second})
	died, _ := errors.AsType[*env.DiedError](err)
	if died == nil || died.CausedByCommand || !strings.Contains(died.Reason, "the Docker daemon does not answer") {
		t.Errorf("%v (%+v)", err, died)
	}
	if err := d.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
