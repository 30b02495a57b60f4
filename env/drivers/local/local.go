// Package local runs programs as plain processes of the user who runs tracesmith, without isolation.
package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/drivers"
	"github.com/tracesmith/tracesmith/env/guest"
	"github.com/tracesmith/tracesmith/schemas"
)

func init() {
	env.Drivers.Register(plugin.Spec[env.Driver, struct{}]{
		Kind:    "local",
		Summary: "plain processes in a temporary directory: NO isolation, for trusted code only",
		New:     func(any, struct{}) (env.Driver, error) { return &driver{}, nil },
	})
}

// driver runs programs in a temporary directory. It enforces only timeouts and output limits, and hides nothing of the
// host.
type driver struct {
	pythons drivers.Interpreters
}

func (*driver) Name() string { return "local" }

// Start implements env.Driver. The workspace is a new directory, not spec.Workdir. The sandbox's Workdir method returns
// its path, and the other methods map paths below spec.Workdir to it.
func (d *driver) Start(ctx context.Context, spec env.SandboxSpec) (env.Sandbox, error) {
	if len(spec.Mounts) > 0 {
		return nil, errors.New("starting a local sandbox: mounts need isolation: use --sandbox bubblewrap")
	}
	python, err := d.pythons.Find(ctx, spec.Python)
	if err != nil {
		return nil, fmt.Errorf("starting a local sandbox: %w", err)
	}
	base, err := drivers.MakeScratch("local")
	if err != nil {
		return nil, fmt.Errorf("starting a local sandbox: %w", err)
	}
	s, err := d.start(ctx, spec, python, base)
	if err != nil {
		return nil, fmt.Errorf("starting a local sandbox: %w", errors.Join(err, drivers.RemoveScratch(base)))
	}
	return s, nil
}

func (d *driver) start(ctx context.Context, spec env.SandboxSpec, python drivers.Interpreter, base string) (env.Sandbox, error) {
	work, home, tmp, bin := filepath.Join(base, "work"), filepath.Join(base, "home"), filepath.Join(base, "tmp"), filepath.Join(base, "bin")
	for _, dir := range []string{work, home, tmp, bin} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, err
		}
	}
	for _, name := range python.MissingNames() {
		if err := os.Symlink(python.Executable, filepath.Join(bin, name)); err != nil {
			return nil, err
		}
	}
	binary, err := guest.Binary()
	if err != nil {
		return nil, err
	}
	firstTag := guest.FirstTag()
	if err := drivers.TagScratch(base, firstTag); err != nil {
		return nil, err
	}
	cmd := exec.Command(binary, drivers.GuestArgs(spec.Label, "-tags", strconv.FormatUint(firstTag, 10))...)
	cmd.Env, cmd.Dir = []string{"GOMAXPROCS=2"}, work
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	child, err := drivers.StartChild(cmd, (*exec.Cmd).Start)
	if err != nil {
		return nil, err
	}
	alias := spec.Workdir
	if alias != "" {
		alias = filepath.Clean(alias)
	}
	client, err := child.Connect(ctx, guest.Config{
		Workdir: work, Alias: alias,
		Env: drivers.Environ(home, []string{bin, python.Bin()}, append([]string{"TMPDIR=" + tmp}, spec.Env...)),
	})
	if err != nil {
		return nil, err
	}
	return &drivers.Sandbox{
		Client: client, Temp: tmp,
		EnvKey: schemas.EnvKey{Driver: "local", Python: python.Version, Limits: map[string]string{},
			Unenforced: []string{"cpu_time", "cpus", "disk", "inodes", "memory", "network", "open_files", "processes"}},
		Destroy: func(context.Context) error {
			clean := child.Stop()
			spec.Meter.Add(child.CPU())
			if !clean { // a guest that exits cleanly has killed its programs itself
				if err := guest.KillPrograms(firstTag); err != nil {
					return err
				}
			}
			return drivers.RemoveScratch(base)
		},
	}, nil
}

// Leftovers implements env.LeftoverLister. It returns the guests and scratch directories whose owner has ended.
func (*driver) Leftovers(ctx context.Context) ([]env.Leftover, error) {
	guests, err := drivers.Orphans(ctx)
	dirs, dirErr := drivers.Scratch{}.Leftovers(ctx)
	return append(guests, dirs...), errors.Join(err, dirErr)
}
