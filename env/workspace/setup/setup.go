// Package setup runs a task's set-up commands once, in a build sandbox that may use the network, and keeps the result
// for every later sandbox of that task.
//
// The commands run in an active virtual environment at Prefix that also sees the system's packages. The package keeps
// what they install there and mounts it read-only in every other sandbox, with Prefix/bin first in PATH. It does not
// keep their changes to the repository.
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

// Builder prepares sandbox specs. Safe for concurrent use. Several processes can use Builders with the same cache.
type Builder struct {
	Cache   Cache
	Timeout time.Duration // of all commands together; 0 = DefaultTimeout
	// Placement writes the initial content of a workspace as a tar archive, see workspace.Store.
	Placement func(ctx context.Context, tree env.Tree, w io.Writer) error

	mu    sync.Mutex
	locks map[string]*keyLock     // by key, while a caller holds or waits for the lock
	used  map[string]*flock.Flock // shared locks of entries by path, so that no process removes them
}

// Close releases the cache entries in use. Close the sandboxes that use them first.
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

// DefaultTimeout is the default time limit of the commands of one set-up.
const DefaultTimeout = 10 * time.Minute

// Prepare returns spec with mounts for the results of the task's set-up, which it runs if the cache does not have them.
// It returns spec unchanged for a task without set-up commands and hidden modules.
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
	entry := filepath.Join(b.Cache.Dir, key)
	unlock, err := b.lockKey(ctx, key)
	if err != nil {
		return spec, fmt.Errorf("waiting for the same set-up of %s: %w", t.InstanceID, err)
	}
	defer unlock()
	search, err := b.use(entry)
	if errors.Is(err, os.ErrNotExist) {
		if err := b.build(ctx, d, spec, t, tree, entry); err != nil {
			return spec, fmt.Errorf("setting up %s: %w", t.InstanceID, err)
		}
		search, err = b.use(entry)
	}
	if err != nil {
		return spec, fmt.Errorf("reading the set-up cache: %w", err)
	}
	spec.Mounts = append(slices.Clone(spec.Mounts), env.Mount{Host: filepath.Join(entry, prefixDir), Path: Prefix})
	hidden, err := hiddenDirs(entry)
	for _, dir := range hidden {
		spec.Mounts = append(spec.Mounts, env.Mount{Host: filepath.Join(entry, emptyDir), Path: dir})
	}
	spec.Env = append(slices.Clone(spec.Env), "VIRTUAL_ENV="+Prefix, "PATH="+Prefix+"/bin:"+string(search))
	return spec, err
}

// use locks an entry until Close and returns its PATH.
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

// keyLock lets one caller at a time look up or build the entry of a key.
type keyLock struct {
	held    chan struct{} // contains one value while a caller holds the lock
	callers int           // number of callers that hold the lock or wait for it
}

// lockKey acquires the lock of a key. It returns an error if ctx ends first.
func (b *Builder) lockKey(ctx context.Context, key string) (unlock func(), err error) {
	b.mu.Lock()
	if b.locks == nil {
		b.locks = map[string]*keyLock{}
	}
	l := b.locks[key]
	if l == nil {
		l = &keyLock{held: make(chan struct{}, 1)}
		b.locks[key] = l
	}
	l.callers++
	b.mu.Unlock()
	leave := func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if l.callers--; l.callers == 0 {
			delete(b.locks, key)
		}
	}
	select {
	case l.held <- struct{}{}:
		return func() { <-l.held; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}

// build runs the set-up in a new directory and renames it to entry, so that an interrupted build leaves no incomplete
// entry. If two processes build the same entry, the cache keeps the first result.
func (b *Builder) build(ctx context.Context, d env.Driver, spec env.SandboxSpec, t schemas.Task, tree env.Tree, entry string) error {
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
	buildLock, err := lock(fresh, (*flock.Flock).Lock)
	if err != nil {
		return fmt.Errorf("making the set-up cache: %w", err)
	}
	defer buildLock.Close()
	prefix := filepath.Join(fresh, prefixDir)
	if err := os.Mkdir(prefix, 0o755); err != nil {
		return fmt.Errorf("making the set-up cache: %w", err)
	}
	search, hidden, err := b.runAll(ctx, d, spec, t, tree, prefix, timeout)
	if err != nil {
		return err
	}
	if err := writeHidden(fresh, hidden); err != nil {
		return fmt.Errorf("keeping the set-up result: %w", err)
	}
	if err := os.WriteFile(filepath.Join(fresh, searchFile), []byte(search), 0o600); err != nil {
		return fmt.Errorf("keeping the set-up result: %w", err)
	}
	if err := os.Rename(fresh, entry); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("keeping the set-up result: %w", err)
	}
	return nil
}

// runAll runs the commands in a build sandbox with dir mounted at Prefix. It returns the PATH of such sandboxes and the
// directories to hide in them.
func (b *Builder) runAll(ctx context.Context, d env.Driver, spec env.SandboxSpec, t schemas.Task, tree env.Tree,
	dir string, timeout time.Duration) (search string, hidden []string, err error) {
	spec.Label = "setup " + spec.Label
	spec.Network = true
	spec.Mounts = append(slices.Clone(spec.Mounts), env.Mount{Host: dir, Path: Prefix, Write: true})
	sb, err := d.Start(ctx, spec)
	if err != nil {
		return "", nil, fmt.Errorf("starting the build sandbox: %w", err)
	}
	defer func() { // Close may copy the written files back to the host, so its error matters
		if closeErr := sb.Close(context.WithoutCancel(ctx)); err == nil && closeErr != nil {
			err = fmt.Errorf("closing the build sandbox: %w", closeErr)
		}
	}()
	if err := b.place(ctx, sb, spec.Workdir, tree); err != nil {
		return "", nil, fmt.Errorf("placing the repository: %w", err)
	}
	res, err := sb.Run(ctx, env.Command{Args: []string{"sh", "-c", `printf %s "$PATH"`}, Dir: "/", MaxOutput: 16 << 10})
	if err != nil {
		return "", nil, fmt.Errorf("reading the PATH of the build sandbox: %w", err)
	}
	search = string(res.Output)
	if err := runCommands(ctx, sb, t.Setup, spec.Workdir, timeout); err != nil {
		return "", nil, err
	}
	hidden, err = findHidden(ctx, sb, d.Name(), t.Hide)
	return search, hidden, err
}

// place writes the repository to dir in a sandbox.
func (b *Builder) place(ctx context.Context, sb env.Sandbox, dir string, tree env.Tree) error {
	return env.Stream(
		func(w io.Writer) error { return b.Placement(ctx, tree, w) },
		func(r io.Reader) error { return sb.TarIn(ctx, dir, r) },
	)
}
