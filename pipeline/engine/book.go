package engine

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Book is shared state of the processes of a run on a cluster: one page, replaced by
// compare-and-swap, and leaves, which are written in the same batch as the page. Its
// methods are safe for concurrent use.
type Book struct {
	caller
	e      *Engine
	prefix string
	kv     jetstream.KeyValue
}

// page is the key of the page.
const page = "page"

// headers is the space reserved for the headers of a message, in bytes.
const headers = 1 << 10

func bookOf(runID string) string { return "BUDGET_" + runID }

// OpenBook opens the book of the run. Without one, it creates it or returns nil.
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

// JoinBook opens a book that is known to exist.
func (e *Engine) JoinBook(ctx context.Context) (*Book, error) {
	b := &Book{caller: e.caller, e: e, prefix: "$KV." + bookOf(e.opt.RunID) + "."}
	return b, b.open(ctx, errNotYet)
}

// open opens the bucket; absent is joined to the error if there is none.
func (b *Book) open(ctx context.Context, absent error) error {
	return b.call(ctx, "opening the book of the run", func(ctx context.Context) (err error) {
		if b.kv, err = b.e.js.KeyValue(ctx, bookOf(b.e.opt.RunID)); errors.Is(err, jetstream.ErrBucketNotFound) {
			return errors.Join(err, absent)
		}
		return err
	})
}

// Book opens the book of a run without joining the run; nil if there is none.
func (c *Conn) Book(ctx context.Context, runID string) (*Book, error) {
	e := &Engine{caller: c.caller, opt: Options{RunID: runID, Conn: c}, nc: c.nc, js: c.js}
	return e.OpenBook(ctx, false)
}

// Page returns the page and its revision; revision 0 means that no page was written.
func (b *Book) Page(ctx context.Context) (body []byte, revision uint64, err error) {
	return b.read(ctx, page)
}

// Leaf returns a leaf; nil if it was never written.
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

// Put writes leaves before the first page. After an error, some may be written.
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

// Turn atomically replaces the page and writes leaves, and returns the new revision.
// ok is false if the page no longer has the given revision. Successive pages must
// differ.
func (b *Book) Turn(ctx context.Context, body []byte, revision uint64, leaves map[string][]byte) (next uint64, ok bool, err error) {
	var msgs []*nats.Msg
	for name, leaf := range leaves {
		msgs = append(msgs, b.message(name, leaf))
	}
	if limit := b.e.nc.MaxPayload() - headers; int64(len(body)) > limit {
		return 0, false, &FullBookError{Size: int64(len(body)), Limit: limit}
	}
	head := b.message(page, body) // last in the batch, so that the acknowledgement has its revision
	head.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(revision, 10))
	msgs = append(msgs, head)
	err = b.call(ctx, "writing the book of the run", func(ctx context.Context) (err error) {
		next, err = b.e.batch(ctx, msgs)
		return err
	})
	if !conflict(err) {
		return next, err == nil, err
	}
	// An earlier try without an answer may have succeeded.
	stored, next, err := b.Page(ctx)
	return next, err == nil && string(stored) == string(body), err
}

func (b *Book) message(key string, body []byte) *nats.Msg {
	msg := nats.NewMsg(b.prefix + key)
	msg.Data = body
	return msg
}
