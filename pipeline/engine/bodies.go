package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// bodies opens or creates the object store of what is too large for a message.
func (e *Engine) bodies(ctx context.Context) (jetstream.ObjectStore, error) {
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

// PutBody stores bytes of any size under a name; a name is written once or with
// equal bytes.
func (e *Engine) PutBody(ctx context.Context, name string, body []byte) error {
	store, err := e.bodies(ctx)
	if err != nil {
		return err
	}
	return e.patient().call(ctx, "storing "+name, func(ctx context.Context) error {
		_, err := store.PutBytes(ctx, name, body)
		return err
	})
}

// GetBody is what PutBody stored. A copy that a replica does not have whole yet
// is read again.
func (e *Engine) GetBody(ctx context.Context, name string) (body []byte, err error) {
	store, err := e.bodies(ctx)
	if err != nil {
		return nil, err
	}
	err = e.patient().call(ctx, "fetching "+name, func(ctx context.Context) (err error) {
		body, err = store.GetBytes(ctx, name)
		if errors.Is(err, jetstream.ErrDigestMismatch) || errors.Is(err, jetstream.ErrObjectNotFound) {
			return fmt.Errorf("%w: %w", errNotYet, err)
		}
		return err
	})
	return body, err
}

// patient is the engine's caller with more time for one try: bodies are large.
func (e *Engine) patient() caller {
	c := e.caller
	c.timeout *= 6
	return c
}

// Body fetches a body of a run without joining it.
func (c *Conn) Body(ctx context.Context, runID, name string) ([]byte, error) {
	e := &Engine{caller: c.caller, opt: Options{RunID: runID, Conn: c}, nc: c.nc, js: c.js}
	return e.GetBody(ctx, name)
}

// Entries lists the records of a run without joining it; none where it has none.
func (c *Conn) Entries(ctx context.Context, runID string) ([]Entry, error) {
	e := &Engine{caller: c.caller, opt: Options{RunID: runID, Conn: c}, nc: c.nc, js: c.js}
	entries, err := e.Entries(ctx)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	return entries, err
}
