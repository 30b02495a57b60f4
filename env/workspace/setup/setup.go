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
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// Prefix is where the results of a set-up lie in a sandbox.
const Prefix = "/opt/task"

// Builder prepares sandbox specs. Safe for concurrent use, also by several
// processes on one cache.
type Builder struct {
	Cache     Cache
	Timeout   time.Duration // of all commands together; 0 = DefaultTimeout
	Placement func(ctx context.Context, tree env.Tree, w io.Writer) error

	mu    sync.Mutex
	turns map[string]*turn        // by key, while a caller builds it or waits
	used  map[string]*flock.Flock // shared locks by entry, so that other processes do not remove it
}

// Close lets go of the entries in use: no sandbox may need them any more.
func (b *Builder) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var errs []error
	for _, f := range b.used {
		errs = append(errs, f.Close())
	}
	b.used = nil
	return errors.Join(errs...)
}

// DefaultTimeout bounds the commands of one set-up.
const DefaultTimeout = 10 * time.Minute

// Prepare returns spec with the results of the task's set-up mounted. A task
// without set-up commands gets spec back unchanged.
func (b *Builder) Prepare(ctx context.Context, d env.Driver, spec env.SandboxSpec, t schemas.Task, tree env.Tree) (env.SandboxSpec, error) {
	if len(t.Setup)+len(t.Hide) == 0 {
		return spec, nil
	}
	if err := openCache(b.Cache.Dir); err != nil {
		return spec, fmt.Errorf("setting up %s: %w", t.InstanceID, err)
	}
	content := []any{d.Name(), spec.Image, spec.Python, activate, t.Setup, tree.SHA256()}
	if len(t.Hide) > 0 {
		content = append(content, t.Hide)
	}
	key := schemas.ShortHash(content)
	final := filepath.Join(b.Cache.Dir, key)
	done, err := b.await(ctx, key)
	if err != nil {
		return spec, fmt.Errorf("waiting for the same set-up of %s: %w", t.InstanceID, err)
	}
	defer done()
	search, err := b.use(final)
	if errors.Is(err, os.ErrNotExist) {
		if err := b.build(ctx, d, spec, t, tree, final); err != nil {
			return spec, fmt.Errorf("setting up %s: %w", t.InstanceID, err)
		}
		search, err = b.use(final)
	}
	if err != nil {
		return spec, fmt.Errorf("reading the set-up cache: %w", err)
	}
	spec.Mounts = append(slices.Clone(spec.Mounts), env.Mount{Host: filepath.Join(final, prefixDir), Path: Prefix})
	hidden, err := hiddenPlaces(final)
	for _, place := range hidden {
		spec.Mounts = append(spec.Mounts, env.Mount{Host: filepath.Join(final, emptyDir), Path: place})
	}
	spec.Env = append(slices.Clone(spec.Env), "VIRTUAL_ENV="+Prefix, "PATH="+Prefix+"/bin:"+string(search))
	return spec, err
}

// use holds an entry for the life of the builder and reads its PATH.
func (b *Builder) use(entry string) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used[entry] == nil {
		f, err := lock(entry, (*flock.Flock).RLock)
		if err != nil {
			return nil, err
		}
		if b.used == nil {
			b.used = map[string]*flock.Flock{}
		}
		b.used[entry] = f
	}
	name := filepath.Join(entry, searchFile)
	_ = os.Chtimes(name, time.Now(), time.Time{}) // when it was last used; the worst is an early removal
	return os.ReadFile(name)
}

// turn lets one caller at a time look up or build a key.
type turn struct {
	held    chan struct{} // holds one value while a caller has the turn
	callers int           // that have the turn or wait for it
}

// await waits for the turn of a key, or for the end of ctx; done passes it on.
func (b *Builder) await(ctx context.Context, key string) (done func(), err error) {
	b.mu.Lock()
	if b.turns == nil {
		b.turns = map[string]*turn{}
	}
	t := b.turns[key]
	if t == nil {
		t = &turn{held: make(chan struct{}, 1)}
		b.turns[key] = t
	}
	t.callers++
	b.mu.Unlock()
	leave := func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if t.callers--; t.callers == 0 {
			delete(b.turns, key)
		}
	}
	select {
	case t.held <- struct{}{}:
		return func() { <-t.held; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}

// build fills a fresh directory and renames it into place, so that a killed
// build leaves nothing that looks finished; of two processes the first wins.
func (b *Builder) build(ctx context.Context, d env.Driver, spec env.SandboxSpec, t schemas.Task, tree env.Tree, final string) error {
	timeout := b.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	if _, err := env.RemoveLeftovers(ctx, b.Cache); err != nil {
		return fmt.Errorf("making room in the set-up cache: %w", err)
	}
	fresh, err := os.MkdirTemp(b.Cache.Dir, building+"*")
	if err != nil {
		return fmt.Errorf("making the set-up cache: %w", err)
	}
	defer func() { _ = os.RemoveAll(fresh) }()
	held, err := lock(fresh, (*flock.Flock).Lock)
	if err != nil {
		return fmt.Errorf("making the set-up cache: %w", err)
	}
	defer held.Close()
	prefix := filepath.Join(fresh, prefixDir)
	if err := os.Mkdir(prefix, 0o755); err != nil {
		return fmt.Errorf("making the set-up cache: %w", err)
	}
	search, hidden, err := b.runAll(ctx, d, spec, t, tree, prefix, timeout)
	if err != nil {
		return err
	}
	if err := keepHidden(fresh, hidden); err != nil {
		return fmt.Errorf("keeping the set-up result: %w", err)
	}
	if err := os.WriteFile(filepath.Join(fresh, searchFile), []byte(search), 0o600); err != nil {
		return fmt.Errorf("keeping the set-up result: %w", err)
	}
	if err := os.Rename(fresh, final); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("keeping the set-up result: %w", err)
	}
	return nil
}

