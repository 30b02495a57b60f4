package publish

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// leaseTime is the default duration of a lease.
const leaseTime = 30 * time.Second

// leaseState is the content of lease.json, which names the current publisher. Publishers
// change it only by compare-and-swap. It contains no time, because clocks differ: a waiting
// publisher checks instead whether the content has changed.
type leaseState struct {
	Holder string `json:"holder"`         // random ID of the publisher; "" if the lease is free
	Beat   int    `json:"beat,omitempty"` // incremented with each renewal
	TTLMS  int64  `json:"ttl_ms,omitempty"`
}

// lease is the exclusive right to publish to a destination. It is renewed in the background.
type lease struct {
	dest   sinks.Store
	state  leaseState
	raw    []byte                  // content of lease.json that this publisher wrote last
	cancel context.CancelCauseFunc // of the context that renew returned
	quit   chan struct{}           // closed to stop renewing
	done   sync.WaitGroup          // waits for the goroutine that renews
}

// acquire waits for the lease of the destination. It takes over a lease whose holder does
// not renew it in time. The returned context is canceled when the lease is lost. The caller
// must release the lease.
func (p *publication) acquire(ctx context.Context) (context.Context, *lease, error) {
	ttl := cmp.Or(p.cfg.Lease, leaseTime)
	l := &lease{dest: p.cfg.Dest, state: leaseState{Holder: rand.Text(), TTLMS: ttl.Milliseconds()}, quit: make(chan struct{})}
	var seen []byte
	since, patience := time.Now(), ttl
	for {
		current, err := l.dest.Get(ctx, leaseKey)
		switch {
		case errors.Is(err, sinks.ErrNotFound):
			current, err = nil, nil
		case err != nil:
			return nil, nil, fmt.Errorf("taking the publishing lease: %w", err)
		}
		var other leaseState
		if current != nil {
			if err := json.Unmarshal(current, &other); err != nil {
				return nil, nil, fmt.Errorf("%w: %s/%s is damaged: delete it and publish again", ErrOccupied, l.dest.URI(), leaseKey)
			}
		}
		if !bytes.Equal(current, seen) {
			seen, since, patience = current, time.Now(), time.Duration(other.TTLMS)*time.Millisecond
		}
		if other.Holder == "" || time.Since(since) >= patience {
			switch err := l.write(ctx, current); {
			case err == nil:
				return l.renew(ctx, ttl), l, nil
			case !errors.Is(err, sinks.ErrChanged) && !errors.Is(err, sinks.ErrExists):
				return nil, nil, fmt.Errorf("taking the publishing lease: %w", err)
			}
			continue
		}
		p.cfg.reportStage("waiting for another publisher of this dataset")
		select {
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		case <-time.After(min(patience/5, 2*time.Second)):
		}
	}
}

// write replaces old, the current content of lease.json, with the next state of l. old is
// nil if there is no lease.json yet.
func (l *lease) write(ctx context.Context, old []byte) error {
	l.state.Beat++
	raw, err := schemas.CanonicalJSON(l.state)
	if err != nil {
		return err
	}
	if old == nil {
		err = l.dest.Create(ctx, leaseKey, raw)
	} else {
		err = l.dest.Swap(ctx, leaseKey, old, raw)
	}
	if errors.Is(err, sinks.ErrChanged) || errors.Is(err, sinks.ErrExists) {
		current, gerr := l.dest.Get(ctx, leaseKey)
		var now leaseState
		if gerr == nil && json.Unmarshal(current, &now) == nil && now.Holder == l.state.Holder { // the write succeeded, but its answer was lost
			raw, err = current, nil
		}
	}
	if err == nil {
		l.raw = raw
	}
	return err
}

// renew starts to renew the lease three times per ttl, and returns a context that is
// canceled when the lease is lost. It gives up the lease if renewing fails for two thirds
// of ttl, because another publisher may soon take it over.
func (l *lease) renew(ctx context.Context, ttl time.Duration) context.Context {
	held, cancelHeld := context.WithCancelCause(ctx)
	l.cancel = cancelHeld
	l.done.Go(func() {
		last := time.Now()
		for {
			select {
			case <-l.quit:
				return
			case <-held.Done():
				return
			case <-time.After(ttl / 3):
			}
			started := time.Now()
			writeCtx, cancel := context.WithTimeout(held, ttl/3)
			err := l.write(writeCtx, l.raw)
			cancel()
			switch {
			case err == nil:
				last = started
			case errors.Is(err, sinks.ErrChanged), time.Since(last) > ttl*2/3:
				cancelHeld(fmt.Errorf("%w (%w): publish again", ErrLeaseLost, err))
				return
			}
		}
	})
	return held
}

// release frees the lease. If that fails, the next publisher waits until the lease
// expires.
func (l *lease) release(ctx context.Context) {
	close(l.quit)
	l.done.Wait()
	l.cancel(nil)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	free, err := schemas.CanonicalJSON(leaseState{})
	if err == nil {
		_ = l.dest.Swap(ctx, leaseKey, l.raw, free) // if this fails, the lease expires
	}
}
