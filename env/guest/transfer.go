package guest

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tracesmith/tracesmith/env/guest/guestpb"
)

// transfer is something too large for one message, on its way in or out. Its calls come
// one after another.
type transfer struct {
	mu     sync.Mutex
	input  []byte       // INPUT: what arrived so far
	w      io.Writer    // FILE, ARCHIVE on their way in
	finish func() error // makes what arrived take effect
	r      io.Reader    // on its way out
	total  int64        // FILE: its size
	abort  func()       // releases everything; called once, on failure or drop
}

const maxTransfers = 64

// transfers are the transfers under way, by number. Safe for concurrent use.
type transfers struct {
	opening sync.Mutex // held while a transfer is opened; locked before mu
	mu      sync.Mutex
	known   map[uint64]*transfer
}

// push takes the next piece of a transfer, and opens the transfer with the first one.
func (ts *transfers) push(r *guestpb.PushRequest, open func() (*transfer, error)) error {
	if r.Kind == guestpb.Kind_INPUT {
		open = func() (*transfer, error) { return &transfer{abort: func() {}}, nil }
	}
	t, err := ts.open(r.Id, open)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.Kind == guestpb.Kind_INPUT {
		if len(t.input)+len(r.Data) > maxOutput {
			ts.drop(r.Id)
			return fmt.Errorf("input exceeds %d bytes", maxOutput)
		}
		t.input = append(t.input, r.Data...)
		return nil // Run takes it
	}
	if _, err := t.w.Write(r.Data); err != nil {
		ts.drop(r.Id)
		return err
	}
	if !r.Last {
		return nil
	}
	defer ts.forget(r.Id)
	return t.finish()
}

// pull returns the next piece of a transfer, which open opens unless it is known.
func (ts *transfers) pull(id uint64, open func() (*transfer, error)) (*guestpb.PullResponse, error) {
	t, err := ts.open(id, open)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	data, err := io.ReadAll(io.LimitReader(t.r, pieceBytes))
	if err != nil {
		ts.drop(id)
		return nil, err
	}
	eof := len(data) < pieceBytes
	if eof {
		ts.drop(id)
	}
	return &guestpb.PullResponse{Data: data, Eof: eof, Total: t.total}, nil
}

// open returns a transfer, and opens it unless it is known. Only one call opens at a time,
// so that two calls with the same new id do not both open it.
func (ts *transfers) open(id uint64, open func() (*transfer, error)) (*transfer, error) {
	if t, _ := ts.find(id); t != nil {
		return t, nil
	}
	ts.opening.Lock()
	defer ts.opening.Unlock()
	t, n := ts.find(id)
	switch {
	case t != nil:
		return t, nil
	case n >= maxTransfers:
		return nil, fmt.Errorf("more than %d transfers at once", maxTransfers)
	}
	t, err := open()
	if err != nil {
		return nil, err
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.known[id] = t
	return t, nil
}

// find returns a transfer, nil if there is none of that id, and how many there are.
func (ts *transfers) find(id uint64) (t *transfer, n int) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.known[id], len(ts.known)
}

// keep offers data to pull under a new id. The host numbers its transfers from 1, the
// guest uses numbers from 2^63.
func (ts *transfers) keep(data []byte) (uint64, error) {
	id := 1<<63 | rand.Uint64()
	_, err := ts.open(id, func() (*transfer, error) {
		return &transfer{r: bytes.NewReader(data), abort: func() {}}, nil
	})
	return id, err
}

// take removes a transfer and hands it to the caller.
func (ts *transfers) take(id uint64) (*transfer, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t, known := ts.known[id]
	if !known {
		return nil, status.Errorf(codes.InvalidArgument, "no transfer %d", id)
	}
	delete(ts.known, id)
	return t, nil
}

func (ts *transfers) forget(id uint64) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	delete(ts.known, id)
}

func (ts *transfers) drop(id uint64) {
	if t, err := ts.take(id); err == nil {
		t.abort()
	}
}
