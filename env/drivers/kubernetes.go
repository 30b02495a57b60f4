package drivers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/exec"

	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/guest"
	"github.com/tracesmith/tracesmith/schemas"
)

func init() {
	env.Drivers.Register(plugin.Spec[env.Driver, struct{}]{
		Kind:    "kubernetes",
		Summary: "pods of a Kubernetes cluster, for tasks that name an image",
		Default: func() any { return defaultKubernetes() },
		New: func(cfg any, _ struct{}) (env.Driver, error) {
			c := *cfg.(*kubernetesConfig)
			if err := c.check(); err != nil {
				return nil, err
			}
			return &kubernetes{config: c, pythons: map[string]imagePython{}}, nil
		},
	})
}

// kubernetes starts each sandbox as a pod. The guest is the first process of its
// main container and is spoken to over one exec stream, which is also what tells
// the pod that its owner lives: without it the guest ends, and the pod with it.
type kubernetes struct {
	config kubernetesConfig

	mu      sync.Mutex
	api     *kubeAPI
	denied  error // what came of making the network policy; nil before and after success
	policed bool
	offline bool // a pod was seen to be held back from the network
	pythons map[string]imagePython
}

func (*kubernetes) Name() string { return "kubernetes" }

// connect finds the API server at first use, for whoever releases it afterwards;
// nothing is sent yet.
func (d *kubernetes) connect() (*kubeAPI, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.api == nil {
		cfg, namespace, err := d.config.dial()
		if err != nil {
			return nil, err
		}
		if d.api, err = newKubeAPI(cfg, namespace); err != nil {
			return nil, err
		}
	}
	d.api.users.Add(1)
	return d.api, nil
}

// Start implements env.Driver.
func (d *kubernetes) Start(ctx context.Context, spec env.SandboxSpec) (env.Sandbox, error) {
	spec.Image = cmp.Or(spec.Image, d.config.Image)
	spec.Workdir = path.Clean(cmp.Or(spec.Workdir, defaultWorkdir))
	spec.Limits = withDefaults(spec.Limits)
	api, err := d.connect()
	if err != nil {
		return nil, fmt.Errorf("starting a kubernetes sandbox: %w", err)
	}
	bounded, cancel := context.WithTimeout(ctx, time.Duration(d.config.StartTimeout))
	defer cancel()
	s, err := d.start(bounded, api, spec)
	if err != nil && ctx.Err() == nil {
		err = d.remedy(err, api)
	}
	if err != nil {
		api.release()
		return nil, fmt.Errorf("starting a kubernetes sandbox: %w", err)
	}
	return s, nil
}

func (d *kubernetes) start(ctx context.Context, api *kubeAPI, spec env.SandboxSpec) (*sandbox, error) {
	if err := checkContainerPlace(spec.Workdir); err != nil {
		return nil, err
	}
	if len(spec.Mounts) > 0 {
		return nil, errors.New("mounts of this host cannot be shown to a pod: put what a task needs into its image, or choose another --sandbox")
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
	policy := d.police(ctx, api, spec)
	pod, err := api.create(ctx, wanted)
	if err != nil {
		return nil, err
	}
	remove := func(ctx context.Context) error { return api.remove(ctx, pod.Name, pod.UID) }
	s, err := d.boot(ctx, api, pod, binary, spec, policy)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			if trouble := api.warning(ctx, pod.Name); trouble != "" {
				err = fmt.Errorf("pod %s: %s: %w", pod.Name, trouble, err)
			}
		}
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeBound)
		defer cancel()
		return nil, errors.Join(err, remove(late))
	}
	hangup := s.destroy
	s.destroy = func(ctx context.Context) error {
		defer api.release()
		return errors.Join(hangup(ctx), remove(ctx))
	}
	return s, nil
}

// boot brings a created pod to an answering guest.
func (d *kubernetes) boot(ctx context.Context, api *kubeAPI, pod *corev1.Pod, binary string, spec env.SandboxSpec, policy bool) (*sandbox, error) {
	pod, err := d.follow(ctx, api, pod, running(kubeInit))
	if err != nil {
		return nil, err
	}
	if err := api.deliver(ctx, pod.Name, binary); err != nil {
		return nil, fmt.Errorf("handing the guest to pod %s: %w", pod.Name, err)
	}
	both := func(p *corev1.Pod) bool { return running(kubeRelay)(p) && running(kubeSandbox)(p) }
	if pod, err = d.follow(ctx, api, pod, both); err != nil {
		return nil, err
	}
	held := policy && d.held(ctx, api, pod.Name)
	c, stream, err := d.greet(ctx, api, pod.Name, spec)
	if err != nil {
		return nil, err
	}
	s := &sandbox{Client: c, destroy: func(context.Context) error { stream.wait(); return nil }}
	id := imageOf(pod)
	d.mu.Lock()
	python, known := d.pythons[id]
	d.mu.Unlock()
	if !known || id == "" {
		if python, err = findPython(ctx, s); err == nil {
			d.mu.Lock()
			d.pythons[id] = python
			d.mu.Unlock()
		}
	}
	if err == nil {
		err = python.link(ctx, s)
	}
	if err != nil {
		s.Hangup()
		stream.wait()
		return nil, err
	}
	s.key = kubeKey(spec, id, python.version, d.config.User == 0, held)
	return s, nil
}

