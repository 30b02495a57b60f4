package drivers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/registry"
	"github.com/docker/docker/client"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// dockerConfig are the settings of the docker driver.
type dockerConfig struct {
	Image string `json:"image"` // image for tasks that name none
	// Daemon: unix://, tcp://, ssh://user@host or the name of a Docker context; unset =
	// DOCKER_HOST.
	Host         string            `json:"host"`
	TLS          string            `json:"tls"`           // directory with ca.pem, cert.pem and key.pem, for tcp://
	Pull         string            `json:"pull"`          // when images are fetched: never or if-missing
	Pulls        int               `json:"pulls"`         // images that are fetched at once
	RegistryAuth string            `json:"registry_auth"` // env:NAME of a variable that holds user:password
	Platform     string            `json:"platform"`      // os/arch of the image; unset = this machine's
	Runtime      string            `json:"runtime"`       // OCI runtime; unset = the daemon's default
	NamePrefix   string            `json:"name_prefix"`   // beginning of the names of containers
	Labels       map[string]string `json:"labels"`        // labels of containers
	Env          map[string]string `json:"env"`           // environment of programs
	User         string            `json:"user"`          // UID or UID:GID of programs, never 0
	Tmpfs        map[string]int64  `json:"tmpfs"`         // more writable directories: a path and its size in bytes
	// Mounts are directories of this host, shown read-only.
	Mounts []dockerMount `json:"mounts"`
}

type dockerMount struct {
	Host string `json:"host"` // directory of this host that sandboxes see, read-only
	Path string `json:"path"` // where they see it
}

func defaultDocker() *dockerConfig {
	return &dockerConfig{Image: "tracesmith-base:latest", Pull: pullNever, Pulls: 2, NamePrefix: "tracesmith-", User: fmt.Sprint(insideUser)}
}

// When images are pulled.
const (
	pullNever   = "never"
	pullMissing = "if-missing"
)

func (c dockerConfig) check() error {
	var wrong []error
	bad := func(format string, a ...any) { wrong = append(wrong, fmt.Errorf(format, a...)) }
	if c.Pull != pullNever && c.Pull != pullMissing {
		bad("pull %q: choose %s or %s", c.Pull, pullNever, pullMissing)
	}
	if c.Pulls < 1 {
		bad("pulls %d: at least one image must be fetched at once", c.Pulls)
	}
	if c.RegistryAuth != "" && !strings.HasPrefix(c.RegistryAuth, "env:") {
		bad("registry_auth: never write a password here: write env:NAME and put user:password into that environment variable")
	}
	if c.Platform != "" && strings.Count(c.Platform, "/") < 1 {
		bad("platform %q: write os/arch, such as linux/amd64", c.Platform)
	}
	if _, _, err := c.user(); err != nil {
		wrong = append(wrong, err)
	}
	for name := range c.Labels {
		if name == "" || name == dockerMark || strings.HasPrefix(name, dockerMark+".") {
			bad("label %q: names that begin with %s are taken", name, dockerMark)
		}
	}
	for name := range c.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			bad("env: %q cannot be the name of a variable", name)
		}
	}
	for place, size := range c.Tmpfs {
		if !path.IsAbs(place) || path.Clean(place) == "/" || size < 4096 {
			bad("tmpfs %q of %d bytes: name an absolute path and at least 4096 bytes", place, size)
		}
	}
	for _, m := range c.Mounts {
		if !filepath.IsAbs(m.Host) || !path.IsAbs(m.Path) {
			bad("mounts: host %q and path %q must both be absolute", m.Host, m.Path)
		}
	}
	return errors.Join(wrong...)
}

// user is the numeric identity of programs.
func (c dockerConfig) user() (uid, gid int, err error) {
	u, g, pair := strings.Cut(c.User, ":")
	uid, err = strconv.Atoi(u)
	if gid = uid; pair && err == nil {
		gid, err = strconv.Atoi(g)
	}
	if err != nil || uid <= 0 || gid <= 0 || uid > 1<<31 || gid > 1<<31 {
		return 0, 0, fmt.Errorf("user %q: write UID or UID:GID in numbers (names differ between images); 0 is refused, as no program here runs as root", c.User)
	}
	return uid, gid, nil
}

func (c dockerConfig) environ() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		out = append(out, name+"="+c.Env[name])
	}
	return out
}

