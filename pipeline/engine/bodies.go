package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// objectStore opens or creates the store of bodies that are too large for a message.
func (e *Engine) objectStore(ctx context.Context) (jetstream.ObjectStore, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.objects != nil {
		return e.objects, nil
	}
	name := "BODIES_" + e.opt.RunID
	err := e.call(ctx, "opening the object store", func(ctx context.Context) (err error) {
		e.objects, err = e.js.ObjectStore(ctx, name)
		if errors.Is(err, jetstream.ErrBucketNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
			e.objects, err = e.js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: name, Storage: jetstream.FileStorage, Replicas: e.replicas()})
		}
		return err
	})
	if err != nil {
		e.objects = nil
	}
	return e.objects, err
}

// PutBody stores a body of any size under a name. All writes to one name must have
// the same content.
func (e *Engine) PutBody(ctx context.Context, name string, body []byte) error {
	store, err := e.objectStore(ctx)
	if err != nil {
		return err
	}
	return e.callerForBodies().call(ctx, "storing "+name, func(ctx context.Context) error {
		_, err := store.PutBytes(ctx, name, body)
		return err
	})
}

// GetBody returns a stored body. It retries while a replica has an incomplete copy.
func (e *Engine) GetBody(ctx context.Context, name string) (body []byte, err error) {
	store, err := e.objectStore(ctx)
	if err != nil {
		return nil, err
	}
	err = e.callerForBodies().call(ctx, "fetching "+name, func(ctx context.Context) (err error) {
		body, err = store.GetBytes(ctx, name)
		if errors.Is(err, jetstream.ErrDigestMismatch) || errors.Is(err, jetstream.ErrObjectNotFound) {
			return fmt.Errorf("%w: %w", errNotYet, err)
		}
		return err
	})
	return body, err
}

// callerForBodies returns a caller with a longer timeout, because bodies are large.
func (e *Engine) callerForBodies() caller {
	c := e.caller
	c.timeout *= 6
	return c
}

// Body returns a body of a run without joining the run.
func (c *Conn) Body(ctx context.Context, runID, name string) ([]byte, error) {
	e := &Engine{caller: c.caller, opt: Options{RunID: runID, Conn: c}, nc: c.nc, js: c.js}
	return e.GetBody(ctx, name)
}

// Entries returns the records of a run without joining the run.
func (c *Conn) Entries(ctx context.Context, runID string) ([]Entry, error) {
	e := &Engine{caller: c.caller, opt: Options{RunID: runID, Conn: c}, nc: c.nc, js: c.js}
	entries, err := e.Entries(ctx)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	return entries, err
}
