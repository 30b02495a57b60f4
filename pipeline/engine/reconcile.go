package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

func (e *Engine) reconcileLoop(ctx context.Context) {
	tick := time.NewTicker(e.opt.Reconcile)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := e.reconcile(ctx, false); err != nil && ctx.Err() == nil {
				e.opt.Log.Warn("reconciling", "error", err)
			}
		}
	}
}

// reconcile makes the queue agree with the records: the queue may have lost a
// message, kept one of a finished job, or used up its deliveries. alone is true if
// no other process can be alive (at the start of an embedded engine), so that every
// running record is an orphan.
func (e *Engine) reconcile(ctx context.Context, alone bool) error {
	e.queueing.Lock() // otherwise jobs recorded but not yet published look lost
	defer e.queueing.Unlock()
	entries, err := e.Entries(ctx)
	if err != nil {
		return err
	}
	queue, err := e.subjects(ctx, "TASKS_"+e.opt.RunID, e.taskSubject("*"))
	if err != nil {
		return err
	}
	logs, err := e.subjects(ctx, "STEPS_"+e.opt.RunID, e.stepSubject("*"))
	if err != nil {
		return err
	}
	nothingPending, err := e.nothingPending(ctx)
	if err != nil {
		return err
	}
	now := time.Now().UTC()
	var publish []string
	for _, entry := range entries {
		_, present := queue[e.taskSubject(entry.ID)]
		switch {
		case entry.Terminal():
			if present {
				err = e.dropMessage(ctx, entry.ID)
			}
			if _, hasLog := logs[e.stepSubject(entry.ID)]; hasLog && err == nil && entry.State == Done {
				err = e.PurgeLog(ctx, entry.ID) // the owner died between Done and the purge
			}
		case entry.State == Running && (alone || e.expired(entry, now)) && !e.owns(entry.ID):
			var requeued bool
			requeued, err = e.requeueOrphan(ctx, entry, alone, now)
			if requeued && !present {
				publish = append(publish, entry.ID)
			}
		case entry.State == Queued && !present:
			publish = append(publish, entry.ID)
		case entry.State == Queued && nothingPending && now.After(entry.Due.Add(e.opt.AckWait)):
			// The message is in the queue, but no worker will get it: its deliveries are
			// used up or it is stuck. A new message starts over.
			if err = e.dropMessage(ctx, entry.ID); err == nil {
				publish = append(publish, entry.ID)
			}
		}
		if err != nil {
			return err
		}
	}
	return e.publish(ctx, publish)
}

// requeueOrphan takes a running job from an owner that seems to be gone. requeued is false if
// the owner is alive after all or the job is now dead.
func (e *Engine) requeueOrphan(ctx context.Context, entry Entry, alone bool, now time.Time) (requeued bool, err error) {
	next := entry.Record
	if alone { // the process died with its workers, so no failure can be attributed to the job
		next.State, next.Owner, next.LeaseEnd, next.Due = Queued, "", time.Time{}, now
		if next.exhausted(e.opt.MaxDeliver) {
			next.State, next.Class, next.Cause, next.LastAt = Dead, "process_died", "the process died every time it ran this job", now
		}
	} else {
		next.recordFailure("", "lease_expired", "the worker stopped renewing its lease", now, now, e.opt.MaxDeliver)
	}
	switch err := e.swap(ctx, &entry, next); {
	case errors.Is(err, ErrLeaseLost): // the owner is alive
		return false, nil
	case err != nil:
		return false, err
	case next.State == Dead:
		return false, e.dropMessage(ctx, entry.ID)
	}
	return true, nil
}

// nothingPending reports whether the workers' consumer has no messages that it can still deliver for
// the first time.
func (e *Engine) nothingPending(ctx context.Context) (bool, error) {
	var info *jetstream.ConsumerInfo
	err := e.call(ctx, "inspecting the worker consumer", func(ctx context.Context) (err error) {
		info, err = e.workers.Info(ctx)
		return err
	})
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		return false, e.createConsumer(ctx, false)
	}
	if err != nil {
		return false, err
	}
	return info.NumPending == 0, nil
}

// dropMessage removes the message of a job from the queue.
func (e *Engine) dropMessage(ctx context.Context, id string) error {
	return e.call(ctx, "removing a job's message", func(ctx context.Context) error {
		return e.tasks.Purge(ctx, jetstream.WithPurgeSubject(e.taskSubject(id)))
	})
}

func (e *Engine) owns(id string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.owned[id]
}

// expired reports whether the lease of a running job has expired. On a cluster
// another machine's clock wrote the lease, so a record counts as abandoned when it
// has not changed for AckWait by the local clock.
func (e *Engine) expired(entry Entry, now time.Time) bool {
	if e.opt.Conn == nil {
		return now.After(entry.LeaseEnd)
	}
	last, known := e.observations[entry.ID]
	if !known || last.revision != entry.Revision {
		e.observations[entry.ID] = observation{entry.Revision, time.Now()}
		return false
	}
	return time.Since(last.since) > e.opt.AckWait
}

// subjects lists the subjects of a stream that hold messages, page by page.
func (e *Engine) subjects(ctx context.Context, stream, filter string) (map[string]uint64, error) {
	all := map[string]uint64{}
	for {
		var page struct {
			Error *jetstream.APIError `json:"error"`
			Total int                 `json:"total"`
			State struct {
				Subjects map[string]uint64 `json:"subjects"`
			} `json:"state"`
		}
		err := e.call(ctx, "listing a stream", func(ctx context.Context) error {
			request, err := json.Marshal(map[string]any{"subjects_filter": filter, "offset": len(all)})
			if err != nil {
				return err
			}
			resp, err := e.nc.RequestWithContext(ctx, "$JS.API.STREAM.INFO."+stream, request)
			if err != nil {
				return err
			}
			if err := json.Unmarshal(resp.Data, &page); err != nil {
				return fmt.Errorf("reading the answer: %w", err)
			}
			if page.Error != nil {
				return page.Error
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		before := len(all)
		maps.Copy(all, page.State.Subjects)
		if len(all) >= page.Total || len(all) == before {
			return all, nil
		}
	}
}
