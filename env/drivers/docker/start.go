package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/drivers"
	"github.com/tracesmith/tracesmith/env/guest"
	"github.com/tracesmith/tracesmith/schemas"
)

// Start implements env.Driver.
func (d *driver) Start(ctx context.Context, spec env.SandboxSpec) (env.Sandbox, error) {
	spec.Image = cmp.Or(spec.Image, d.config.Image)
	spec.Workdir = path.Clean(cmp.Or(spec.Workdir, drivers.DefaultWorkdir))
	spec.Limits = drivers.WithDefaults(spec.Limits)
	cli, err := d.connect()
	if err != nil {
		return nil, fmt.Errorf("starting a docker sandbox: %w", err)
	}
	s, err := d.start(ctx, cli, spec)
	if err != nil && isStale(err) {
		d.forget(spec.Image)
		s, err = d.start(ctx, cli, spec)
	}
	if err != nil {
		return nil, fmt.Errorf("starting a docker sandbox: %w", errors.Join(d.withRemedy(err, spec.Image), d.release()))
	}
	return s, nil
}

// isStale reports whether err means that the daemon no longer has an image or a volume that it had before.
func isStale(err error) bool {
	return cerrdefs.IsNotFound(err) || strings.Contains(err.Error(), guestPath) && strings.Contains(err.Error(), "no such file")
}

func (d *driver) start(ctx context.Context, cli *client.Client, spec env.SandboxSpec) (env.Sandbox, error) {
	if err := drivers.CheckContainerPath("workdir", spec.Workdir); err != nil {
		return nil, err
	}
	img, err := d.image(ctx, cli, spec.Image)
	if err != nil {
		return nil, err
	}
	guestVolume, err := d.guestVolume(ctx, cli, img.id)
	if err != nil {
		return nil, fmt.Errorf("copying the guest to the daemon: %w", err)
	}
	cfg, host, err := d.containerConfig(spec, img, guestVolume)
	if err != nil {
		return nil, err
	}
	mounts, err := d.addMounts(ctx, cli, spec, img, host)
	if err != nil {
		return nil, errors.Join(err, mounts.removeVolumes(ctx, cli))
	}
	created, err := cli.ContainerCreate(ctx, cfg, host, nil, d.config.platform(), d.config.NamePrefix+drivers.RandomName())
	if err != nil {
		return nil, errors.Join(err, mounts.removeVolumes(ctx, cli))
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
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), drivers.RemoveTimeout)
		defer cancel()
		return nil, errors.Join(err, remove(late), mounts.removeVolumes(ctx, cli))
	}
	hangup := s.Destroy
	s.Destroy = func(ctx context.Context) error {
		return errors.Join(mounts.copyBack(ctx, cli, created.ID), remove(ctx), mounts.removeVolumes(ctx, cli), hangup(ctx), d.release())
	}
	return s, nil
}

// boot starts a created container and connects to its guest.
func (d *driver) boot(ctx context.Context, cli *client.Client, id string, img *image, spec env.SandboxSpec) (*drivers.Sandbox, error) {
	stream, err := attach(ctx, cli, id)
	if err != nil {
		return nil, err
	}
	if err := cli.ContainerStart(ctx, id, container.StartOptions{}); err != nil {
		err = errors.Join(err, stream.Close())
		stream.wait()
		return nil, err
	}
	c, err := guest.Connect(ctx, stream, guest.Config{
		Workdir: spec.Workdir, Env: d.environ(img, spec), Limits: spec.Limits,
		OutsideCause: func() string { return outsideCause(cli, id) },
	})
	if err != nil {
		stream.wait()
		if text := stream.stderr.String(); text != "" && ctx.Err() == nil {
			err = errors.New(text)
		}
		return nil, err
	}
	python, err := d.pythons.Prepare(ctx, c, img.id)
	if err != nil {
		c.Hangup()
		stream.wait()
		return nil, err
	}
	return &drivers.Sandbox{
		Client: c, EnvKey: envKey(spec, img, python),
		Destroy: func(context.Context) error { stream.wait(); return nil },
	}, nil
}

// environ returns the environment of programs. In order of precedence, the variables come from the task, the settings,
// the sandbox and the image.
func (d *driver) environ(img *image, spec env.SandboxSpec) []string {
	var all []string
	search := drivers.SystemPath
	for _, kv := range img.env {
		if p, ok := strings.CutPrefix(kv, "PATH="); ok {
			search = p
			continue
		}
		all = append(all, kv)
	}
	all = append(all, drivers.Environ(drivers.Home, nil, nil)...)
	all = append(all, "PATH="+drivers.BinPath+":"+search)
	return append(append(all, d.config.environ()...), spec.Env...)
}

// outsideCause returns a message that says what ended a container whose stream broke, or "" if its own programs may be
// the cause. Programs cannot kill the guest, which is the first process, but can make the memory cgroup kill it. The
// daemon and its other clients can kill it as well.
func outsideCause(cli *client.Client, id string) string {
	ctx, cancel := context.WithTimeout(context.Background(), drivers.CauseTimeout)
	defer cancel()
	for {
		c, err := cli.ContainerInspect(ctx, id)
		switch {
		case cerrdefs.IsNotFound(err):
			return "its container was removed"
		case ctx.Err() != nil:
			return "the Docker daemon does not answer"
		case err != nil:
			return "the Docker daemon can no longer be reached"
		case c.State.OOMKilled:
			return ""
		case c.State.Dead, c.State.Status == container.StateRemoving:
			return "its container was removed"
		case !c.State.Running && c.State.ExitCode == 128+9:
			return "its container was killed from outside"
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

func envKey(spec env.SandboxSpec, img *image, python string) schemas.EnvKey {
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
	drivers.RecordLifted(&k, spec.Limits)
	return k
}
