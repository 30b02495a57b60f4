package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

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
	api, err := d.connect()
	if err != nil {
		return nil, fmt.Errorf("starting a kubernetes sandbox: %w", err)
	}
	bounded, cancel := context.WithTimeout(ctx, time.Duration(d.config.StartTimeout))
	defer cancel()
	s, err := d.start(bounded, api, spec)
	if err != nil && ctx.Err() == nil {
		err = d.withRemedy(err, api)
	}
	if err != nil {
		api.release()
		return nil, fmt.Errorf("starting a kubernetes sandbox: %w", err)
	}
	return s, nil
}

func (d *driver) start(ctx context.Context, api *client, spec env.SandboxSpec) (*drivers.Sandbox, error) {
	if err := drivers.CheckContainerPath("workdir", spec.Workdir); err != nil {
		return nil, err
	}
	if len(spec.Mounts) > 0 {
		return nil, errors.New("a pod cannot mount directories of this host: put what a task needs into its image, or choose another --sandbox")
	}
	binary, err := guest.Binary()
	if err != nil {
		return nil, err
	}
	fi, err := os.Stat(binary)
	if err != nil {
		return nil, err
	}
	wanted, err := d.config.pod(spec, fi.Size())
	if err != nil {
		return nil, err
	}
	policy := d.ensurePolicy(ctx, api, spec)
	pod, err := api.create(ctx, wanted)
	if err != nil {
		return nil, err
	}
	remove := func(ctx context.Context) error { return api.remove(ctx, pod.Name, pod.UID) }
	s, err := d.boot(ctx, api, pod, binary, spec, policy)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			if warning := api.warning(ctx, pod.Name); warning != "" {
				err = fmt.Errorf("pod %s: %s: %w", pod.Name, warning, err)
			}
		}
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), drivers.RemoveTimeout)
		defer cancel()
		return nil, errors.Join(err, remove(late))
	}
	hangup := s.Destroy
	s.Destroy = func(ctx context.Context) error {
		defer api.release()
		return errors.Join(hangup(ctx), remove(ctx))
	}
	return s, nil
}

// boot waits for a created pod, copies the guest to it and connects to the guest.
func (d *driver) boot(ctx context.Context, api *client, pod *corev1.Pod, binary string, spec env.SandboxSpec, policy bool) (*drivers.Sandbox, error) {
	pod, err := d.follow(ctx, api, pod, running(initName))
	if err != nil {
		return nil, err
	}
	if err := api.deliver(ctx, pod.Name, binary); err != nil {
		return nil, fmt.Errorf("copying the guest to pod %s: %w", pod.Name, err)
	}
	bothRunning := func(p *corev1.Pod) bool { return running(relayName)(p) && running(sandboxName)(p) }
	if pod, err = d.follow(ctx, api, pod, bothRunning); err != nil {
		return nil, err
	}
	isolated := policy && d.isolates(ctx, api, pod.Name)
	c, stream, err := d.connectGuest(ctx, api, pod.Name, spec)
	if err != nil {
		return nil, err
	}
	id := imageDigest(pod)
	python, err := d.pythons.Prepare(ctx, c, id)
	if err != nil {
		c.Hangup()
		stream.wait()
		return nil, err
	}
	return &drivers.Sandbox{
		Client: c, EnvKey: envKey(spec, id, python, d.config.User == 0, isolated),
		Destroy: func(context.Context) error { stream.wait(); return nil },
	}, nil
}

// connectGuest opens the stream to the guest of a pod and configures the guest.
func (d *driver) connectGuest(ctx context.Context, api *client, pod string, spec env.SandboxSpec) (*guest.Client, *podStream, error) {
	programs := slices.DeleteFunc(drivers.Environ(drivers.Home, nil, nil), func(kv string) bool { return strings.HasPrefix(kv, "PATH=") })
	var connected *guest.Client
	var stream *podStream
	err := api.retry(ctx, func(context.Context) error {
		stream = api.openStream(pod)
		c, err := guest.Connect(ctx, stream, guest.Config{
			Workdir: spec.Workdir, Env: append(programs, spec.Env...), Limits: spec.Limits, LimitProcesses: d.config.User == 0,
			OutsideCause: func() string { return api.outsideCause(pod, stream) },
		})
		if connected = c; err == nil {
			return nil
		}
		stream.wait()
		if stream.err != nil && !errors.Is(stream.err, context.Canceled) {
			err = stream.err
		}
		if text := stream.stderr.String(); text != "" && ctx.Err() == nil {
			err = fmt.Errorf("%w: %s", err, printable(text))
		}
		return fmt.Errorf("connecting to the guest in pod %s: %w", pod, err)
	})
	return connected, stream, err
}

// envKey describes a sandbox. ownUser means that no other pod has the same user, and isolated that the sandbox cannot
// reach the network.
func envKey(spec env.SandboxSpec, digest, python string, ownUser, isolated bool) schemas.EnvKey {
	k := schemas.EnvKey{
		Driver: "kubernetes", Python: python, Image: spec.Image, ImageDigest: digest,
		Limits: map[string]string{
			"memory":     "guest watchdog, cgroup",
			"disk":       "sized tmpfs, read-only image",
			"processes":  "guest watchdog",
			"cpus":       "cpu cgroup",
			"cpu_time":   "RLIMIT_CPU",
			"open_files": "RLIMIT_NOFILE",
		},
		Unenforced: []string{"inodes"}, // a volume in memory has no option to limit them
	}
	if ownUser {
		k.Limits["processes"] += ", RLIMIT_NPROC"
	}
	if isolated {
		k.Limits["network"] = "network policy; the API server cannot be reached"
	} else {
		k.Unenforced = append(k.Unenforced, "network")
	}
	drivers.RecordLifted(&k, spec.Limits)
	return k
}
