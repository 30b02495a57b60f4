package engine

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"
)

// Sweep removes the queue, records, step logs and bodies of a run from the
// cluster. What the board says of it stays.
func (c *Conn) Sweep(ctx context.Context, runID string) error {
	var errs []error
	for _, name := range streamsOf(runID) {
		errs = append(errs, c.call(ctx, "removing "+name, func(ctx context.Context) error {
			err := c.js.DeleteStream(ctx, name)
			if errors.Is(err, jetstream.ErrStreamNotFound) {
				return nil
			}
			return err
		}))
	}
	return errors.Join(errs...)
}

func streamsOf(runID string) []string {
	return []string{"TASKS_" + runID, "STEPS_" + runID, "KV_EPISODES_" + runID, "OBJ_BODIES_" + runID}
}
