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

// leaseState is lease.json, which names the current publisher. It is changed by
// compare-and-swap only. It contains no time: a waiting publisher watches for changes.
type leaseState struct {
	Holder string `json:"holder"` // "": free
	Beat   int    `json:"beat,omitempty"`
	TTLMS  int64  `json:"ttl_ms,omitempty"`
}

// lease is the exclusive right to publish to a place, renewed in the background.
type lease struct {
	dest  sinks.Store
	state leaseState
	raw   []byte
	lost  context.CancelCauseFunc
	quit  chan struct{}
	ended sync.WaitGroup
}

// acquire waits for the lease of the place; a holder that does not renew it in time
// is considered dead. The context it returns ends when the lease is lost. The caller
// releases the lease.
func (p *publication) acquire(ctx context.Context) (context.Context, *lease, error) {
	ttl := cmp.Or(p.cfg.Lease, leaseTime)
	l := &lease{dest: p.cfg.Dest, state: leaseState{Holder: rand.Text(), TTLMS: ttl.Milliseconds()}, quit: make(chan struct{})}
	var seen []byte
	since, patience := time.Now(), ttl
	for {
		have, err := l.dest.Get(ctx, leaseKey)
		switch {
		case errors.Is(err, sinks.ErrNotFound):
			have, err = nil, nil
		case err != nil:
			return nil, nil, fmt.Errorf("taking the publishing lease: %w", err)
		}
		var other leaseState
		if have != nil {
			if err := json.Unmarshal(have, &other); err != nil {
				return nil, nil, fmt.Errorf("%w: %s/%s is damaged: delete it and publish again", ErrOccupied, l.dest.URI(), leaseKey)
			}
		}
		if !bytes.Equal(have, seen) {
			seen, since, patience = have, time.Now(), time.Duration(other.TTLMS)*time.Millisecond
		}
		if other.Holder == "" || time.Since(since) >= patience {
			switch err := l.write(ctx, have); {
			case err == nil:
				return l.keep(ctx, ttl), l, nil
			case !errors.Is(err, sinks.ErrChanged) && !errors.Is(err, sinks.ErrExists):
				return nil, nil, fmt.Errorf("taking the publishing lease: %w", err)
			}
			continue
		}
		p.cfg.tell("waiting for another publisher of this dataset")
		select {
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		case <-time.After(min(patience/5, 2*time.Second)):
		}
	}
}

// write replaces old by the next state; nil: there is no lease.json yet.
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
		have, gerr := l.dest.Get(ctx, leaseKey)
		var now leaseState
		if gerr == nil && json.Unmarshal(have, &now) == nil && now.Holder == l.state.Holder { // an earlier try succeeded without an answer
			raw, err = have, nil
		}
	}
	if err == nil {
		l.raw = raw
	}
	return err
}

// keep renews the lease three times per ttl. It gives the lease up if renewing fails
// for two thirds of ttl, because others may soon take it.
func (l *lease) keep(ctx context.Context, ttl time.Duration) context.Context {
	held, lost := context.WithCancelCause(ctx)
	l.lost = lost
	l.ended.Go(func() {
		last := time.Now()
		for {
			select {
			case <-l.quit:
				return
			case <-held.Done():
				return
			case <-time.After(ttl / 3):
			}
			begun := time.Now()
			once, cancel := context.WithTimeout(held, ttl/3)
			err := l.write(once, l.raw)
			cancel()
			switch {
			case err == nil:
				last = begun
			case errors.Is(err, sinks.ErrChanged), time.Since(last) > ttl*2/3:
				lost(fmt.Errorf("%w (%w): publish again", ErrLeaseLost, err))
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
	l.ended.Wait()
	l.lost(nil)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	free, err := schemas.CanonicalJSON(leaseState{})
	if err == nil {
		_ = l.dest.Swap(ctx, leaseKey, l.raw, free) // if this fails, the lease expires
	}
}
