// Package turns bounds how many sandboxes start at once: a daemon that is asked
// for a hundred of them at one moment starts none in time, and fails some.
package turns

import (
	"context"
	"fmt"

	"golang.org/x/sync/semaphore"

	"github.com/tracesmith/tracesmith/env"
)

// Driver implements env.Driver over another. An image is fetched before the turn is
// taken, so that a long fetch holds up nobody whose image is there. Safe for
// concurrent use.
type Driver struct {
	env.Driver
	starts *semaphore.Weighted
}

// New lets n sandboxes of a driver start at once; n is at least 1.
func New(d env.Driver, n int) *Driver {
	return &Driver{Driver: d, starts: semaphore.NewWeighted(int64(n))}
}

// Start implements env.Driver. Waiting ends with ctx.
func (d *Driver) Start(ctx context.Context, spec env.SandboxSpec) (env.Sandbox, error) {
	if p, ok := d.Driver.(env.Puller); ok {
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
