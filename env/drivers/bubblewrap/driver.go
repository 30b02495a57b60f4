// Package bubblewrap starts sandboxes with bwrap, which uses namespaces of the Linux kernel and needs neither a daemon
// nor an image.
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

// driver starts each sandbox as a bwrap child process in new namespaces. The sandbox sees the host's /usr read-only,
// all writable directories are tmpfs with a size limit, and the guest is the first process and has an unprivileged
// user.
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
	for _, mode := range privilegeModes() {
		s, err := d.start(ctx, bwrap, spec, python, mode)
		if err == nil {
			return s, nil
		}
		if mode.needsUserns && errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) {
			userns = err
			continue
		}
		if userns != nil { // the lack of user namespaces is the more important cause
			err = fmt.Errorf("creating a user namespace: %w (without one: %v)", userns, err) //nolint:errorlint // one cause
		}
		return nil, fmt.Errorf("starting a bubblewrap sandbox: %w%s", err, hint(err))
	}
	return nil, fmt.Errorf("starting a bubblewrap sandbox: %w%s", userns, hint(userns))
}

func (d *driver) start(ctx context.Context, bwrap string, spec env.SandboxSpec, python drivers.Interpreter, mode privilegeMode) (env.Sandbox, error) {
	binary, err := guest.Binary()
	if err != nil {
		return nil, err
	}
	a := &arguments{}
	defer a.close()
	if err := a.build(spec, python, binary, mode); err != nil {
		return nil, err
	}
	serve := []string{"-pinned"}
	if mode.root {
		serve = append(serve, "-drop", strconv.Itoa(mode.user), "-own", spec.Workdir+":"+drivers.Home+":/tmp")
	}
	a.add("--", guestPath)
	a.add(drivers.GuestArgs(spec.Label, serve...)...)
	cmd := exec.Command(binary, slices.Concat([]string{guest.StageArg}, a.stage, []string{"--", bwrap}, a.args)...)
	cmd.Env, cmd.Dir, cmd.ExtraFiles = []string{"GOMAXPROCS=2"}, "/", a.files
	cmd.SysProcAttr = mode.attributes()
	child, err := drivers.StartChild(cmd, func(cmd *exec.Cmd) error { return startPinned(cmd, spec.Limits.CPUs) })
	if err != nil {
		return nil, err
	}
	perSandbox := countsPerNamespace() && mode.user == drivers.User
	client, err := child.Connect(ctx, guest.Config{
		Workdir: spec.Workdir, Env: drivers.Environ(drivers.Home, searchPath(python), spec.Env), Limits: spec.Limits, LimitProcesses: perSandbox,
		OutsideCause: child.KilledFromOutside,
	})
	if err != nil {
		return nil, err
	}
	return &drivers.Sandbox{
		Client: client, Python: python.Executable,
		EnvKey: envKey(spec.Limits, python.Version, mode, perSandbox),
		Destroy: func(context.Context) error {
			child.Stop()
			spec.Meter.Add(child.CPU())
			return nil
		},
	}, nil
}

// Leftovers implements env.LeftoverLister. It rarely finds any, because a sandbox ends with its owner.
func (*driver) Leftovers(ctx context.Context) ([]env.Leftover, error) { return drivers.Orphans(ctx) }

func envKey(l env.Limits, version string, mode privilegeMode, perSandbox bool) schemas.EnvKey {
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
	if mode.root && !mode.needsUserns {
		k.Unenforced = append(k.Unenforced, "user namespace")
	}
	return k
}

// hint returns what to check if err is a refusal of the kernel, and "" otherwise.
func hint(err error) string {
	text := err.Error()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || strings.Contains(text, "ermission") || strings.Contains(text, "not permitted") || strings.Contains(text, "namespace") {
		return " (does this system allow user namespaces? See user.max_user_namespaces, kernel.unprivileged_userns_clone and kernel.apparmor_restrict_unprivileged_userns; a container must be privileged for it; else choose --sandbox docker)"
	}
	return ""
}
