package engine

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Book is what the processes of a run on a cluster agree on beside its jobs: one
// page that is moved by compare-and-swap, and leaves that change together with it.
// Its methods may be called from several goroutines.
type Book struct {
	caller
	e      *Engine
	prefix string
	kv     jetstream.KeyValue
}

// page is the key that is moved by compare-and-swap.
const page = "page"

// headers is room for those of a message.
const headers = 1 << 10

func bookOf(runID string) string { return "BUDGET_" + runID }

// OpenBook opens the book of the run, or makes one; without either it is nil.
func (e *Engine) OpenBook(ctx context.Context, create bool) (*Book, error) {
	b := &Book{caller: e.caller, e: e, prefix: "$KV." + bookOf(e.opt.RunID) + "."}
	var err error
	if create {
		b.kv, err = bucket(ctx, e.caller, e.js, bookOf(e.opt.RunID), e.replicas(), 0, false)
	} else if err = b.open(ctx, nil); errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil, nil
	}
	return b, err
}

// JoinBook opens a book that is known to be there.
func (e *Engine) JoinBook(ctx context.Context) (*Book, error) {
	b := &Book{caller: e.caller, e: e, prefix: "$KV." + bookOf(e.opt.RunID) + "."}
	return b, b.open(ctx, errNotYet)
}

// open opens the bucket; absent is the reading of its absence.
func (b *Book) open(ctx context.Context, absent error) error {
	return b.call(ctx, "opening the book of the run", func(ctx context.Context) (err error) {
		if b.kv, err = b.e.js.KeyValue(ctx, bookOf(b.e.opt.RunID)); errors.Is(err, jetstream.ErrBucketNotFound) {
			return errors.Join(err, absent)
		}
		return err
	})
}

// Book opens the book of a run without joining it; nil where there is none.
func (c *Conn) Book(ctx context.Context, runID string) (*Book, error) {
	e := &Engine{caller: c.caller, opt: Options{RunID: runID, Conn: c}, nc: c.nc, js: c.js}
	return e.OpenBook(ctx, false)
}

// Page returns the page and its revision; revision 0 where it is empty yet.
func (b *Book) Page(ctx context.Context) (body []byte, revision uint64, err error) {
	return b.read(ctx, page)
}

// Leaf returns a leaf; nil where it was never written.
func (b *Book) Leaf(ctx context.Context, name string) ([]byte, error) {
	body, _, err := b.read(ctx, name)
	return body, err
}

func (b *Book) read(ctx context.Context, key string) (body []byte, revision uint64, err error) {
	err = b.call(ctx, "reading the book of the run", func(ctx context.Context) error {
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

// Put writes leaves before there is a page. Each is written at least once.
func (b *Book) Put(ctx context.Context, leaves map[string][]byte) error {
	var msgs []*nats.Msg
	for name, body := range leaves {
		msgs = append(msgs, b.message(name, body))
	}
	for part := range slices.Chunk(msgs, batchSize) {
		if err := b.call(ctx, "writing the book of the run", func(ctx context.Context) error {
			_, err := b.e.batch(ctx, part)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// Turn replaces the page, and with it the leaves, all or none, and returns the
// new revision. ok is false where the page is not that of revision any more. Two
// pages must not be equal.
func (b *Book) Turn(ctx context.Context, body []byte, revision uint64, leaves map[string][]byte) (next uint64, ok bool, err error) {
	var msgs []*nats.Msg
	for name, leaf := range leaves {
		msgs = append(msgs, b.message(name, leaf))
	}
	if limit := b.e.nc.MaxPayload() - headers; int64(len(body)) > limit {
		return 0, false, &FullBookError{Size: int64(len(body)), Limit: limit}
	}
	head := b.message(page, body) // the last of a batch: its acknowledgement tells the revision
	head.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(revision, 10))
	msgs = append(msgs, head)
	err = b.call(ctx, "writing the book of the run", func(ctx context.Context) (err error) {
		next, err = b.e.batch(ctx, msgs)
		return err
	})
	if !conflict(err) {
		return next, err == nil, err
	}
	// A try that got no answer may have been carried out.
	stored, next, err := b.Page(ctx)
	return next, err == nil && string(stored) == string(body), err
}

func (b *Book) message(key string, body []byte) *nats.Msg {
	msg := nats.NewMsg(b.prefix + key)
	msg.Data = body
	return msg
}
