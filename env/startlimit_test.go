package env_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/tracesmith/tracesmith/env"
)

// slowDriver is a driver whose starts, and whose fetch of the image "missing", last until
// the test releases them.
type slowDriver struct {
	env.Driver
	starting atomic.Int32
	fetching atomic.Int32
	start    chan struct{}
	fetch    chan struct{}
}

func (*slowDriver) Name() string { return "slow" }

func (d *slowDriver) Start(ctx context.Context, _ env.SandboxSpec) (env.Sandbox, error) {
	d.starting.Add(1)
	defer d.starting.Add(-1)
	<-d.start
	return nil, errors.New("released")
}

func (d *slowDriver) Pull(context.Context, string, func(have, total int64)) (bool, error) {
	return false, nil
}

func (d *slowDriver) Ensure(ctx context.Context, image string) error {
	switch image {
	case "missing":
		d.fetching.Add(1)
		<-d.fetch
	case "unknown":
		return errors.New("no such image")
	}
	return nil
}

func TestLimitStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &slowDriver{start: make(chan struct{}), fetch: make(chan struct{})}
		limited := env.LimitStarts(d, 2)
		for range 5 {
			go func() { _, _ = limited.Start(t.Context(), env.SandboxSpec{}) }()
		}
		for range 4 {
			synctest.Wait()
			if n := d.starting.Load(); n != 2 {
				t.Errorf("%d starts in progress, want 2", n)
			}
			d.start <- struct{}{}
		}
		synctest.Wait()
		if n := d.starting.Load(); n != 1 {
			t.Errorf("%d starts in progress at the end, want 1", n)
		}
		close(d.start)
	})
}

func TestLimitStartsFetchesBeforeItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &slowDriver{start: make(chan struct{}), fetch: make(chan struct{})}
		limited := env.LimitStarts(d, 1)
		go func() { _, _ = limited.Start(t.Context(), env.SandboxSpec{Image: "missing"}) }()
		synctest.Wait()
		go func() { _, _ = limited.Start(t.Context(), env.SandboxSpec{Image: "present"}) }()
		synctest.Wait()
		if d.fetching.Load() != 1 || d.starting.Load() != 1 {
			t.Errorf("%d fetches and %d starts in progress, want one of each", d.fetching.Load(), d.starting.Load())
		}
		if _, err := limited.Start(t.Context(), env.SandboxSpec{Image: "unknown"}); err == nil || err.Error() != "no such image" {
			t.Errorf("unknown image: %v", err)
		}
		close(d.start)
		close(d.fetch)
	})
}

func TestLimitStartsStopsWaitingWhenCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &slowDriver{start: make(chan struct{})}
		limited := env.LimitStarts(d, 1)
		go func() { _, _ = limited.Start(t.Context(), env.SandboxSpec{}) }()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			_, err := limited.Start(ctx, env.SandboxSpec{})
			ended <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "a turn to start a slow sandbox") {
			t.Errorf("canceled: %v", err)
		}
		d.start <- struct{}{}
		close(d.start) // the turn was not lost
		if _, err := limited.Start(t.Context(), env.SandboxSpec{}); err == nil || err.Error() != "released" {
			t.Errorf("a start after the canceled one: %v", err)
		}
	})
}
