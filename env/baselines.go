package env

import (
	"context"
	"sync"

	"github.com/tracesmith/tracesmith/schemas"
)

// Baselines caches the lists of tests that must pass, which are found by running the
// tests of a task. The zero value is ready to use. It is safe for concurrent use.
type Baselines struct {
	mu    sync.Mutex
	known map[string]schemas.TestSpec
	runs  map[string]*baselineRun
}

// baselineRun is one call of find that callers wait for.
type baselineRun struct {
	callers int
	cancel  context.CancelFunc
	done    chan struct{} // closed once spec and err are set
	spec    schemas.TestSpec
	err     error
}

// Get returns the lists for key and calls find if they are not in the cache. Concurrent
// callers with the same key share one call of find. An error is returned to all of them
// and not cached. A caller stops waiting when its own context ends; the last caller to
// stop cancels find and waits until it has returned.
func (b *Baselines) Get(ctx context.Context, key string, find func(context.Context) (schemas.TestSpec, error)) (schemas.TestSpec, error) {
	b.mu.Lock()
	if spec, ok := b.known[key]; ok {
		b.mu.Unlock()
		return spec, nil
	}
	run := b.runs[key]
	if run == nil {
		run = b.start(ctx, key, find)
	}
	run.callers++
	b.mu.Unlock()
	select {
	case <-run.done:
		return run.spec, run.err
	case <-ctx.Done():
	}
	b.mu.Lock()
	run.callers--
	last := run.callers == 0
	if last {
		b.forget(key, run)
	}
	b.mu.Unlock()
	if last {
		run.cancel()
		<-run.done
	}
	return schemas.TestSpec{}, ctx.Err()
}

// start begins a call of find that outlives the caller's context. Called with mu held.
func (b *Baselines) start(ctx context.Context, key string, find func(context.Context) (schemas.TestSpec, error)) *baselineRun {
	if b.runs == nil {
		b.known, b.runs = map[string]schemas.TestSpec{}, map[string]*baselineRun{}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	run := &baselineRun{cancel: cancel, done: make(chan struct{})}
	b.runs[key] = run
	go func() {
		defer close(run.done)
		defer cancel()
		run.spec, run.err = find(ctx)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.forget(key, run)
		if run.err == nil {
			b.known[key] = run.spec
		}
	}()
	return run
}

// forget removes run, so that the next caller starts a new one. Called with mu held.
func (b *Baselines) forget(key string, run *baselineRun) {
	if b.runs[key] == run {
		delete(b.runs, key)
	}
}
