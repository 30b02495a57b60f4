// Package setup runs a task's set-up commands once, in a build sandbox that may
// use the network, and keeps the result for every later sandbox of that task.
//
// The commands find an active virtual environment at Prefix that also sees the
// system's packages; what they install there is kept, mounted read-only in
// every other sandbox, with Prefix/bin first in PATH. What they do to the
// repository is not kept. It imports env and schemas only.
package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// Prefix is where the results of a set-up lie in a sandbox.
const Prefix = "/opt/task"

// Builder prepares sandbox specs. Safe for concurrent use, also by several
// processes on one cache.
type Builder struct {
	Cache     string        // host directory; made when first needed
	Timeout   time.Duration // of all commands together
	Placement func(ctx context.Context, tree env.Tree, w io.Writer) error

	mu    sync.Mutex
	locks map[string]*sync.Mutex // one build per key at a time
}

// DefaultCache is a directory any sandbox user can reach, private to this user
// for writing.
func DefaultCache() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("tracesmith-setup-%d", os.Getuid()))
}

// Prepare returns spec with the results of the task's set-up mounted. A task
// without set-up commands gets spec back unchanged.
func (b *Builder) Prepare(ctx context.Context, d env.Driver, spec env.SandboxSpec, t schemas.Task, tree env.Tree) (env.SandboxSpec, error) {
	if len(t.Setup) == 0 {
		return spec, nil
	}
	key := schemas.ShortHash([]any{d.Name(), spec.Image, spec.Python, t.Setup, tree.SHA256()})
	final := filepath.Join(b.Cache, key)
	unlock := b.lock(key)
	defer unlock()
	if _, err := os.Stat(final); errors.Is(err, os.ErrNotExist) {
		if err := b.build(ctx, d, spec, t, tree, final); err != nil {
			return spec, fmt.Errorf("setting up %s: %w", t.InstanceID, err)
		}
	} else if err != nil {
		return spec, fmt.Errorf("reading the set-up cache: %w", err)
	}
	spec.Mounts = append(spec.Mounts, env.Mount{Host: final, Path: Prefix})
	spec.Env = append(spec.Env, "VIRTUAL_ENV="+Prefix, "PATH="+Prefix+"/bin:/usr/local/bin:/usr/bin:/bin")
	return spec, nil
}

func (b *Builder) lock(key string) (unlock func()) {
	b.mu.Lock()
	if b.locks == nil {
		b.locks = map[string]*sync.Mutex{}
	}
	if b.locks[key] == nil {
		b.locks[key] = &sync.Mutex{}
	}
	m := b.locks[key]
	b.mu.Unlock()
	m.Lock()
	return m.Unlock
}

// build fills a fresh directory and renames it into place, so that a killed
// build leaves nothing that looks finished; of two processes the first wins.
func (b *Builder) build(ctx context.Context, d env.Driver, spec env.SandboxSpec, t schemas.Task, tree env.Tree, final string) error {
	if err := os.MkdirAll(b.Cache, 0o755); err != nil {
		return fmt.Errorf("making the set-up cache: %w", err)
	}
	fresh, err := os.MkdirTemp(b.Cache, ".building-")
	if err != nil {
		return fmt.Errorf("making the set-up cache: %w", err)
	}
	defer func() { _ = os.RemoveAll(fresh) }()
	if err := os.Chmod(fresh, 0o777); err != nil { // the sandbox user is another one
		return fmt.Errorf("opening the set-up cache to the sandbox: %w", err)
	}
	if err := b.runAll(ctx, d, spec, t, tree, fresh); err != nil {
		return err
	}
	if err := os.Chmod(fresh, 0o755); err != nil {
		return fmt.Errorf("closing the set-up cache: %w", err)
	}
	if err := os.Rename(fresh, final); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("keeping the set-up result: %w", err)
	}
	return nil
}

func (b *Builder) runAll(ctx context.Context, d env.Driver, spec env.SandboxSpec, t schemas.Task, tree env.Tree, dir string) error {
	spec.Label = "setup " + spec.Label
	spec.Network = true
	spec.Mounts = append(spec.Mounts, env.Mount{Host: dir, Path: Prefix, Write: true})
	sb, err := d.Start(ctx, spec)
	if err != nil {
		return fmt.Errorf("starting the build sandbox: %w", err)
	}
	defer func() { _ = sb.Close(context.WithoutCancel(ctx)) }()
	r, w := io.Pipe()
	go func() { w.CloseWithError(b.Placement(ctx, tree, w)) }()
	err = sb.TarIn(ctx, spec.Workdir, r)
	r.CloseWithError(errors.New("reader has returned"))
	if err != nil {
		return fmt.Errorf("placing the repository: %w", err)
	}
	script := append([]string{"python3 -m venv --system-site-packages --without-pip " + Prefix, "export VIRTUAL_ENV=" + Prefix + " PATH=" + Prefix + "/bin:$PATH"}, t.Setup...)
	res, err := sb.Run(ctx, env.Command{Args: []string{"bash", "-e", "-c", strings.Join(script, "\n")}, Dir: spec.Workdir, Timeout: b.Timeout})
	if err != nil {
		return fmt.Errorf("running the set-up commands: %w", err)
	}
	if res.TimedOut {
		return fmt.Errorf("the commands took longer than %s (sandbox.setup_timeout); their last words: %s", b.Timeout, lastLines(res.Output, 5))
	}
	if res.ExitCode != 0 {
		return fmt.Errorf("a command ended with exit code %d: %s: correct the setup commands", res.ExitCode, lastLines(res.Output, 5))
	}
	return nil
}

// lastLines is the end of an output on one line.
func lastLines(out []byte, n int) string {
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(out), "�")), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], " | ")
}
