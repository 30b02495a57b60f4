package docker

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/registry"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/tracesmith/tracesmith/env/drivers"
)

// config are the settings of the docker driver.
type config struct {
	Image string `json:"image"` // image for tasks that name none
	// Daemon: unix://, tcp://, ssh://user@host or the name of a Docker context; unset =
	// DOCKER_HOST.
	Host         string            `json:"host"`
	TLS          string            `json:"tls"`           // directory with ca.pem, cert.pem and key.pem, for tcp://
	Pull         string            `json:"pull"`          // when images are fetched: never or if-missing
	Pulls        int               `json:"pulls"`         // maximum number of images that are fetched concurrently
	RegistryAuth string            `json:"registry_auth"` // credentials for the registry (user:password), as env:NAME
	Platform     string            `json:"platform"`      // platform of the image, such as linux/amd64; unset = this machine's
	Runtime      string            `json:"runtime"`       // OCI runtime; unset = the daemon's default
	NamePrefix   string            `json:"name_prefix"`   // beginning of the names of containers
	Labels       map[string]string `json:"labels"`        // labels of containers
	Env          map[string]string `json:"env"`           // environment of programs
	User         string            `json:"user"`          // UID or UID:GID of programs, never 0
	Tmpfs        map[string]int64  `json:"tmpfs"`         // additional writable directories, each as a path and its size in bytes
	// Mounts are directories of this host, shown read-only.
	Mounts []mountConfig `json:"mounts"`
}

type mountConfig struct {
	Host string `json:"host"` // directory of this host that sandboxes see, read-only
	Path string `json:"path"` // where they see it
}

func defaultConfig() *config {
	return &config{Image: "tracesmith-base:latest", Pull: pullNever, Pulls: 2, NamePrefix: "tracesmith-", User: fmt.Sprint(drivers.User)}
}

// When images are pulled.
const (
	pullNever   = "never"
	pullMissing = "if-missing"
)

func (c config) check() error {
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
		if name == "" || name == labelMark || strings.HasPrefix(name, labelMark+".") {
			bad("label %q: names that begin with %s are reserved", name, labelMark)
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

func (c config) user() (uid, gid int, err error) {
	u, g, pair := strings.Cut(c.User, ":")
	uid, err = strconv.Atoi(u)
	if gid = uid; pair && err == nil {
		gid, err = strconv.Atoi(g)
	}
	if err != nil || uid <= 0 || gid <= 0 || uid > 1<<31 || gid > 1<<31 {
		return 0, 0, fmt.Errorf("user %q: write UID or UID:GID in numbers (names differ between images); 0 is refused, because programs must not run as root", c.User)
	}
	return uid, gid, nil
}

func (c config) environ() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		out = append(out, name+"="+c.Env[name])
	}
	return out
}

// platform returns the platform to request, or nil if it is not configured.
func (c config) platform() *ocispec.Platform {
	f := strings.SplitN(c.Platform, "/", 3)
	if len(f) < 2 {
		return nil
	}
	return &ocispec.Platform{OS: f[0], Architecture: f[1], Variant: strings.Join(f[2:], "/")}
}

// auth returns the authentication header for a pull, or "" if no credentials are configured.
func (c config) auth() (string, error) {
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
