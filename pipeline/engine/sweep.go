package engine

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Sweep removes the queue, records, step logs, bodies and budget of a run from the
// cluster. Its entry in the registry stays.
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
	return []string{"TASKS_" + runID, "STEPS_" + runID, "KV_EPISODES_" + runID, "OBJ_BODIES_" + runID, "KV_" + budgetBucket(runID)}
}

// BytesByRun returns the runs that have streams on the cluster, with their sizes in bytes.
func (c *Conn) BytesByRun(ctx context.Context) (map[string]uint64, error) {
	held := map[string]uint64{}
	err := c.call(ctx, "listing streams", func(ctx context.Context) error {
		clear(held)
		list := c.js.ListStreams(ctx)
		for info := range list.Info() {
			for _, prefix := range []string{"TASKS_", "STEPS_", "KV_EPISODES_", "OBJ_BODIES_", "KV_" + budgetBucket("")} {
				if id, ok := strings.CutPrefix(info.Config.Name, prefix); ok {
					held[id] += info.State.Bytes
				}
			}
		}
		return list.Err()
	})
	return held, err
}

// DeleteRun removes a run from the cluster, including its entry in the registry.
func (c *Conn) DeleteRun(ctx context.Context, runID string) error {
	if err := c.Sweep(ctx, runID); err != nil {
		return err
	}
	return c.call(ctx, "removing the run's entry", func(ctx context.Context) error { return c.runs.Purge(ctx, runID) })
}

// HasCoordinator reports whether a run, whose entry was r, has a coordinator. It waits up to
// four heartbeats for the entry to be renewed. It does not compare times, because the clocks
// of the machines may differ.
func (c *Conn) HasCoordinator(ctx context.Context, r RunEntry) (bool, error) {
	if r.Phase == Stopped || r.Phase == Completed {
		return false, nil
	}
	for start := time.Now(); time.Since(start) < 4*registryBeat; {
		current, ok, err := c.RunEntry(ctx, r.RunID)
		if err != nil || !ok {
			return false, err
		}
		if current.Revision != r.Revision {
			return true, nil
		}
		if err := Pause(ctx, registryBeat/4); err != nil {
			return false, err
		}
	}
	return false, nil
}
