package middle_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/middle"
	"github.com/tracesmith/tracesmith/schemas"
)

// shelf is a tape in memory, which may be full.
type shelf struct {
	seen []string
	err  error
}

func (s *shelf) Keep(ex llms.Exchange) error {
	s.seen = append(s.seen, fmt.Sprintf("%s %d %s %s", ex.Request, ex.Status, ex.Failure, ex.Response))
	return s.err
}

// speaking answers with bytes: failing ones first.
type speaking struct {
	failures int
	calls    int
}

func (*speaking) Provider() string { return "p" }
func (*speaking) Model() string    { return "m" }
func (s *speaking) Chat(context.Context, llms.Request) (llms.Response, error) {
	if s.calls++; s.calls <= s.failures {
		return llms.Response{Request: []byte("asked"), Raw: []byte("boom"), Status: 500}, &llms.Error{Class: llms.ClassServer, Status: 500}
	}
	return llms.Response{Request: []byte("asked"), Raw: []byte("fine"), Status: 200}, nil
}

func TestEveryTryIsKept(t *testing.T) {
	c, err := middle.Wrap([]middle.Endpoint{{Client: &speaking{failures: 2}}}, middle.Config{Retry: middle.RetryConfig{Initial: 1}})
	if err != nil {
		t.Fatal(err)
	}
	tape := &shelf{}
	resp, err := c.Chat(llms.WithTape(t.Context(), tape), llms.Request{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"asked 500 server boom", "asked 500 server boom", "asked 200  fine"}, tape.seen); diff != "" {
		t.Error(diff)
	}
	if resp.Reply.RequestSHA256 != schemas.HashBytes([]byte("asked")) || resp.Reply.ResponseSHA256 != schemas.HashBytes([]byte("fine")) {
		t.Errorf("hashes %+v", resp.Reply)
	}
}

// What cannot be kept is nobody's answer: the error goes up as it is, and
// nothing is asked again.
func TestFullTapeIsAnError(t *testing.T) {
	model := &speaking{}
	c, err := middle.Wrap([]middle.Endpoint{{Client: model}}, middle.Config{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Chat(llms.WithTape(t.Context(), &shelf{err: fmt.Errorf("writing: %w", syscall.ENOSPC)}), llms.Request{})
	if !errors.Is(err, syscall.ENOSPC) || model.calls != 1 {
		t.Errorf("%d calls, %v", model.calls, err)
	}
}
