package drivers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"
	"golang.org/x/sync/semaphore"

	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/guest"
	"github.com/tracesmith/tracesmith/schemas"
)

func init() {
	env.Drivers.Register(plugin.Spec[env.Driver, struct{}]{
		Kind:    "docker",
		Summary: "containers of a Docker daemon here or elsewhere, for tasks that name an image",
		Default: func() any { return defaultDocker() },
		New: func(cfg any, _ struct{}) (env.Driver, error) {
			c := *cfg.(*dockerConfig)
			if err := c.check(); err != nil {
				return nil, err
			}
			return &docker{
				config: c, images: map[string]*dockerImage{}, pythons: map[string]imagePython{},
				full: map[string]bool{}, seen: map[string]bool{}, pulls: semaphore.NewWeighted(int64(c.Pulls)),
			}, nil
		},
	})
}

// docker starts each sandbox as a container whose first process is the guest,
// spoken to through the attached standard streams. The guest reaches the daemon
// in a volume, so that it makes no difference where the daemon runs.
type docker struct {
	config dockerConfig
	pulls  *semaphore.Weighted // fetches for sandboxes under way

	mu      sync.Mutex
	client  *client.Client // made at first use, then shared
	users   int            // sandboxes and calls that use it now
	images  map[string]*dockerImage
	pythons map[string]imagePython // by image id

	filling sync.Mutex      // one volume is filled, one path looked for at a time
	full    map[string]bool // volumes known to be complete
	seen    map[string]bool // host paths: whether the daemon sees the same there
}

// Labels of our containers and volumes.
const (
	dockerMark   = "tracesmith"
	dockerOwner  = "tracesmith.owner"
	dockerLabel  = "tracesmith.label"
	dockerSource = "tracesmith.source" // of a copy: host and path
)

func (*docker) Name() string { return "docker" }

// connect hands out the client. What version the daemon speaks is asked once;
// connections stay open while anybody uses them, until release.
func (d *docker) connect() (*client.Client, error) {
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

func (d *docker) release() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.users--; d.users > 0 {
		return nil
	}
	return d.client.Close() // closes what is idle; the client stays good
}

// Start implements env.Driver.
func (d *docker) Start(ctx context.Context, spec env.SandboxSpec) (env.Sandbox, error) {
	spec.Image = cmp.Or(spec.Image, d.config.Image)
	spec.Workdir = path.Clean(cmp.Or(spec.Workdir, defaultWorkdir))
	spec.Limits = withDefaults(spec.Limits)
	cli, err := d.connect()
	if err != nil {
		return nil, fmt.Errorf("starting a docker sandbox: %w", err)
	}
	s, err := d.start(ctx, cli, spec)
	if err != nil && dockerStale(err) { // image or volume went since we saw them
		d.forget(spec.Image)
		s, err = d.start(ctx, cli, spec)
	}
	if err != nil {
		return nil, fmt.Errorf("starting a docker sandbox: %w", errors.Join(d.remedy(err, spec.Image), d.release()))
	}
	return s, nil
}

func (d *docker) start(ctx context.Context, cli *client.Client, spec env.SandboxSpec) (env.Sandbox, error) {
	if err := checkContainerPlace(spec.Workdir); err != nil {
		return nil, err
	}
	img, err := d.image(ctx, cli, spec.Image)
	if err != nil {
		return nil, err
	}
	guestVolume, err := d.guestVolume(ctx, cli, img.id)
	if err != nil {
		return nil, fmt.Errorf("handing the guest to the daemon: %w", err)
	}
	cfg, host, err := d.container(spec, img, guestVolume)
	if err != nil {
		return nil, err
	}
	mounts, err := d.mounts(ctx, cli, spec, img, host)
	if err != nil {
		return nil, errors.Join(err, mounts.drop(ctx, cli))
	}
	created, err := cli.ContainerCreate(ctx, cfg, host, nil, d.config.platform(), d.config.NamePrefix+randomName())
	if err != nil {
		return nil, errors.Join(err, mounts.drop(ctx, cli))
	}
	remove := func(ctx context.Context) error {
		err := cli.ContainerRemove(ctx, created.ID, container.RemoveOptions{Force: true, RemoveVolumes: true})
		if cerrdefs.IsNotFound(err) || cerrdefs.IsConflict(err) && strings.Contains(err.Error(), "already in progress") {
			err = nil
		}
		return err
	}
	s, err := d.boot(ctx, cli, created.ID, img, spec)
	if err != nil {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeBound)
		defer cancel()
		return nil, errors.Join(err, remove(late), mounts.drop(ctx, cli))
	}
	hangup := s.destroy
	s.destroy = func(ctx context.Context) error {
		return errors.Join(mounts.fetch(ctx, cli, created.ID), remove(ctx), mounts.drop(ctx, cli), hangup(ctx), d.release())
	}
	return s, nil
}

