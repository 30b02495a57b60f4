package env

import (
	"context"
	"fmt"

	"golang.org/x/sync/semaphore"
)

// startLimit wraps a Driver and limits concurrent starts.
type startLimit struct {
	Driver
	starts *semaphore.Weighted
}

// LimitStarts returns a Driver that starts at most n sandboxes of d at once; n is at
// least 1. The limit exists because a daemon that gets a hundred starts at once fails some.
// Start fetches a missing image before it waits for its turn, so a long fetch does not
// delay sandboxes whose image is present. The result does not implement Puller
// even if d does. It is safe for concurrent use.
func LimitStarts(d Driver, n int) Driver {
	return &startLimit{Driver: d, starts: semaphore.NewWeighted(int64(n))}
}

// Start implements Driver. Waiting for a turn ends with ctx.
func (d *startLimit) Start(ctx context.Context, spec SandboxSpec) (Sandbox, error) {
	if p, ok := d.Driver.(Puller); ok {
		if err := p.Ensure(ctx, spec.Image); err != nil {
			return nil, err
		}
	}
	if err := d.starts.Acquire(ctx, 1); err != nil {
		return nil, fmt.Errorf("waiting for a turn to start a %s sandbox: %w", d.Name(), err)
	}
	defer d.starts.Release(1)
	return d.Driver.Start(ctx, spec)
}