// runAll runs the commands with dir at Prefix and tells the PATH that sandboxes
// of this kind have of themselves, and the places to hide in them.
func (b *Builder) runAll(ctx context.Context, d env.Driver, spec env.SandboxSpec, t schemas.Task, tree env.Tree,
	dir string, timeout time.Duration) (search string, hidden []string, err error) {
	spec.Label = "setup " + spec.Label
	spec.Network = true
	spec.Mounts = append(slices.Clone(spec.Mounts), env.Mount{Host: dir, Path: Prefix, Write: true})
	sb, err := d.Start(ctx, spec)
	if err != nil {
		return "", nil, fmt.Errorf("starting the build sandbox: %w", err)
	}
	defer func() { // what was written may come back only now
		if closeErr := sb.Close(context.WithoutCancel(ctx)); err == nil && closeErr != nil {
			err = fmt.Errorf("ending the build sandbox: %w", closeErr)
		}
	}()
	if err := b.place(ctx, sb, spec.Workdir, tree); err != nil {
		return "", nil, fmt.Errorf("placing the repository: %w", err)
	}
	res, err := sb.Run(ctx, env.Command{Args: []string{"sh", "-c", `printf %s "$PATH"`}, Dir: "/", MaxOutput: 16 << 10})
	if err != nil {
		return "", nil, fmt.Errorf("asking the build sandbox for its PATH: %w", err)
	}
	search = string(res.Output)
	script := strings.Join(append([]string{activate}, t.Setup...), "\n")
	res, err = sb.Run(ctx, env.Command{Args: []string{"bash", "-e", "-c", script}, Dir: spec.Workdir, Timeout: timeout})
	switch {
	case err != nil:
		return "", nil, fmt.Errorf("running the set-up commands: %w", err)
	case res.TimedOut:
		return "", nil, fmt.Errorf("the commands took longer than %s (sandbox.setup_timeout); their last words: %s", timeout, lastLines(res.Output, 5))
	case res.ExitCode != 0:
		said := lastLines(res.Output, 5)
		if said == "" {
			return "", nil, fmt.Errorf("a command ended with exit code %d and printed nothing: correct the setup commands", res.ExitCode)
		}
		return "", nil, fmt.Errorf("a command ended with exit code %d: %s: correct the setup commands", res.ExitCode, said)
	}
	hidden, err = places(ctx, sb, d.Name(), t.Hide)
	return search, hidden, err
}

// activate makes the virtual environment and enters it. Its pip is the system's
// where there is one, acting on the environment. What is installed is compiled:
// setup.py asks the variable, and every later sandbox would compile it anew, with
// the compiler's warnings each time.
const activate = `unset PYTHONDONTWRITEBYTECODE
python3 -m venv --system-site-packages --without-pip ` + Prefix + `
export VIRTUAL_ENV=` + Prefix + ` PATH=` + Prefix + `/bin:$PATH PIP_DISABLE_PIP_VERSION_CHECK=1
python3 -c 'import pip' 2>/dev/null || python3 -m ensurepip >/dev/null 2>&1 || true
printf '#!/bin/sh\nexec ` + Prefix + `/bin/python3 -m pip "$@"\n' >` + Prefix + `/bin/pip
chmod +x ` + Prefix + `/bin/pip`

func (b *Builder) place(ctx context.Context, sb env.Sandbox, dir string, tree env.Tree) error {
	r, w := io.Pipe()
	written := make(chan struct{})
	go func() {
		defer close(written)
		w.CloseWithError(b.Placement(ctx, tree, w))
	}()
	err := sb.TarIn(ctx, dir, r)
	r.CloseWithError(errors.New("reader has returned"))
	<-written
	return err
}

// lastLines is the end of an output on one line.
func lastLines(out []byte, n int) string {
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(out), "�")), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], " | ")
}