// boot starts a created container and greets its guest.
func (d *docker) boot(ctx context.Context, cli *client.Client, id string, img *dockerImage, spec env.SandboxSpec) (*sandbox, error) {
	stream, err := attach(ctx, cli, id)
	if err != nil {
		return nil, err
	}
	if err := cli.ContainerStart(ctx, id, container.StartOptions{}); err != nil {
		return nil, errors.Join(err, stream.Close(), stream.wait())
	}
	own, search := []string{}, systemPath
	for _, kv := range img.env {
		if p, ok := strings.CutPrefix(kv, "PATH="); ok {
			search = p
			continue
		}
		own = append(own, kv)
	}
	all := append(own, environment(home, nil, nil)...)
	all = append(append(all, "PATH="+binPath+":"+search), append(d.config.environ(), spec.Env...)...)
	c, err := guest.Connect(ctx, stream, guest.Config{
		Workdir: spec.Workdir, Env: all, Limits: spec.Limits,
		Outside: func() string { return killer(cli, id) },
	})
	if err != nil {
		_ = stream.wait()
		if said := stream.stderr.String(); said != "" && ctx.Err() == nil {
			err = errors.New(said)
		}
		return nil, err
	}
	s := &sandbox{Client: c, destroy: func(context.Context) error { return stream.wait() }}
	python, err := d.python(ctx, s, img.id)
	if err != nil {
		s.Hangup()
		return nil, errors.Join(err, stream.wait())
	}
	s.key = dockerKey(spec, img, python.version)
	return s, nil
}

// killer finds out what ended a container whose stream broke: "" when it may
// have been its own programs. They cannot kill the guest, the first process;
// what can is the daemon, whoever commands it, and the memory cgroup.
func killer(cli *client.Client, id string) string {
	ctx, cancel := context.WithTimeout(context.Background(), outsideBound)
	defer cancel()
	for {
		c, err := cli.ContainerInspect(ctx, id)
		switch {
		case cerrdefs.IsNotFound(err):
			return "somebody removed its container"
		case ctx.Err() != nil:
			return "the Docker daemon does not answer"
		case err != nil:
			return "the Docker daemon went away"
		case c.State.OOMKilled:
			return ""
		case c.State.Dead, c.State.Status == container.StateRemoving:
			return "somebody removed its container"
		case !c.State.Running && c.State.ExitCode == 128+9:
			return "somebody killed its container"
		case !c.State.Running:
			return ""
		}
		select {
		case <-ctx.Done():
			return ""
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func dockerKey(spec env.SandboxSpec, img *dockerImage, python string) schemas.EnvKey {
	k := schemas.EnvKey{
		Driver: "docker", Python: python, Image: spec.Image, ImageDigest: img.digest,
		Limits: map[string]string{
			"network":    "no network",
			"memory":     "guest watchdog, cgroup",
			"disk":       "sized tmpfs, read-only image",
			"inodes":     "tmpfs nr_inodes",
			"processes":  "guest watchdog, pids cgroup",
			"cpus":       "cpu cgroup",
			"cpu_time":   "RLIMIT_CPU",
			"open_files": "RLIMIT_NOFILE",
		},
	}
	lift(&k, spec.Limits)
	return k
}

// dockerStale tells that the daemon lacks what it had when we last looked.
func dockerStale(err error) bool {
	return cerrdefs.IsNotFound(err) || strings.Contains(err.Error(), dockerGuest) && strings.Contains(err.Error(), "no such file")
}

// forget drops what is known about an image and the volumes.
func (d *docker) forget(image string) {
	d.mu.Lock()
	delete(d.images, image)
	d.mu.Unlock()
	d.filling.Lock()
	defer d.filling.Unlock()
	clear(d.full)
}

// remedy says what to do about the usual refusals.
func (d *docker) remedy(err error, image string) error {
	switch {
	case client.IsErrConnectionFailed(err), errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w: start the daemon, see that this user may talk to it (group docker) and that DOCKER_HOST or sandbox.with.host is right, or choose --sandbox bubblewrap", err)
	case strings.Contains(err.Error(), "invalid reference format"):
		return fmt.Errorf("%q is not the name of an image: write it like registry.example.com/team/name:tag, in lower case", image)
	case cerrdefs.IsNotFound(err) && strings.Contains(strings.ToLower(err.Error()), "no such image"):
		return fmt.Errorf("the daemon has no image %[1]s: fetch it with `docker pull %[1]s` (or set sandbox.with.pull to if-missing), or build the base image with scripts/docker-image.sh", image)
	}
	return err
}
