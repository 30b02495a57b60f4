// Package setup runs a task's set-up commands once, in a build sandbox that may
// use the network, and keeps the result for every later sandbox of that task.
//
// The commands find an active virtual environment at Prefix that also sees the
// system's packages; what they install there is kept, mounted read-only in
// every other sandbox, with Prefix/bin first in PATH. What they do to the
// repository is not kept.
package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

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

// Close releases the entries in use. The sandboxes that use them must have ended.
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

// use locks an entry until Close and reads its PATH.
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
	_ = os.Chtimes(name, time.Now(), time.Time{}) // time of the last use; if this fails, the entry may be removed early
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

// build fills a fresh directory and renames it into place, so that a killed build leaves
// nothing that looks finished. If two processes build an entry, the first one wins.
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

// runAll runs the commands in a build sandbox with dir mounted at Prefix. It returns the PATH
// that sandboxes of this kind have, and the directories to hide in them.
func (b *Builder) runAll(ctx context.Context, d env.Driver, spec env.SandboxSpec, t schemas.Task, tree env.Tree,
	dir string, timeout time.Duration) (search string, hidden []string, err error) {
	spec.Label = "setup " + spec.Label
	spec.Network = true
	spec.Mounts = append(slices.Clone(spec.Mounts), env.Mount{Host: dir, Path: Prefix, Write: true})
	sb, err := d.Start(ctx, spec)
	if err != nil {
		return "", nil, fmt.Errorf("starting the build sandbox: %w", err)
	}
	defer func() { // closing may copy what was written back to the host
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
	if err := runCommands(ctx, sb, t.Setup, spec.Workdir, timeout); err != nil {
		return "", nil, err
	}
	hidden, err = places(ctx, sb, d.Name(), t.Hide)
	return search, hidden, err
}

func (b *Builder) place(ctx context.Context, sb env.Sandbox, dir string, tree env.Tree) error {
	return env.Stream(
		func(w io.Writer) error { return b.Placement(ctx, tree, w) },
		func(r io.Reader) error { return sb.TarIn(ctx, dir, r) },
	)
}
