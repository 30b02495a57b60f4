// Package docker starts sandboxes as containers of a Docker daemon, on this machine or elsewhere.
package docker

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/client"
	"golang.org/x/sync/semaphore"

	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/drivers"
)

func init() {
	env.Drivers.Register(plugin.Spec[env.Driver, struct{}]{
		Kind:    "docker",
		Summary: "containers of a Docker daemon here or elsewhere, for tasks that name an image",
		Default: func() any { return defaultConfig() },
		New: func(cfg any, _ struct{}) (env.Driver, error) {
			c := *cfg.(*config)
			if err := c.check(); err != nil {
				return nil, err
			}
			return &driver{
				config: c, images: map[string]*image{},
				filled: map[string]bool{}, shared: map[string]bool{}, pulls: semaphore.NewWeighted(int64(c.Pulls)),
			}, nil
		},
	})
}

// driver starts each sandbox as a container whose first process is the guest, and speaks to it through the attached
// standard streams. The guest reaches the daemon in a volume, so the daemon may run anywhere.
type driver struct {
	config  config
	pulls   *semaphore.Weighted // limits the concurrent pulls for sandboxes
	pythons drivers.ImagePythons

	mu     sync.Mutex
	client *client.Client // made at first use, then shared
	users  int            // sandboxes and calls that use it now
	images map[string]*image

	filling sync.Mutex      // held while a volume is filled or a path is compared
	filled  map[string]bool // volumes that are known to be complete
	shared  map[string]bool // host paths: whether the daemon sees the same files there
}

func (*driver) Name() string { return "docker" }

// connect returns the client, which negotiates the API version only once. Its connections stay open until the last
// user has called release.
func (d *driver) connect() (*client.Client, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.client == nil {
		cli, err := d.config.dial()
		if err != nil {
			return nil, err
		}
		d.client = cli
	}
	d.users++
	return d.client, nil
}

func (d *driver) release() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.users--; d.users > 0 {
		return nil
	}
	return d.client.Close() // closes idle connections; the client stays usable
}

// knownImage returns what the daemon said about an image earlier, or nil.
func (d *driver) knownImage(name string) *image {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.images[name]
}

// forget drops what is known about an image and the volumes.
func (d *driver) forget(name string) {
	d.mu.Lock()
	delete(d.images, name)
	d.mu.Unlock()
	d.filling.Lock()
	defer d.filling.Unlock()
	clear(d.filled)
}

// remedy adds to the usual errors what to do about them.
func (d *driver) remedy(err error, name string) error {
	switch {
	case client.IsErrConnectionFailed(err), errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w: start the daemon, see that this user may talk to it (group docker) and that DOCKER_HOST or sandbox.with.host is right, or choose --sandbox bubblewrap", err)
	case strings.Contains(err.Error(), "invalid reference format"):
		return fmt.Errorf("%q is not the name of an image: write it like registry.example.com/team/name:tag, in lower case", name)
	case cerrdefs.IsNotFound(err) && strings.Contains(strings.ToLower(err.Error()), "no such image"):
		return fmt.Errorf("the daemon has no image %[1]s: fetch it with `docker pull %[1]s` (or set sandbox.with.pull to if-missing), or build the base image with scripts/docker-image.sh", name)
	}
	return err
}
