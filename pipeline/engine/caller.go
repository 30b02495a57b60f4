package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// caller makes requests to servers that may be slow, just started or electing a leader.
type caller struct {
	timeout  time.Duration     // of one try
	patience time.Duration     // over all tries; 0 = three tries
	diskFull func(error) error // returns a *DiskFullError if that explains the failure; may be nil
	refused  func() error      // returns an *AccessError if that closed the connection; may be nil
	place    string            // of external servers
}

// call runs one request with a deadline per try, and retries transient errors. If
// patience runs out, the error says what the cause most probably is.
func (c caller) call(ctx context.Context, op string, f func(context.Context) error) error {
	start := time.Now()
	for tries := 1; ; tries++ {
		tryCtx, cancel := context.WithTimeout(ctx, c.timeout)
		err := f(tryCtx)
		cancel()
		if err == nil {
			return nil
		}
		if c.refused != nil {
			if denied := c.refused(); denied != nil {
				return denied
			}
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w", op, context.Cause(ctx))
		}
		if c.diskFull != nil && (transient(err) || serverFailed(err)) {
			if full := c.diskFull(err); full != nil {
				return full
			}
		}
		if !transient(err) {
			return fmt.Errorf("%s: %w", op, err)
		}
		if tries >= 3 && time.Since(start) >= c.patience {
			return &StuckError{Op: op, Place: c.place, Err: err}
		}
		if c.patience > 0 {
			if stop := Pause(ctx, min(time.Duration(tries)*100*time.Millisecond, time.Second)); stop != nil {
				return fmt.Errorf("%s: %w", op, stop)
			}
		}
	}
}

// Pause waits for d, or returns the cause of ctx when ctx ends first.
func Pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

var (
	// errNoLeader means that a stream is electing a leader.
	errNoLeader = errors.New("the stream has no leader yet")
	// errNotYet means that a replica lacks data that another one has stored.
	errNotYet = errors.New("not there yet")
)

// retryCodes are the servers' error codes of temporary failures.
var retryCodes = map[jetstream.ErrorCode]bool{
	10005: true,              // no suitable peers for placement: a node is down
	10008: true,              // JetStream system temporarily unavailable
	10009: true,              // cluster can not handle request
	10012: true,              // consumer could not be created
	10023: true,              // insufficient resources
	10049: true,              // error creating store for stream: a young cluster
	10118: true,              // stream is offline
	10119: true,              // consumer is offline
	10158: true,              // a message with this id is in process
	10164: true,              // a message for this subject is in process
	10176: true,              // incomplete batch: its first messages were lost
	10194: true, 10195: true, // offline, with a reason
	10210: true, // too many batches in process
}

// transient reports whether the same request may succeed later.
func transient(err error) bool {
	if noAnswer(err) || errors.Is(err, errNoLeader) || errors.Is(err, errNotYet) || errors.Is(err, nats.ErrDisconnected) || errors.Is(err, nats.ErrConnectionReconnecting) ||
		errors.Is(err, nats.ErrReconnectBufExceeded) || errors.Is(err, jetstream.ErrServerShutdown) || errors.Is(err, jetstream.ErrConsumerLeadershipChanged) ||
		errors.Is(err, jetstream.ErrNoHeartbeat) {
		return true
	}
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && (api.Code == 503 || retryCodes[api.ErrorCode])
}

// serverFailed reports whether a server answered that it failed, for example because it cannot write.
func serverFailed(err error) bool {
	api, ok := errors.AsType[*jetstream.APIError](err)
	return ok && api.Code >= 500
}
