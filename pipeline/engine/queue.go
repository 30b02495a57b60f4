package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

const batchSize = 1000 // messages in one atomic batch: the server's limit

// Enqueue adds jobs that have no record yet and returns how many were new. It
// records and then publishes up to batchSize jobs per atomic batch, because every
// batch costs one synchronous write. The reconciler repairs a crash between the two.
func (e *Engine) Enqueue(ctx context.Context, jobs []Job) (int, error) {
	e.queueing.RLock()
	defer e.queueing.RUnlock()
	known, err := e.Entries(ctx)
	if err != nil {
		return 0, err
	}
	have := make(map[string]bool, len(known))
	for _, k := range known {
		have[k.ID] = true
	}
	var fresh []Job
	for _, j := range jobs {
		if !have[j.ID] {
			have[j.ID] = true
			fresh = append(fresh, j)
		}
	}
	added := 0
	for part := range slices.Chunk(fresh, batchSize) {
		ids, err := e.record(ctx, part)
		if err != nil {
			return added, fmt.Errorf("recording jobs: %w", err)
		}
		if err := e.publish(ctx, ids); err != nil {
			return added, err
		}
		added += len(ids)
	}
	return added, nil
}

// record creates the records of up to batchSize jobs and returns the ids to publish.
func (e *Engine) record(ctx context.Context, jobs []Job) ([]string, error) {
	now := time.Now().UTC()
	var msgs []*nats.Msg
	var ids []string
	for _, j := range jobs {
		rec := Record{State: Queued, Data: j.Data, Enqueued: now, Due: now}
		if len(j.Data) > maxPart {
			rec.Data, rec.Body = nil, "job-"+j.ID
			if err := e.PutBody(ctx, rec.Body, j.Data); err != nil {
				return nil, err
			}
		}
		body, err := json.Marshal(rec)
		if err != nil {
			return nil, fmt.Errorf("encoding job %s: %w", j.ID, err)
		}
		msg := nats.NewMsg("$KV.EPISODES_" + e.opt.RunID + "." + j.ID)
		msg.Header.Set(jetstream.ExpectedLastSubjSeqHeader, "0")
		msg.Data = body
		msgs, ids = append(msgs, msg), append(ids, j.ID)
	}
	err := e.call(ctx, "creating records", func(ctx context.Context) error {
		_, err := e.batch(ctx, msgs)
		return err
	})
	if !conflict(err) {
		return ids, err
	}
	// Some records exist: an earlier try without an answer created them, or another
	// process did. Jobs that were never delivered still have to be published.
	ids = ids[:0]
	for i, j := range jobs {
		publish, err := e.create(ctx, j.ID, msgs[i].Data)
		if err != nil {
			return nil, err
		}
		if publish {
			ids = append(ids, j.ID)
		}
	}
	return ids, nil
}

// create creates one record. publish is false if the record exists and its job was
// already delivered.
func (e *Engine) create(ctx context.Context, id string, body []byte) (publish bool, err error) {
	err = e.call(ctx, "creating a record", func(ctx context.Context) error {
		_, err := e.kv.Create(ctx, id, body)
		return err
	})
	if !conflict(err) {
		return err == nil, err
	}
	entry, ok, err := e.Get(ctx, id)
	return ok && entry.State == Queued && entry.Delivery == 0, err
}

// publish puts messages for ids on the queue, in atomic batches. A job that has a message gets no
// second one: an earlier try without an answer may have stored it.
func (e *Engine) publish(ctx context.Context, ids []string) error {
	for part := range slices.Chunk(ids, batchSize) {
		err := e.publishBatch(ctx, part)
		if conflict(err) && len(part) > 1 {
			err = nil
			for i := 0; i < len(part) && (err == nil || conflict(err)); i++ {
				err = e.publishBatch(ctx, part[i:i+1])
			}
		}
		if err != nil && !conflict(err) {
			return err
		}
	}
	return nil
}

// publishBatch puts one message per job on the queue, or none if any of the jobs has a message.
func (e *Engine) publishBatch(ctx context.Context, ids []string) error {
	return e.call(ctx, "publishing jobs", func(ctx context.Context) error {
		msgs := make([]*nats.Msg, len(ids))
		for i, id := range ids {
			msgs[i] = nats.NewMsg(e.taskSubject(id))
			msgs[i].Header.Set(jetstream.ExpectedLastSubjSeqHeader, "0")
		}
		_, err := e.batch(ctx, msgs)
		return err
	})
}

// batch atomically publishes up to batchSize messages to one stream and returns the
// sequence of the last one.
func (e *Engine) batch(ctx context.Context, msgs []*nats.Msg) (last uint64, err error) {
	id := nuid.Next()
	for i, msg := range msgs {
		if len(msgs) > 1 {
			msg.Header.Set("Nats-Batch-Id", id)
			msg.Header.Set("Nats-Batch-Sequence", strconv.Itoa(i+1))
		}
		if i < len(msgs)-1 {
			if err := e.nc.PublishMsg(msg); err != nil {
				return 0, fmt.Errorf("publishing: %w", err)
			}
			continue
		}
		if len(msgs) > 1 {
			msg.Header.Set("Nats-Batch-Commit", "1")
		}
		resp, err := e.nc.RequestMsgWithContext(ctx, msg)
		if err != nil {
			return 0, fmt.Errorf("committing batch: %w", err)
		}
		var ack struct {
			Seq   uint64              `json:"seq"`
			Error *jetstream.APIError `json:"error"`
		}
		if err := json.Unmarshal(resp.Data, &ack); err != nil {
			return 0, fmt.Errorf("reading batch acknowledgement: %w", err)
		}
		if ack.Error != nil {
			return 0, fmt.Errorf("batch refused: %w", ack.Error)
		}
		last = ack.Seq
	}
	return last, nil
}

