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

// memoryTape is a tape in memory whose Record returns err.
type memoryTape struct {
	seen []string
	err  error
}

func (s *memoryTape) Record(ex llms.Exchange) error {
	s.seen = append(s.seen, fmt.Sprintf("%s %d %s %s", ex.Request, ex.Status, ex.Failure, ex.Response))
	return s.err
}

// flakyClient fails the given number of times and then succeeds. Its responses have raw bytes.
type flakyClient struct {
	failures int
	calls    int
}

func (*flakyClient) Provider() string { return "p" }
func (*flakyClient) Model() string    { return "m" }
func (s *flakyClient) Chat(context.Context, llms.Request) (llms.Response, error) {
	if s.calls++; s.calls <= s.failures {
		return llms.Response{Request: []byte("asked"), Raw: []byte("boom"), Status: 500}, &llms.Error{Class: llms.ClassServer, Status: 500}
	}
	return llms.Response{Request: []byte("asked"), Raw: []byte("fine"), Status: 200}, nil
}

func TestEveryAttemptIsRecorded(t *testing.T) {
	c, err := middle.Wrap([]middle.Endpoint{{Client: &flakyClient{failures: 2}}}, middle.Config{Retry: middle.RetryConfig{Initial: 1}})
	if err != nil {
		t.Fatal(err)
	}
	tape := &memoryTape{}
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

// If the tape cannot record an exchange, the caller gets the tape's error unchanged and
// the call is not retried.
func TestTapeErrorIsReturned(t *testing.T) {
	model := &flakyClient{}
	c, err := middle.Wrap([]middle.Endpoint{{Client: model}}, middle.Config{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Chat(llms.WithTape(t.Context(), &memoryTape{err: fmt.Errorf("writing: %w", syscall.ENOSPC)}), llms.Request{})
	if !errors.Is(err, syscall.ENOSPC) || model.calls != 1 {
		t.Errorf("%d calls, %v", model.calls, err)
	}
}
