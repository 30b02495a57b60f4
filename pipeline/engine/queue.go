package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
	"golang.org/x/sync/errgroup"
)

// Job is what is handed out.
type Job struct {
	ID   string // unique within the run: letters, digits, '-' and '_'
	Data json.RawMessage
}

const (
	batchSize  = 1000    // messages in one atomic batch: the server's limit
	maxPayload = 8 << 20 // of one message, embedded
)

// Enqueue adds jobs that have no record yet and returns how many were new. The
// record comes first and the message second; a crash between the two is
// mended by the reconciler.
func (e *Engine) Enqueue(ctx context.Context, jobs []Job) (int, error) {
	known, err := e.Entries(ctx)
	if err != nil {
		return 0, err
	}
	have := make(map[string]bool, len(known))
	for _, k := range known {
		have[k.ID] = true
	}
	fresh := make([]bool, len(jobs))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(32)
	now := time.Now().UTC()
	for i, j := range jobs {
		if have[j.ID] {
			continue
		}
		g.Go(func() (err error) {
			fresh[i], err = e.create(gctx, j, now)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return 0, fmt.Errorf("recording jobs: %w", err)
	}
	var ids []string
	for i, j := range jobs {
		if fresh[i] {
			ids = append(ids, j.ID)
		}
	}
	return len(ids), e.publish(ctx, ids)
}

func (e *Engine) create(ctx context.Context, j Job, now time.Time) (created bool, err error) {
	body, err := json.Marshal(Record{State: Queued, Data: j.Data, Enqueued: now, Due: now})
	if err != nil {
		return false, fmt.Errorf("encoding job %s: %w", j.ID, err)
	}
	err = e.call(ctx, "creating a record", func(ctx context.Context) error {
		_, err := e.kv.Create(ctx, j.ID, body)
		created = err == nil
		if errors.Is(err, jetstream.ErrKeyExists) {
			return nil
		}
		return err
	})
	return created, err
}

// publish puts messages for ids on the queue, in atomic batches: with
// synchronous writes that is what makes bulk enqueueing fast.
func (e *Engine) publish(ctx context.Context, ids []string) error {
	for len(ids) > 0 {
		n := min(len(ids), batchSize)
		err := e.call(ctx, "publishing jobs", func(ctx context.Context) error { return e.publishBatch(ctx, ids[:n]) })
		if err != nil {
			return err
		}
		ids = ids[n:]
	}
	return nil
}

func (e *Engine) publishBatch(ctx context.Context, ids []string) error {
	batch := nuid.Next()
	for i, id := range ids {
		msg := nats.NewMsg(e.taskSubject(id))
		if len(ids) > 1 {
			msg.Header.Set("Nats-Batch-Id", batch)
			msg.Header.Set("Nats-Batch-Sequence", strconv.Itoa(i+1))
		}
		if i < len(ids)-1 {
			if err := e.nc.PublishMsg(msg); err != nil {
				return fmt.Errorf("publishing: %w", err)
			}
			continue
		}
		if len(ids) > 1 {
			msg.Header.Set("Nats-Batch-Commit", "1")
		}
		resp, err := e.nc.RequestMsgWithContext(ctx, msg)
		if err != nil {
			return fmt.Errorf("committing batch: %w", err)
		}
		var ack struct {
			Seq   uint64              `json:"seq"`
			Error *jetstream.APIError `json:"error"`
		}
		if err := json.Unmarshal(resp.Data, &ack); err != nil {
			return fmt.Errorf("reading batch acknowledgement: %w", err)
		}
		if ack.Error != nil {
			return fmt.Errorf("batch refused: %w", ack.Error)
		}
	}
	return nil
}

// Next waits for a job and claims it for owner: pulled from the queue and
// moved from queued to running by compare-and-swap. It returns ctx's cause
// when ctx ends first, and a *DiskFullError instead of claiming without room.
func (e *Engine) Next(ctx context.Context, owner string) (*Lease, error) {
	for {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		if err := e.space(nil); err != nil {
			return nil, err
		}
		msg, err := e.pull(ctx)
		if err != nil {
			return nil, err
		}
		if msg == nil {
			continue
		}
		lease, err := e.claim(ctx, msg, owner)
		if err != nil || lease != nil {
			return lease, err
		}
	}
}

// pull fetches one message; nil if none came within the poll interval.
func (e *Engine) pull(ctx context.Context) (jetstream.Msg, error) {
	wait, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	batch, err := e.workers.Fetch(1, jetstream.FetchContext(wait))
	if err != nil {
		if ctx.Err() != nil || silent(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("pulling a job: %w", err)
	}
	for msg := range batch.Messages() {
		return msg, nil
	}
	switch err := batch.Error(); {
	case err == nil, ctx.Err() != nil, silent(err), errors.Is(err, context.Canceled):
		return nil, nil
	case errors.Is(err, jetstream.ErrConsumerDeleted), errors.Is(err, jetstream.ErrConsumerNotFound):
		return nil, e.hire(ctx, false)
	default:
		return nil, fmt.Errorf("pulling a job: %w", err)
	}
}

// claim turns a message into a lease, or settles the message and returns nil
// where there is nothing to do.
func (e *Engine) claim(ctx context.Context, msg jetstream.Msg, owner string) (*Lease, error) {
	id := msg.Subject()[len(e.taskSubject("")):]
	entry, ok, err := e.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	now := time.Now().UTC()
	switch {
	case !ok, entry.Terminal():
		return nil, e.ack(ctx, msg)
	case entry.State == Running && now.Before(entry.Lease):
		// Another copy of the message, or its owner's beats got lost: look again
		// when the lease has run out.
		if err := msg.NakWithDelay(min(entry.Lease.Sub(now), e.opt.AckWait)); err != nil {
			return nil, fmt.Errorf("returning a job: %w", err)
		}
		return nil, nil
	}
	next := entry.Record
	if next.State == Running {
		next.failed("lease_expired", "its worker fell silent", now, now, e.opt.MaxDeliver)
	}
	if next.State == Dead || next.spent(e.opt.MaxDeliver) {
		next.State = Dead
		if err := e.swap(ctx, &entry, next); err != nil && !errors.Is(err, ErrLeaseLost) {
			return nil, err
		}
		return nil, e.ack(ctx, msg)
	}
	next.State, next.Owner, next.Lease = Running, e.instance+"/"+owner, now.Add(e.opt.AckWait)
	next.Delivery++
	next.Tries++
	if next.FirstAt.IsZero() {
		next.FirstAt = now
	}
	if err := e.swap(ctx, &entry, next); errors.Is(err, ErrLeaseLost) {
		return nil, e.ack(ctx, msg) // somebody else claimed a copy of it
	} else if err != nil {
		return nil, err
	}
	return e.hold(msg, entry), nil
}

// ack removes a message for certain.
func (e *Engine) ack(ctx context.Context, msg jetstream.Msg) error {
	err := e.call(ctx, "acknowledging a job", func(ctx context.Context) error {
		try, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		return msg.DoubleAck(try)
	})
	if errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
		return nil
	}
	return err
}

// Revive brings ended jobs back to the queue with a clean count and returns how
// many there were.
func (e *Engine) Revive(ctx context.Context, ids []string) (int, error) {
	var back []string
	for _, id := range ids {
		entry, ok, err := e.Get(ctx, id)
		if err != nil {
			return 0, err
		}
		if !ok || !entry.Terminal() {
			continue
		}
		next := entry.Record
		next.State, next.Tries, next.Failures, next.Hash, next.Due = Queued, 0, 0, "", time.Now().UTC()
		if err := e.swap(ctx, &entry, next); err != nil {
			return 0, err
		}
		back = append(back, id)
	}
	return len(back), e.publish(ctx, back)
}
