package guest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tracesmith/tracesmith/env/guest/guestpb"
)

// transfer is one thing too large for a message, on its way in or out. Its calls
// come one after another.
type transfer struct {
	mu     sync.Mutex
	input  []byte       // INPUT: what arrived so far
	w      io.Writer    // FILE, ARCHIVE on their way in
	finish func() error // makes what arrived take effect
	r      io.Reader    // on its way out
	total  int64        // FILE: its size
	abort  func()       // releases everything; called once, on failure or Drop
}

// Push takes the next piece.
func (s *server) Push(_ context.Context, r *guestpb.PushRequest) (*guestpb.Empty, error) {
	if err := s.configured(); err != nil {
		return nil, err
	}
	t, err := s.transfer(r.Id, func() (*transfer, error) {
		switch r.Kind {
		case guestpb.Kind_FILE:
			return s.writeFile(s.path(r.Path), r.Mode)
		case guestpb.Kind_ARCHIVE:
			return unpackInto(s.path(r.Path))
		case guestpb.Kind_INPUT:
			return &transfer{abort: func() {}}, nil
		}
		return nil, fmt.Errorf("cannot push %v", r.Kind)
	})
	if err != nil {
		return nil, fault(err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.Kind == guestpb.Kind_INPUT {
		if len(t.input)+len(r.Data) > maxOutput {
			s.drop(r.Id)
			return nil, status.Errorf(codes.InvalidArgument, "input exceeds %d bytes", maxOutput)
		}
		t.input = append(t.input, r.Data...)
		return &guestpb.Empty{}, nil // Run takes it
	}
	if _, err := t.w.Write(r.Data); err != nil {
		s.drop(r.Id)
		return nil, fault(err)
	}
	if r.Last {
		defer s.forgetTransfer(r.Id)
		if err := t.finish(); err != nil {
			return nil, fault(err)
		}
	}
	return &guestpb.Empty{}, nil
}

// Pull hands out the next piece.
func (s *server) Pull(_ context.Context, r *guestpb.PullRequest) (*guestpb.PullResponse, error) {
	if err := s.configured(); err != nil {
		return nil, err
	}
	t, err := s.transfer(r.Id, func() (*transfer, error) {
		switch r.Kind {
		case guestpb.Kind_FILE:
			return readFile(s.path(r.Path), r.Limit)
		case guestpb.Kind_ARCHIVE:
			return packFrom(s.path(r.Path))
		}
		return nil, fmt.Errorf("no such transfer of %v", r.Kind)
	})
	if err != nil {
		return nil, fault(err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	data, err := io.ReadAll(io.LimitReader(t.r, pieceBytes))
	if err != nil {
		s.drop(r.Id)
		return nil, fault(err)
	}
	eof := len(data) < pieceBytes
	if eof {
		s.drop(r.Id)
	}
	return &guestpb.PullResponse{Data: data, Eof: eof, Total: t.total}, nil
}

// Drop abandons a transfer.
func (s *server) Drop(_ context.Context, r *guestpb.DropRequest) (*guestpb.Empty, error) {
	s.drop(r.Id)
	return &guestpb.Empty{}, nil
}

// transfer finds id or opens it. One call opens at a time: of two with the same new id
// only the first opens it.
func (s *server) transfer(id uint64, open func() (*transfer, error)) (*transfer, error) {
	if t, _ := s.known(id); t != nil {
		return t, nil
	}
	s.opening.Lock()
	defer s.opening.Unlock()
	t, n := s.known(id)
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
	s.mu.Lock()
	defer s.mu.Unlock()
	s.transfers[id] = t
	return t, nil
}

// known returns a transfer, nil if there is none of that id, and how many there are.
func (s *server) known(id uint64) (t *transfer, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.transfers[id], len(s.transfers)
}

// keep offers data to Pull under a new id. The host numbers its transfers from
// 1, the guest uses the upper half.
func (s *server) keep(data []byte) (uint64, error) {
	id := 1<<63 | rand.Uint64()
	_, err := s.transfer(id, func() (*transfer, error) {
		return &transfer{r: bytes.NewReader(data), abort: func() {}}, nil
	})
	return id, err
}

// take removes a transfer and hands it to the caller.
func (s *server) take(id uint64) (*transfer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, known := s.transfers[id]
	if !known {
		return nil, status.Errorf(codes.InvalidArgument, "no transfer %d", id)
	}
	delete(s.transfers, id)
	return t, nil
}

func (s *server) forgetTransfer(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.transfers, id)
}

func (s *server) drop(id uint64) {
	if t, err := s.take(id); err == nil {
		t.abort()
	}
}
