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

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"

	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/guest"
	"github.com/tracesmith/tracesmith/schemas"
)

func init() {
	env.Drivers.Register(plugin.Spec[env.Driver, struct{}]{
		Kind:    "docker",
		Summary: "containers of the local Docker daemon, for tasks that name an image",
		Default: func() any { return &dockerConfig{Image: "tracesmith-base:latest"} },
		New: func(cfg any, _ struct{}) (env.Driver, error) {
			return &docker{config: *cfg.(*dockerConfig), images: map[string]dockerImage{}}, nil
		},
	})
}

type dockerConfig struct {
	// Image is used for tasks that name none.
	Image string `json:"image"`
}

// docker starts each sandbox as a container whose first process is the guest,
// bind-mounted from the host, spoken to through the attached standard streams.
type docker struct {
	config dockerConfig

	mu     sync.Mutex
	images map[string]dockerImage // by image id
}

// dockerImage is what was found out inside an image.
type dockerImage struct {
	python  string // version, "" without one
	program string // path of the interpreter
	missing []string
}

// Labels of our containers.
const (
	dockerMark  = "tracesmith"
	dockerOwner = "tracesmith.owner"
	dockerLabel = "tracesmith.label"
)

func (*docker) Name() string { return "docker" }

// Start implements env.Driver.
func (d *docker) Start(ctx context.Context, spec env.SandboxSpec) (env.Sandbox, error) {
	spec.Image = cmp.Or(spec.Image, d.config.Image)
	spec.Workdir = path.Clean(cmp.Or(spec.Workdir, defaultWorkdir))
	spec.Limits = withDefaults(spec.Limits)
	cli, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		return nil, fmt.Errorf("starting a docker sandbox: %w: check DOCKER_HOST and its companions", err)
	}
	s, err := d.start(ctx, cli, spec)
	if err != nil {
		return nil, fmt.Errorf("starting a docker sandbox: %w", errors.Join(dockerRemedy(err, spec.Image), cli.Close()))
	}
	return s, nil
}

func (d *docker) start(ctx context.Context, cli *client.Client, spec env.SandboxSpec) (env.Sandbox, error) {
	if err := checkContainerPlace(spec.Workdir); err != nil {
		return nil, err
	}
	img, err := cli.ImageInspect(ctx, spec.Image)
	if err != nil {
		return nil, err
	}
	binary, err := guest.Binary()
	if err != nil {
		return nil, err
	}
	cfg, host, err := containerConfig(spec, binary)
	if err != nil {
		return nil, err
	}
	created, err := cli.ContainerCreate(ctx, cfg, host, nil, nil, "")
	if err != nil {
		return nil, err
	}
	remove := func(ctx context.Context) error {
		err := cli.ContainerRemove(ctx, created.ID, container.RemoveOptions{Force: true, RemoveVolumes: true})
		if cerrdefs.IsNotFound(err) {
			err = nil
		}
		return err
	}
	s, err := d.boot(ctx, cli, created.ID, img, spec)
	if err != nil {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeBound)
		defer cancel()
		return nil, errors.Join(err, remove(late))
	}
	hangup := s.destroy
	s.destroy = func(ctx context.Context) error {
		return errors.Join(remove(ctx), hangup(ctx), cli.Close())
	}
	return s, nil
}

// boot starts a created container and greets its guest.
func (d *docker) boot(ctx context.Context, cli *client.Client, id string, img image.InspectResponse, spec env.SandboxSpec) (*sandbox, error) {
	stream, err := attach(ctx, cli, id)
	if err != nil {
		return nil, err
	}
	if err := cli.ContainerStart(ctx, id, container.StartOptions{}); err != nil {
		return nil, errors.Join(err, stream.Close(), stream.wait())
	}
	var own []string
	search := systemPath
	if img.Config != nil {
		for _, kv := range img.Config.Env {
			if p, ok := strings.CutPrefix(kv, "PATH="); ok {
				search = p
				continue
			}
			own = append(own, kv)
		}
	}
	all := append(own, environment(home, nil, nil)...)
	all = append(append(all, "PATH="+binPath+":"+search), spec.Env...)
	c, err := guest.Connect(ctx, stream, guest.Config{Workdir: spec.Workdir, Env: all, Limits: spec.Limits})
	if err != nil {
		_ = stream.wait()
		if said := stream.stderr.String(); said != "" && ctx.Err() == nil {
			err = errors.New(said)
		}
		return nil, err
	}
	s := &sandbox{Client: c, destroy: func(context.Context) error { return stream.wait() }}
	python, err := d.python(ctx, s, img.ID)
	if err != nil {
		s.Hangup()
		return nil, errors.Join(err, stream.wait())
	}
	s.key = dockerKey(spec.Image, img, python.python)
	return s, nil
}

