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

// ErrLeaseLost: another publisher has taken over, because this one was not heard
// of for the length of its lease. What it wrote is complete or of no effect.
var ErrLeaseLost = errors.New("another publisher took over")

// leaseTime is how long a holder may be silent.
const leaseTime = 30 * time.Second

// leased is lease.json: who publishes now. It is only ever changed by a swap. No
// clock stands in it: who waits looks whether it changes.
type leased struct {
	Holder string `json:"holder"` // "": nobody
	Beat   int    `json:"beat,omitempty"`
	TTLMS  int64  `json:"ttl_ms,omitempty"`
}

// lease is held by one publisher of a place.
type lease struct {
	dest  sinks.Store
	mine  leased
	raw   []byte
	lost  context.CancelCauseFunc
	quit  chan struct{}
	ended sync.WaitGroup
}

// acquire waits until nobody else publishes to the place and keeps the others
// out until release. The context it returns ends when the lease is lost. A
// holder that stays silent for its time is taken for dead.
func (p *publication) acquire(ctx context.Context) (context.Context, *lease, error) {
	ttl := cmp.Or(p.cfg.Lease, leaseTime)
	l := &lease{dest: p.cfg.Dest, mine: leased{Holder: rand.Text(), TTLMS: ttl.Milliseconds()}, quit: make(chan struct{})}
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
		var other leased
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
		p.cfg.tell("waiting for another publisher of this place")
		select {
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		case <-time.After(min(patience/5, 2*time.Second)):
		}
	}
}

// write puts mine in the place of old (nil: of nothing).
func (l *lease) write(ctx context.Context, old []byte) error {
	l.mine.Beat++
	raw, err := schemas.CanonicalJSON(l.mine)
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
		var now leased
		if gerr == nil && json.Unmarshal(have, &now) == nil && now.Holder == l.mine.Holder { // the answer to an earlier try was lost
			raw, err = have, nil
		}
	}
	if err == nil {
		l.raw = raw
	}
	return err
}

// keep renews the lease three times in its length. One that could not be renewed
// for two thirds of it is given up: others may soon take it.
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

// release lets the next publisher in. One that never hears of it waits as for a
// dead holder.
func (l *lease) release(ctx context.Context) {
	close(l.quit)
	l.ended.Wait()
	l.lost(nil)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	free, err := schemas.CanonicalJSON(leased{})
	if err == nil {
		_ = l.dest.Swap(ctx, leaseKey, l.raw, free) // lost or unreachable: the others know how to go on
	}
}
