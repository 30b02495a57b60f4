package engine

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// follow calls show with the messages of a stream and their sequence numbers, in
// order, starting at from. When it has shown every message, it ends if more returns
// false and waits for new messages otherwise. If the server or the consumer is lost,
// it resumes after the last message shown.
func (c caller) follow(ctx context.Context, s jetstream.Stream, from uint64, show func(m jetstream.Msg, seq uint64) error, more func() bool) error {
	answered := time.Now() // when the servers last answered
	for {
		done, err := c.followOnce(ctx, s, &from, &answered, show, more)
		if done || err != nil && !transient(err) && !consumerGone(err) {
			return err
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if time.Since(answered) >= max(c.patience, 3*c.timeout) {
			return &StuckError{Op: "listing " + s.CachedInfo().Config.Name, Place: c.place, Err: err}
		}
		if err := Pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// consumerGone reports whether following needs a new consumer.
func consumerGone(err error) bool {
	return errors.Is(err, jetstream.ErrConsumerDeleted) || errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, errSkipped)
}

var errSkipped = errors.New("messages were lost in transit")

// pageSize is the number of messages of one fetch.
const pageSize = 2000

// followOnce follows with one consumer. It updates from and answered. done is false if follow
// must continue with a new consumer.
func (c caller) followOnce(ctx context.Context, s jetstream.Stream, from *uint64, answered *time.Time, show func(jetstream.Msg, uint64) error, more func() bool) (done bool, err error) {
	var cons jetstream.Consumer
	err = c.call(ctx, "listing a stream", func(ctx context.Context) (err error) {
		cons, err = s.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
			AckPolicy: jetstream.AckNonePolicy, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: max(*from, 1),
			InactiveThreshold: time.Minute, MemoryStorage: true, Replicas: 1,
		})
		return err
	})
	if err != nil {
		return false, err
	}
	*answered = time.Now()
	defer func() {
		deleteCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = s.DeleteConsumer(deleteCtx, cons.CachedInfo().Name) // otherwise the server deletes it after InactiveThreshold
	}()
	if cons.CachedInfo().NumPending == 0 && !more() {
		return true, nil
	}
	for next := uint64(1); ; {
		wait, cancel := context.WithTimeout(ctx, c.timeout)
		batch, err := cons.Fetch(pageSize, jetstream.FetchContext(wait))
		if err != nil {
			cancel()
			return false, err
		}
		received := false
		for m := range batch.Messages() {
			meta, metaErr := m.Metadata()
			if metaErr != nil || meta.Sequence.Consumer != next {
				err = errors.Join(metaErr, errSkipped)
				break
			}
			if err = show(m, meta.Sequence.Stream); err != nil {
				cancel()
				return true, err
			}
			*from, received, next = meta.Sequence.Stream+1, true, next+1
			if meta.NumPending == 0 && !more() {
				cancel()
				return true, nil
			}
		}
		cancel()
		if received {
			*answered = time.Now()
		}
		if err == nil {
			err = batch.Error()
		}
		switch {
		case ctx.Err() != nil:
			return true, context.Cause(ctx)
		case err != nil && !errors.Is(err, context.DeadlineExceeded):
			return false, err
		case received:
			continue
		}
		info, err := cons.Info(ctx)
		if err != nil {
			return false, err
		}
		*answered = time.Now()
		if info.NumPending == 0 && !more() {
			return true, nil
		}
	}
}
