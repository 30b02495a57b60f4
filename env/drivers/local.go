package drivers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
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

// Names of temporary directories and of the file in them that says whose they are.
const (
	localPrefix = "tracesmith-local-"
	localOwner  = "owner"
)

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
	base, err := os.MkdirTemp("", localPrefix)
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
	if err := os.WriteFile(filepath.Join(base, localOwner), []byte(self().String()), 0o600); err != nil {
		return nil, err
	}
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
	cmd := exec.Command(binary, guestArgs(spec.Label)...)
	cmd.Env, cmd.Dir = []string{"GOMAXPROCS=2"}, work
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	c, err := startChild(cmd)
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
		Client: client,
		key: schemas.EnvKey{Driver: "local", Python: python.Version, Limits: map[string]string{},
			Unenforced: []string{"cpu_time", "cpus", "disk", "files", "memory", "network", "open_files", "processes"}},
		destroy: func(context.Context) error {
			c.stop()
			return removeTree(base)
		},
	}, nil
}

// Reap implements env.Driver.
func (*local) Reap(ctx context.Context) (int, error) {
	n, err := reapGuests(ctx)
	left, globErr := filepath.Glob(filepath.Join(os.TempDir(), localPrefix+"*"))
	err = errors.Join(err, globErr)
	for _, dir := range left {
		raw, readErr := os.ReadFile(filepath.Join(dir, localOwner))
		if readErr != nil {
			continue // being made or removed
		}
		if o, ok := parseOwner(string(raw)); ok && o.dead() {
			err = errors.Join(err, removeTree(dir))
			n++
		}
	}
	return n, err
}

// removeTree removes a directory even where a program took its own rights away.
func removeTree(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			_ = os.Chmod(p, 0o700) // before the walk reads it
		}
		return nil
	})
	return os.RemoveAll(dir)
}
