// Package bubblewrap starts sandboxes with bwrap: namespaces of the Linux kernel, without a daemon or an image.
package bubblewrap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/drivers"
	"github.com/tracesmith/tracesmith/env/guest"
	"github.com/tracesmith/tracesmith/schemas"
)

func init() {
	env.Drivers.Register(plugin.Spec[env.Driver, struct{}]{
		Kind:    "bubblewrap",
		Summary: "namespaces of the Linux kernel through bwrap: no daemon, no image, starts in milliseconds",
		New:     func(any, struct{}) (env.Driver, error) { return &driver{}, nil },
	})
}

// driver starts each sandbox as a bwrap child: the host's /usr read-only, sized tmpfs for everything writable, all
// namespaces unshared, the guest as the first process under an unprivileged user.
type driver struct {
	pythons drivers.Interpreters
}

func (*driver) Name() string { return "bubblewrap" }

// Start implements env.Driver.
func (d *driver) Start(ctx context.Context, spec env.SandboxSpec) (env.Sandbox, error) {
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		return nil, errors.New("starting a bubblewrap sandbox: bwrap is not installed: install it (Debian, Ubuntu: apt install bubblewrap) or choose another --sandbox")
	}
	spec.Workdir = path.Clean(cmp.Or(spec.Workdir, drivers.DefaultWorkdir))
	spec.Limits = drivers.WithDefaults(spec.Limits)
	python, err := d.pythons.Find(ctx, spec.Python)
	if err != nil {
		return nil, fmt.Errorf("starting a bubblewrap sandbox: %w", err)
	}
	var userns error
	for _, start := range startWays() {
		s, err := d.start(ctx, bwrap, spec, python, start)
		if err == nil {
			return s, nil
		}
		if start.needsUserns && errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) {
			userns = err
			continue
		}
		if userns != nil { // the missing user namespaces matter more than what fails without them
			err = fmt.Errorf("making a user namespace: %w (and without one: %v)", userns, err) //nolint:errorlint // one cause
		}
		return nil, fmt.Errorf("starting a bubblewrap sandbox: %w%s", err, remedy(err))
	}
	return nil, fmt.Errorf("starting a bubblewrap sandbox: %w%s", userns, remedy(userns))
}

func (d *driver) start(ctx context.Context, bwrap string, spec env.SandboxSpec, python drivers.Interpreter, way startWay) (env.Sandbox, error) {
	binary, err := guest.Binary()
	if err != nil {
		return nil, err
	}
	a := &arguments{}
	defer a.close()
	if err := a.build(spec, python, binary, way); err != nil {
		return nil, err
	}
	serve := []string{"-pinned"}
	if way.root {
		serve = append(serve, "-drop", strconv.Itoa(way.user), "-own", spec.Workdir+":"+drivers.Home+":/tmp")
	}
	a.add("--", guestPath)
	a.add(drivers.GuestArgs(spec.Label, serve...)...)
	cmd := exec.Command(binary, slices.Concat([]string{guest.StageArg}, a.stage, []string{"--", bwrap}, a.args)...)
	cmd.Env, cmd.Dir, cmd.ExtraFiles = []string{"GOMAXPROCS=2"}, "/", a.files
	cmd.SysProcAttr = way.attributes()
	child, err := drivers.StartChild(cmd, func(cmd *exec.Cmd) error { return startPinned(cmd, spec.Limits.CPUs) })
	if err != nil {
		return nil, err
	}
	perSandbox := countsPerNamespace() && way.user == drivers.User
	client, err := child.Connect(ctx, guest.Config{
		Workdir: spec.Workdir, Env: drivers.Environ(drivers.Home, searchPath(python), spec.Env), Limits: spec.Limits, LimitProcesses: perSandbox,
		OutsideCause: child.KilledFromOutside,
	})
	if err != nil {
		return nil, err
	}
	return &drivers.Sandbox{
		Client: client,
		EnvKey: key(spec.Limits, python.Version, way, perSandbox),
		Destroy: func(context.Context) error {
			child.Stop()
			return nil
		},
	}, nil
}

// Reap implements env.Driver.
func (d *driver) Reap(ctx context.Context) (int, error) { return env.RemoveLeftovers(ctx, d) }

// Leftovers implements env.Keeper. A sandbox dies with its owner, so there rarely are any.
func (*driver) Leftovers(ctx context.Context) ([]env.Leftover, error) { return drivers.Orphans(ctx) }

func key(l env.Limits, version string, way startWay, perSandbox bool) schemas.EnvKey {
	k := schemas.EnvKey{Driver: "bubblewrap", Python: version, Limits: map[string]string{
		"network":    "network namespace",
		"memory":     "guest watchdog, RLIMIT_AS",
		"disk":       "sized tmpfs",
		"inodes":     "tmpfs nr_inodes",
		"processes":  "guest watchdog",
		"cpu_time":   "RLIMIT_CPU",
		"open_files": "RLIMIT_NOFILE",
	}}
	if perSandbox {
		k.Limits["processes"] += ", RLIMIT_NPROC"
	}
	if cores, pinned := chooseCores(l.CPUs); pinned {
		k.Limits["cpus"] = fmt.Sprintf("bound to %d processors", cores.Count())
	} else {
		k.Limits["cpus"] = "host has no more"
	}
	drivers.RecordLifted(&k, l)
	if way.root && !way.needsUserns {
		k.Unenforced = append(k.Unenforced, "user namespace")
	}
	return k
}

// remedy explains the usual cause of a refusal.
func remedy(err error) string {
	text := err.Error()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || strings.Contains(text, "ermission") || strings.Contains(text, "not permitted") || strings.Contains(text, "namespace") {
		return " (does this system allow user namespaces? See user.max_user_namespaces, kernel.unprivileged_userns_clone and kernel.apparmor_restrict_unprivileged_userns; a container must be privileged for it; else choose --sandbox docker)"
	}
	return ""
}
