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

// driver starts each sandbox as a container whose first process is the guest, and connects to the guest through the
// container's standard streams. The driver copies the guest to a volume of the daemon, so the daemon can be on another
// machine.
type driver struct {
	config  config
	pulls   *semaphore.Weighted // limits the concurrent pulls for sandboxes
	pythons drivers.ImagePythons

	mu     sync.Mutex
	client *client.Client    // created at first use and then shared
	users  int               // number of sandboxes and calls that use client
	images map[string]*image // by name

	filling sync.Mutex      // held while filled or shared is used
	filled  map[string]bool // names of volumes that are known to be complete
	shared  map[string]bool // by host path: whether the daemon sees the same files there
}

func (*driver) Name() string { return "docker" }

// connect returns the shared client. Its connections stay open until the last user has called release.
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
	return d.client.Close() // closes only idle connections, so the client can be used again
}

// knownImage returns the description of an image that was looked up earlier, or nil.
func (d *driver) knownImage(name string) *image {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.images[name]
}

// forget drops the cached description of an image and the list of complete volumes.
func (d *driver) forget(name string) {
	d.mu.Lock()
	delete(d.images, name)
	d.mu.Unlock()
	d.filling.Lock()
	defer d.filling.Unlock()
	clear(d.filled)
}

// withRemedy adds the remedy to a common error. name is the name of the image.
func (d *driver) withRemedy(err error, name string) error {
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