// greet opens the one stream and says hello.
func (d *kubernetes) greet(ctx context.Context, api *kubeAPI, pod string, spec env.SandboxSpec) (*guest.Client, *podStream, error) {
	programs := slices.DeleteFunc(environment(home, nil, nil), func(kv string) bool { return strings.HasPrefix(kv, "PATH=") })
	var client *guest.Client
	var stream *podStream
	err := api.retry(ctx, func(context.Context) error {
		stream = api.openStream(pod)
		c, err := guest.Connect(ctx, stream, guest.Config{
			Workdir: spec.Workdir, Env: append(programs, spec.Env...), Limits: spec.Limits, LimitProcesses: d.config.User == 0,
			Outside: func() string { return api.outside(pod, stream) },
		})
		if client = c; err == nil {
			return nil
		}
		stream.wait()
		if stream.ended != nil && !errors.Is(stream.ended, context.Canceled) {
			err = stream.ended
		}
		if said := stream.stderr.String(); said != "" && ctx.Err() == nil {
			err = fmt.Errorf("%w: %s", err, printable(said))
		}
		return fmt.Errorf("speaking to the guest in pod %s: %w", pod, err)
	})
	return client, stream, err
}

// police makes sure that the namespace denies sandboxes the network, and tells
// whether it does so on paper.
func (d *kubernetes) police(ctx context.Context, api *kubeAPI, spec env.SandboxSpec) bool {
	if spec.Network || !d.config.NetworkPolicy {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.policed {
		err := api.deny(ctx)
		// A refusal is final; anything else is tried again by the next sandbox.
		d.policed = err == nil || apierrors.IsForbidden(err) || apierrors.IsNotFound(err)
		d.denied = err
	}
	return d.denied == nil
}

// held sees for itself whether a pod is held back from the network: policies are
// enforced by a plugin, and not every cluster has one that does.
func (d *kubernetes) held(ctx context.Context, api *kubeAPI, pod string) bool {
	d.mu.Lock()
	offline := d.offline
	d.mu.Unlock()
	if offline {
		return true
	}
	err := api.exec(ctx, pod, kubeRelay, []string{kubeGuest, guest.ServeArg, "-reach"}, nil, &tail{}, &tail{})
	_, offline = errors.AsType[exec.CodeExitError](err)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.offline = d.offline || offline
	return offline
}

// imageOf is the digest of the image the sandbox runs, as the node has it.
func imageOf(p *corev1.Pod) string {
	for _, c := range p.Status.ContainerStatuses {
		if c.Name == kubeSandbox {
			return c.ImageID
		}
	}
	return ""
}

func kubeKey(spec env.SandboxSpec, digest, python string, alone, held bool) schemas.EnvKey {
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
		Unenforced: []string{"inodes"}, // a volume in memory takes no such option
	}
	if alone {
		k.Limits["processes"] += ", RLIMIT_NPROC"
	}
	if held {
		k.Limits["network"] = "network policy; the API server cannot be reached"
	} else {
		k.Unenforced = append(k.Unenforced, "network")
	}
	lift(&k, spec.Limits)
	return k
}

// Reap implements env.Driver.
func (d *kubernetes) Reap(ctx context.Context) (int, error) { return env.RemoveLeftovers(ctx, d) }

// finishedGrace is how long a pod that has ended stays for its owner to look at.
const finishedGrace = 10 * time.Minute

// Leftovers implements env.Keeper: pods of dead processes of this machine, and
// of other machines those that have ended. A pod ends when its owner's stream
// does, so that one that runs has an owner, or its deadline will end it.
func (d *kubernetes) Leftovers(ctx context.Context) ([]env.Leftover, error) {
	api, err := d.connect()
	switch {
	case err != nil && d.config.Kubeconfig == "" && os.Getenv("KUBECONFIG") == "":
		return nil, nil // nobody has named a cluster
	case err != nil:
		return nil, fmt.Errorf("%w: %w", env.ErrAbsent, err)
	}
	defer api.release()
	pods, err := api.list(ctx, kubeManager+"="+kubeManagerIs)
	if err != nil {
		if !api.reached.Load() {
			return nil, fmt.Errorf("%w: %w", env.ErrAbsent, err)
		}
		return nil, fmt.Errorf("looking for old pods: %w", d.remedy(err, api))
	}
	var out []env.Leftover
	for _, p := range pods {
		o, ok := parseOwner(p.Annotations[kubeOwner])
		if !ok || p.DeletionTimestamp != nil || !o.dead() && !ended(&p, time.Now()) {
			continue
		}
		out = append(out, env.Leftover{
			Kind: "pod", Name: p.Namespace + "/" + p.Name, What: p.Annotations[kubeLabel], Since: p.CreationTimestamp.Time,
			Remove: func(ctx context.Context) error {
				api, err := d.connect()
				if err != nil {
					return err
				}
				defer api.release()
				return api.remove(ctx, p.Name, p.UID)
			},
		})
	}
	return out, nil
}

// ended tells that a pod has ended long enough ago for nobody to ask about it.
func ended(p *corev1.Pod, now time.Time) bool {
	if p.Status.Phase != corev1.PodFailed && p.Status.Phase != corev1.PodSucceeded {
		return false
	}
	last := p.CreationTimestamp.Time
	for _, c := range p.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil && t.FinishedAt.After(last) {
			last = t.FinishedAt.Time
		}
	}
	return now.Sub(last) > finishedGrace
}