// platform is what the daemon is asked for; nil leaves it to the image.
func (c dockerConfig) platform() *ocispec.Platform {
	f := strings.SplitN(c.Platform, "/", 3)
	if len(f) < 2 {
		return nil
	}
	return &ocispec.Platform{OS: f[0], Architecture: f[1], Variant: strings.Join(f[2:], "/")}
}

// auth is the header for a pull, "" without credentials.
func (c dockerConfig) auth() (string, error) {
	name, ok := strings.CutPrefix(c.RegistryAuth, "env:")
	if !ok {
		return "", nil
	}
	user, password, ok := strings.Cut(os.Getenv(name), ":")
	if !ok {
		return "", fmt.Errorf("registry_auth: the environment variable %s does not hold user:password", name)
	}
	return registry.EncodeAuthConfig(registry.AuthConfig{Username: user, Password: password})
}

// dial makes the client; nothing is sent yet.
func (c dockerConfig) dial() (*client.Client, error) {
	opts := []client.Opt{client.WithAPIVersionNegotiation()}
	host, tls := c.Host, c.TLS
	switch {
	case host == "" || host == "default":
		if host = os.Getenv(client.EnvOverrideHost); !strings.HasPrefix(host, "ssh://") {
			opts = append(opts, client.FromEnv)
			host = ""
		}
	case !strings.Contains(host, "://"):
		var err error
		if host, tls, err = dockerContext(host); err != nil {
			return nil, err
		}
	}
	if u, err := url.Parse(host); err == nil && u.Scheme == "ssh" {
		opts = append(opts, client.WithHost("tcp://docker.over.ssh"), client.WithDialContext(func(context.Context, string, string) (net.Conn, error) {
			return dialSSH(u)
		}))
	} else if host != "" {
		opts = append(opts, client.WithHost(host))
	}
	if tls != "" {
		opts = append(opts, client.WithTLSClientConfig(filepath.Join(tls, "ca.pem"), filepath.Join(tls, "cert.pem"), filepath.Join(tls, "key.pem")))
	}
	cli, err := client.NewClientWithOpts(opts...)
	if err != nil {
		return nil, fmt.Errorf("%w: check DOCKER_HOST and its companions, or sandbox.with.host and sandbox.with.tls", err)
	}
	return cli, nil
}

// dockerContext reads a context as the docker command stores it: metadata and
// certificates lie in directories named by the SHA-256 of its name.
func dockerContext(name string) (host, tls string, err error) {
	base := cmp.Or(os.Getenv("DOCKER_CONFIG"), filepath.Join(os.Getenv("HOME"), ".docker"))
	sum := sha256.Sum256([]byte(name))
	id := hex.EncodeToString(sum[:])
	raw, err := os.ReadFile(filepath.Join(base, "contexts", "meta", id, "meta.json"))
	if err != nil {
		return "", "", fmt.Errorf("host %q: no such docker context (see `docker context ls`), and no address such as unix:///var/run/docker.sock, tcp://host:2376 or ssh://user@host", name)
	}
	var meta struct {
		Endpoints map[string]struct{ Host string }
	}
	if err := json.Unmarshal(raw, &meta); err != nil || meta.Endpoints["docker"].Host == "" {
		return "", "", fmt.Errorf("the docker context %q names no daemon", name)
	}
	if dir := filepath.Join(base, "contexts", "tls", id, "docker"); exists(filepath.Join(dir, "ca.pem")) {
		tls = dir
	}
	return meta.Endpoints["docker"].Host, tls, nil
}

func exists(p string) bool {
	_, err := os.Stat(p)
	return err == nil
}

// dialSSH opens one stream to the daemon of another machine through its docker
// command, asking nobody for anything.
func dialSSH(u *url.URL) (net.Conn, error) {
	args := []string{"-o", "BatchMode=yes", "-o", "ConnectTimeout=30"}
	if u.User != nil {
		args = append(args, "-l", u.User.Username())
	}
	if u.Port() != "" {
		args = append(args, "-p", u.Port())
	}
	cmd := exec.Command("ssh", append(args, "--", u.Hostname(), "docker", "system", "dial-stdio")...)
	c, err := startChild(cmd, (*exec.Cmd).Start)
	if err != nil {
		return nil, fmt.Errorf("reaching %s by ssh: %w", u.Host, err)
	}
	return &sshConn{c.conn, c}, nil
}

// sshConn ends its ssh with the stream.
type sshConn struct {
	net.Conn
	child *child
}

func (c *sshConn) Close() error {
	err := c.Conn.Close()
	c.child.stop()
	return err
}

// CloseWrite says that no more is sent; a hijacked stream needs it.
func (c *sshConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
