package engine

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// BudgetStore holds the budget that the processes of a run on a cluster share: one state,
// which they replace by compare-and-swap, and totals that change together with it. Its
// methods may be called from several goroutines.
type BudgetStore struct {
	caller
	e      *Engine
	prefix string
	kv     jetstream.KeyValue
}

const stateKey = "page"

// headerRoom is the number of bytes kept free for the headers of a message.
const headerRoom = 1 << 10

func budgetBucket(runID string) string { return "BUDGET_" + runID }

// OpenBudget opens the budget of the run. If there is none, it creates one if create is true, and
// returns nil otherwise.
func (e *Engine) OpenBudget(ctx context.Context, create bool) (*BudgetStore, error) {
	b := &BudgetStore{caller: e.caller, e: e, prefix: "$KV." + budgetBucket(e.opt.RunID) + "."}
	var err error
	if create {
		b.kv, err = bucket(ctx, e.caller, e.js, budgetBucket(e.opt.RunID), e.replicas(), 0, false)
	} else if err = b.open(ctx, nil); errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil, nil
	}
	return b, err
}

// JoinBudget opens a budget that the coordinator has created.
func (e *Engine) JoinBudget(ctx context.Context) (*BudgetStore, error) {
	b := &BudgetStore{caller: e.caller, e: e, prefix: "$KV." + budgetBucket(e.opt.RunID) + "."}
	return b, b.open(ctx, errNotYet)
}

// open opens the bucket. If it is missing, the error includes absent.
func (b *BudgetStore) open(ctx context.Context, absent error) error {
	return b.call(ctx, "opening the budget of the run", func(ctx context.Context) (err error) {
		if b.kv, err = b.e.js.KeyValue(ctx, budgetBucket(b.e.opt.RunID)); errors.Is(err, jetstream.ErrBucketNotFound) {
			return errors.Join(err, absent)
		}
		return err
	})
}

// Budget opens the budget of a run without joining the run. It is nil if there is none.
func (c *Conn) Budget(ctx context.Context, runID string) (*BudgetStore, error) {
	e := &Engine{caller: c.caller, opt: Options{RunID: runID, Conn: c}, nc: c.nc, js: c.js}
	return e.OpenBudget(ctx, false)
}

// State returns the state and its revision, which is 0 before the first state is written.
func (b *BudgetStore) State(ctx context.Context) (body []byte, revision uint64, err error) {
	return b.read(ctx, stateKey)
}

// Total returns a total. It is nil if it was never written.
func (b *BudgetStore) Total(ctx context.Context, key string) ([]byte, error) {
	body, _, err := b.read(ctx, key)
	return body, err
}

func (b *BudgetStore) read(ctx context.Context, key string) (body []byte, revision uint64, err error) {
	err = b.call(ctx, "reading the budget of the run", func(ctx context.Context) error {
		kve, err := b.kv.Get(ctx, key)
		if err == nil {
			body, revision = kve.Value(), kve.Revision()
		}
		return err
	})
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, 0, nil
	}
	return body, revision, err
}

// PutTotals writes totals before the first state is written. It is not atomic, and retries may
// write a total more than once.
func (b *BudgetStore) PutTotals(ctx context.Context, totals map[string][]byte) error {
	var msgs []*nats.Msg
	for key, body := range totals {
		msgs = append(msgs, b.message(key, body))
	}
	for part := range slices.Chunk(msgs, batchSize) {
		if err := b.call(ctx, "writing the budget of the run", func(ctx context.Context) error {
			_, err := b.e.batch(ctx, part)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// Replace atomically replaces the state together with totals, and returns the new revision. ok
// is false if the state no longer has the given revision. Every state must be different, so that
// Replace recognizes its own state after a try without an answer.
func (b *BudgetStore) Replace(ctx context.Context, state []byte, revision uint64, totals map[string][]byte) (next uint64, ok bool, err error) {
	var msgs []*nats.Msg
	for key, body := range totals {
		msgs = append(msgs, b.message(key, body))
	}
	if limit := b.e.nc.MaxPayload() - headerRoom; int64(len(state)) > limit {
		return 0, false, &FullBudgetError{Size: int64(len(state)), Limit: limit}
	}
	last := b.message(stateKey, state) // the acknowledgement of a batch has the revision of its last message
	last.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(revision, 10))
	msgs = append(msgs, last)
	err = b.call(ctx, "writing the budget of the run", func(ctx context.Context) (err error) {
		next, err = b.e.batch(ctx, msgs)
		return err
	})
	if !conflict(err) {
		return next, err == nil, err
	}
	// An attempt that got no answer may have succeeded.
	stored, next, err := b.State(ctx)
	return next, err == nil && string(stored) == string(state), err
}

func (b *BudgetStore) message(key string, body []byte) *nats.Msg {
	msg := nats.NewMsg(b.prefix + key)
	msg.Data = body
	return msg
}
