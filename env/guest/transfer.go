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

// transfer is data that takes several messages, from or to the host. The host sends the calls
// of a transfer one after another.
type transfer struct {
	mu     sync.Mutex
	input  []byte       // INPUT: the data received so far
	w      io.Writer    // FILE and ARCHIVE from the host: receives the data
	finish func() error // completes a transfer from the host
	r      io.Reader    // to the host: the source of the data
	total  int64        // FILE to the host: the size of the file
	abort  func()       // releases everything; called once, after a failure or by drop
}

const maxTransfers = 64

// transfers holds the transfers in progress. Safe for concurrent use.
type transfers struct {
	opening sync.Mutex // held while a transfer is opened; locked before mu
	mu      sync.Mutex
	known   map[uint64]*transfer // by id
}

// push receives the next piece of a transfer. The first piece opens the transfer.
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
		return nil // Run takes the data later
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

// pull returns the next piece of a transfer. The first call opens the transfer with open.
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

// open returns the transfer with an id, and opens it if it does not exist. Only one call can
// open a transfer at a time, so that two calls with the same new id do not both open it.
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

// find returns the transfer with an id, or nil, and the number of all transfers.
func (ts *transfers) find(id uint64) (t *transfer, n int) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.known[id], len(ts.known)
}

// keep makes data available to pull under a new id. The ids of the host start at 1, and those
// of the guest at 2^63.
func (ts *transfers) keep(data []byte) (uint64, error) {
	id := 1<<63 | rand.Uint64()
	_, err := ts.open(id, func() (*transfer, error) {
		return &transfer{r: bytes.NewReader(data), abort: func() {}}, nil
	})
	return id, err
}

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
