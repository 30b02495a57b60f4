package drivers

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
	"github.com/tracesmith/tracesmith/env/guest"
	"github.com/tracesmith/tracesmith/schemas"
)

func init() {
	env.Drivers.Register(plugin.Spec[env.Driver, struct{}]{
		Kind:    "local",
		Summary: "plain processes in a temporary directory: NO isolation, for trusted code only",
		New:     func(any, struct{}) (env.Driver, error) { return &local{}, nil },
	})
}

// local runs programs as the user who runs tracesmith, in a temporary directory.
// Timeouts and output caps hold; nothing else is limited or hidden.
type local struct {
	pythons interpreters
}

func (*local) Name() string { return "local" }

// Start implements env.Driver. The workspace is a fresh directory, whatever
// spec.Workdir says; paths below spec.Workdir given to the sandbox's methods mean
// it, and its Workdir method names it.
func (d *local) Start(ctx context.Context, spec env.SandboxSpec) (env.Sandbox, error) {
	if len(spec.Mounts) > 0 {
		return nil, errors.New("starting a local sandbox: mounts need isolation: use --sandbox bubblewrap")
	}
	python, err := d.pythons.find(ctx, spec.Python)
	if err != nil {
		return nil, fmt.Errorf("starting a local sandbox: %w", err)
	}
	base, err := MakeScratch("local")
	if err != nil {
		return nil, fmt.Errorf("starting a local sandbox: %w", err)
	}
	s, err := d.start(ctx, spec, python, base)
	if err != nil {
		return nil, fmt.Errorf("starting a local sandbox: %w", errors.Join(err, removeTree(base)))
	}
	return s, nil
}

func (d *local) start(ctx context.Context, spec env.SandboxSpec, python interpreter, base string) (env.Sandbox, error) {
	work, homeDir, tmp, bin := filepath.Join(base, "work"), filepath.Join(base, "home"), filepath.Join(base, "tmp"), filepath.Join(base, "bin")
	for _, dir := range []string{work, homeDir, tmp, bin} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, err
		}
	}
	for _, name := range python.missing() {
		if err := os.Symlink(python.Executable, filepath.Join(bin, name)); err != nil {
			return nil, err
		}
	}
	binary, err := guest.Binary()
	if err != nil {
		return nil, err
	}
	tags := guest.FirstTag()
	if err := os.WriteFile(filepath.Join(base, scratchTags), strconv.AppendUint(nil, tags, 10), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command(binary, guestArgs(spec.Label, "-tags", strconv.FormatUint(tags, 10))...)
	cmd.Env, cmd.Dir = []string{"GOMAXPROCS=2"}, work
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	c, err := startChild(cmd, (*exec.Cmd).Start)
	if err != nil {
		return nil, err
	}
	alias := spec.Workdir
	if alias != "" {
		alias = filepath.Clean(alias)
	}
	client, err := c.connect(ctx, guest.Config{
		Workdir: work, Alias: alias,
		Env: environment(homeDir, []string{bin, python.bin()}, append([]string{"TMPDIR=" + tmp}, spec.Env...)),
	})
	if err != nil {
		return nil, err
	}
	return &sandbox{
		Client: client, temp: tmp,
		key: schemas.EnvKey{Driver: "local", Python: python.Version, Limits: map[string]string{},
			Unenforced: []string{"cpu_time", "cpus", "disk", "inodes", "memory", "network", "open_files", "processes"}},
		destroy: func(context.Context) error {
			if c.stop(); !c.cmd.ProcessState.Success() { // else it has done that itself
				if err := guest.KillPrograms(tags); err != nil {
					return err
				}
			}
			return removeTree(base)
		},
	}, nil
}

// Reap implements env.Driver.
func (d *local) Reap(ctx context.Context) (int, error) { return env.RemoveLeftovers(ctx, d) }

// Leftovers implements env.Keeper: guests of dead processes and their directories.
func (*local) Leftovers(ctx context.Context) ([]env.Leftover, error) {
	guests, err := orphans(ctx)
	dirs, dirErr := Scratch{}.Leftovers(ctx)
	return append(guests, dirs...), errors.Join(err, dirErr)
}
