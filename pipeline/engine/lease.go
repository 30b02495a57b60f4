package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Lease is the exclusive right of one worker to one job. It is renewed in the
// background until Done, Fail, Abandon or Release ends it. If it is lost, its context
// is canceled with ErrLeaseLost.
type Lease struct {
	Job
	Delivery int           // number of claims of the job, from 1
	Waited   time.Duration // time from when the job was due until it was claimed

	e      *Engine
	msg    jetstream.Msg
	entry  Entry
	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when the heartbeat has ended
}

// newLease starts a lease. The lease outlives the context of the claim, because a worker that
// stops must still settle its jobs.
func (e *Engine) newLease(msg jetstream.Msg, entry Entry, data []byte) *Lease {
	l := &Lease{
		Job: Job{ID: entry.ID, Data: data}, Delivery: entry.Delivery, Waited: max(0, time.Since(entry.Due)),
		e: e, msg: msg, entry: entry, done: make(chan struct{}),
	}
	l.ctx, l.cancel = context.WithCancelCause(e.life)
	e.mu.Lock()
	e.owned[l.ID] = true
	e.mu.Unlock()
	e.wg.Go(l.beat)
	return l
}

// Context returns a context that ends with the lease; its cause is ErrLeaseLost if the lease was lost.
func (l *Lease) Context() context.Context { return l.ctx }

// beat renews the lease in the queue and in the record. It gives up when another
// process changed the record, or when renewals failed for so long that another worker
// may claim the job soon.
func (l *Lease) beat() {
	defer close(l.done)
	tick := time.NewTicker(l.e.opt.Heartbeat)
	defer tick.Stop()
	renewed := time.Now()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-tick.C:
		}
		_ = l.msg.InProgress() // a failure does no harm: the record decides who holds the job
		next := l.entry.Record
		next.LeaseEnd = time.Now().UTC().Add(l.e.opt.AckWait)
		deadline := l.e.opt.AckWait - l.e.opt.Heartbeat
		tryCtx, cancel := context.WithDeadline(l.ctx, renewed.Add(deadline))
		err := l.e.swap(tryCtx, &l.entry, next)
		cancel()
		switch {
		case err == nil:
			renewed = time.Now()
		case errors.Is(err, ErrLeaseLost), time.Since(renewed) >= deadline:
			l.e.opt.Log.Warn("lease lost", "job", l.ID, "error", err)
			l.cancel(ErrLeaseLost)
			return
		}
	}
}

// end stops the heartbeat and reports whether the lease was lost. When it returns, nothing
// else reads or writes l.entry.
func (l *Lease) end() (lost bool) {
	lost = errors.Is(context.Cause(l.ctx), ErrLeaseLost)
	l.cancel(context.Canceled)
	<-l.done
	l.e.mu.Lock()
	delete(l.e.owned, l.ID)
	l.e.mu.Unlock()
	return lost || errors.Is(context.Cause(l.ctx), ErrLeaseLost)
}

// Done ends the lease with the hash of a result and a few data about it. If the lease was lost, it
// returns ErrLeaseLost and leaves the record unchanged, because the job may belong to another worker.
func (l *Lease) Done(ctx context.Context, hash string, result json.RawMessage) error {
	if l.end() {
		return ErrLeaseLost
	}
	next := l.entry.Record
	next.State, next.Hash, next.Result, next.Owner, next.LeaseEnd, next.LastAt = Done, hash, result, "", time.Time{}, time.Now().UTC()
	next.Class, next.Cause = "", ""
	return l.e.swap(ctx, &l.entry, next)
}

// Ack removes the message of a job that Done settled. If the process crashes before it calls
// Ack, the reconciler removes the message.
func (l *Lease) Ack(ctx context.Context) error { return l.e.ack(ctx, l.msg) }

// Fail ends the lease with an infrastructure failure. It requeues the job after delay, or
// marks it dead if it has failed too often (see MaxDeliver). It returns the new record.
func (l *Lease) Fail(ctx context.Context, stage, class, cause string, delay time.Duration) (Record, error) {
	if l.end() {
		return Record{}, ErrLeaseLost
	}
	next, now := l.entry.Record, time.Now().UTC()
	next.recordFailure(stage, class, cause, now, now.Add(delay), l.e.opt.MaxDeliver)
	if err := l.e.swap(ctx, &l.entry, next); err != nil {
		return Record{}, err
	}
	if next.State == Dead {
		if err := l.msg.TermWithReason(class); err != nil {
			return next, fmt.Errorf("terminating a job: %w", err)
		}
		return next, nil
	}
	if err := l.msg.NakWithDelay(delay); err != nil {
		return next, fmt.Errorf("returning a job: %w", err)
	}
	return next, nil
}

// Abandon ends the lease and marks the job dead. Revive requeues it.
func (l *Lease) Abandon(ctx context.Context, stage, class, cause string) error {
	if l.end() {
		return ErrLeaseLost
	}
	next := l.entry.Record
	next.State, next.Owner, next.LeaseEnd, next.LastAt = Dead, "", time.Time{}, time.Now().UTC()
	next.Stage, next.Class, next.Cause = stage, class, cause
	if err := l.e.swap(ctx, &l.entry, next); err != nil {
		return err
	}
	return l.e.ack(ctx, l.msg)
}

// Release requeues the job without counting a failure, for a worker that stops.
func (l *Lease) Release(ctx context.Context) error {
	if l.end() {
		return ErrLeaseLost
	}
	next := l.entry.Record
	next.State, next.Owner, next.LeaseEnd, next.Due = Queued, "", time.Time{}, time.Now().UTC()
	next.Tries--
	if err := l.e.swap(ctx, &l.entry, next); err != nil {
		return err
	}
	// Other workers of a cluster may be stopping too. Delay the redelivery so that the job does
	// not go to one that no longer claims jobs.
	var delay time.Duration
	if l.e.opt.Join {
		delay = registryBeat
	}
	if err := l.msg.NakWithDelay(delay); err != nil {
		return fmt.Errorf("returning a job: %w", err)
	}
	return nil
}