// python makes python and python3 both resolve, and reports the version.
func (d *docker) python(ctx context.Context, s env.Sandbox, id string) (dockerImage, error) {
	d.mu.Lock()
	found, known := d.images[id]
	d.mu.Unlock()
	if !known {
		r, err := s.Run(ctx, env.Command{Args: []string{"sh", "-c", `
p=$(command -v python3 || command -v python) || exit 0
"$p" -c 'import platform; print(platform.python_version())' && echo "$p"
for n in python python3; do command -v $n >/dev/null || echo $n; done`}})
		if err != nil {
			return found, err
		}
		if f := strings.Fields(string(r.Output)); len(f) >= 2 {
			found = dockerImage{f[0], f[1], f[2:]}
		}
		d.mu.Lock()
		d.images[id] = found
		d.mu.Unlock()
	}
	for _, name := range found.missing {
		if _, err := s.Run(ctx, env.Command{Args: []string{"ln", "-sf", found.program, binPath + "/" + name}}); err != nil {
			return found, err
		}
	}
	return found, nil
}

// Reap implements env.Driver. Without a daemon there is nothing to reap.
func (d *docker) Reap(ctx context.Context) (int, error) {
	cli, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		return 0, fmt.Errorf("removing old containers: %w", err)
	}
	defer cli.Close()
	list, err := cli.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", dockerMark))})
	if client.IsErrConnectionFailed(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("removing old containers: %w", err)
	}
	n := 0
	for _, c := range list {
		if o, ok := parseOwner(c.Labels[dockerOwner]); !ok || !o.dead() {
			continue
		}
		rmErr := cli.ContainerRemove(ctx, c.ID, container.RemoveOptions{Force: true, RemoveVolumes: true})
		if rmErr == nil {
			n++
		} else if !cerrdefs.IsNotFound(rmErr) && !cerrdefs.IsConflict(rmErr) { // another process is at it
			err = errors.Join(err, fmt.Errorf("removing container %.12s: %w", c.ID, rmErr))
		}
	}
	return n, err
}

func dockerKey(name string, img image.InspectResponse, python string) schemas.EnvKey {
	k := schemas.EnvKey{
		Driver: "docker", Python: python, Image: name, ImageDigest: img.ID,
		Limits: map[string]string{
			"network":    "no network",
			"memory":     "guest watchdog, cgroup",
			"disk":       "sized tmpfs, read-only image",
			"processes":  "guest watchdog, pids cgroup",
			"cpus":       "cpu cgroup",
			"cpu_time":   "RLIMIT_CPU",
			"open_files": "RLIMIT_NOFILE",
		},
	}
	if len(img.RepoDigests) > 0 {
		k.ImageDigest = img.RepoDigests[0]
	}
	return k
}

// dockerRemedy says what to do about the usual refusals.
func dockerRemedy(err error, image string) error {
	switch {
	case client.IsErrConnectionFailed(err), errors.Is(err, os.ErrPermission):
		return fmt.Errorf("%w: start the daemon, see that this user may talk to it (group docker) and DOCKER_HOST is right, or choose --sandbox bubblewrap", err)
	case cerrdefs.IsNotFound(err):
		return fmt.Errorf("%w: fetch it with `docker pull %s`, or build the base image with scripts/docker-image.sh", err, image)
	case strings.Contains(err.Error(), "bind source path does not exist"):
		return fmt.Errorf("%w: the daemon must run on this host, because the guest is mounted from here", err)
	}
	return err
}
