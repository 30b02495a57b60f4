package docker

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/docker/docker/client"

	"github.com/tracesmith/tracesmith/env/drivers"
)

// dial returns a new client. It does not contact the daemon yet.
func (c config) dial() (*client.Client, error) {
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
		if host, tls, err = contextHost(host); err != nil {
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
		return nil, fmt.Errorf("%w: check DOCKER_HOST and the related variables, or sandbox.with.host and sandbox.with.tls", err)
	}
	return cli, nil
}

// contextHost returns the address and the directory of certificates of a context of the docker command. The command
// stores them in directories named after the SHA-256 of the context's name.
func contextHost(name string) (host, tls string, err error) {
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

// dialSSH opens one stream to the daemon of another machine, through ssh and the docker command there. It never
// prompts.
func dialSSH(u *url.URL) (net.Conn, error) {
	args := []string{"-o", "BatchMode=yes", "-o", "ConnectTimeout=30"}
	if u.User != nil {
		args = append(args, "-l", u.User.Username())
	}
	if u.Port() != "" {
		args = append(args, "-p", u.Port())
	}
	cmd := exec.Command("ssh", append(args, "--", u.Hostname(), "docker", "system", "dial-stdio")...)
	c, err := drivers.StartChild(cmd, (*exec.Cmd).Start)
	if err != nil {
		return nil, fmt.Errorf("reaching %s by ssh: %w", u.Host, err)
	}
	return &sshConn{c.Conn, c}, nil
}

// sshConn is a stream that ends its ssh process when it is closed.
type sshConn struct {
	net.Conn
	child *drivers.Child
}

func (c *sshConn) Close() error {
	err := c.Conn.Close()
	c.child.Stop()
	return err
}

// halfCloser is a stream of which one direction can be closed.
type halfCloser interface{ CloseWrite() error }

// CloseWrite closes the output. The Docker client needs it for hijacked streams.
func (c *sshConn) CloseWrite() error {
	if half, ok := c.Conn.(halfCloser); ok {
		return half.CloseWrite()
	}
	return nil
}