// Next waits for a job, claims it for owner and returns its lease. It returns the
// cause of ctx if ctx ends first, and a *DiskFullError, without claiming a job, if the
// disk has too little free space.
func (e *Engine) Next(ctx context.Context, owner string) (*Lease, error) {
	for {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		if err := e.checkSpace(nil); err != nil {
			return nil, err
		}
		msg, err := e.pull(ctx)
		if err != nil {
			return nil, err
		}
		if msg == nil {
			continue
		}
		lease, err := e.accept(ctx, msg, owner)
		if err != nil || lease != nil {
			return lease, err
		}
	}
}

// accept claims a pulled message. If ctx has ended by then, accept requeues the job at once:
// without an answer, the queue would redeliver the message only after AckWait.
func (e *Engine) accept(ctx context.Context, msg jetstream.Msg, owner string) (*Lease, error) {
	settleCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.opt.AckWait)
	defer cancel()
	lease, err := e.claim(settleCtx, msg, owner)
	if err == nil && lease != nil && ctx.Err() != nil {
		return nil, cmp.Or(lease.Release(settleCtx), context.Cause(ctx))
	}
	return lease, err
}

// pull fetches one message; nil if none arrived within the poll interval.
func (e *Engine) pull(ctx context.Context) (jetstream.Msg, error) {
	wait, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	batch, err := e.workers.Fetch(1, jetstream.FetchContext(wait))
	if err != nil {
		return nil, e.pullError(ctx, err)
	}
	for msg := range batch.Messages() {
		return msg, nil
	}
	return nil, e.pullError(ctx, batch.Error())
}

// pullError interprets the error of an empty pull; nil means that the pull can be repeated.
func (e *Engine) pullError(ctx context.Context, err error) error {
	switch {
	case err == nil, ctx.Err() != nil, errors.Is(err, context.Canceled):
		return nil
	case errors.Is(err, jetstream.ErrConsumerDeleted), errors.Is(err, jetstream.ErrConsumerNotFound):
		if e.opt.Join { // the coordinator recreates the consumer, or has ended the run
			_ = Pause(ctx, time.Second)
			return nil
		}
		return e.createConsumer(ctx, false)
	case transient(err):
		if e.opt.Conn != nil {
			_ = Pause(ctx, 250*time.Millisecond)
			return e.accessRefused()
		}
		return nil
	}
	if denied := e.accessRefused(); denied != nil {
		return denied
	}
	return fmt.Errorf("pulling a job: %w", err)
}

// accessRefused returns an *AccessError if the servers closed the connection.
func (e *Engine) accessRefused() error {
	if e.refused == nil {
		return nil
	}
	return e.refused()
}

// claim turns a message into a lease. If there is nothing to do, it settles the
// message and returns nil.
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
	case entry.State == Running && now.Before(entry.LeaseEnd):
		// A worker still holds the job: its renewals of the message were lost, or this is a
		// second message for the job. Check again when the lease has expired.
		return nil, e.giveBack(msg, min(entry.LeaseEnd.Sub(now), e.opt.AckWait))
	}
	next := entry.Record
	if next.State == Running {
		next.recordFailure("", "lease_expired", "the worker stopped renewing its lease", now, now, e.opt.MaxDeliver)
	}
	if next.State == Dead || next.exhausted(e.opt.MaxDeliver) {
		next.State = Dead
		if err := e.swap(ctx, &entry, next); err != nil && !errors.Is(err, ErrLeaseLost) {
			return nil, err
		}
		return nil, e.ack(ctx, msg)
	}
	next.State, next.Owner, next.LeaseEnd = Running, e.instance+"/"+owner, now.Add(e.opt.AckWait)
	next.Delivery++
	next.Tries++
	if next.FirstAt.IsZero() {
		next.FirstAt = now
	}
	if err := e.swap(ctx, &entry, next); errors.Is(err, ErrLeaseLost) {
		// Another process changed the record: check again after the delay.
		return nil, e.giveBack(msg, time.Second)
	} else if err != nil {
		return nil, err
	}
	data := entry.Data
	if entry.Body != "" {
		if data, err = e.GetBody(ctx, entry.Body); err != nil {
			return nil, err
		}
	}
	return e.newLease(msg, entry, data), nil
}

// giveBack returns a message to the queue for redelivery after a delay.
func (e *Engine) giveBack(msg jetstream.Msg, after time.Duration) error {
	if err := msg.NakWithDelay(after); err != nil {
		return fmt.Errorf("returning a job: %w", err)
	}
	return nil
}

// ack removes a message from the queue and waits for the server's confirmation.
func (e *Engine) ack(ctx context.Context, msg jetstream.Msg) error {
	err := e.call(ctx, "acknowledging a job", func(ctx context.Context) error {
		tryCtx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		return msg.DoubleAck(tryCtx)
	})
	if errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
		return nil
	}
	return err
}

// Revive requeues the given jobs that are done or dead, resets their counts of tries and
// failures, and returns how many jobs it requeued.
func (e *Engine) Revive(ctx context.Context, ids []string) (int, error) {
	e.queueing.RLock()
	defer e.queueing.RUnlock()
	var revived []string
	for _, id := range ids {
		entry, ok, err := e.Get(ctx, id)
		if err != nil {
			return 0, err
		}
		if !ok || !entry.Terminal() {
			continue
		}
		next := entry.Record
		next.State, next.Tries, next.Failures, next.Hash, next.Result, next.Due = Queued, 0, 0, "", nil, time.Now().UTC()
		if err := e.swap(ctx, &entry, next); err != nil {
			return 0, err
		}
		revived = append(revived, id)
	}
	return len(revived), e.publish(ctx, revived)
}
