package guest

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/containerd/ttrpc"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/guest/guestpb"
)

func TestMain(m *testing.M) {
	MainIfGuest()
	goleak.VerifyTestMain(m)
}

// fakeGuest is a guest whose answers the test sets.
type fakeGuest struct {
	guestpb.GuestService
	hello  guestpb.HelloResponse
	run    func() (*guestpb.RunResponse, error)
	pull   func() (*guestpb.PullResponse, error)
	cancel func() // waits before the answer to Cancel
	walk   *guestpb.WalkResponse
	search *guestpb.SearchResponse
}

func (l *fakeGuest) Hello(context.Context, *guestpb.HelloRequest) (*guestpb.HelloResponse, error) {
	return &l.hello, nil
}
func (l *fakeGuest) Run(context.Context, *guestpb.RunRequest) (*guestpb.RunResponse, error) {
	return l.run()
}
func (l *fakeGuest) Pull(context.Context, *guestpb.PullRequest) (*guestpb.PullResponse, error) {
	return l.pull()
}
func (l *fakeGuest) Drop(context.Context, *guestpb.DropRequest) (*guestpb.Empty, error) {
	return &guestpb.Empty{}, nil
}
func (l *fakeGuest) Cancel(context.Context, *guestpb.CancelRequest) (*guestpb.Empty, error) {
	if l.cancel != nil {
		l.cancel()
	}
	return &guestpb.Empty{}, nil
}

// singleConn is a listener with one connection. Its second Accept waits until ended is closed.
type singleConn struct {
	conn  chan net.Conn
	ended chan struct{}
}

func (l singleConn) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.ended:
		return nil, io.EOF
	}
}
func (l singleConn) Close() error   { return nil }
func (l singleConn) Addr() net.Addr { return &net.UnixAddr{} }

func serveFakeGuest(t *testing.T, l *fakeGuest) net.Conn {
	t.Helper()
	hostEnd, guestEnd := net.Pipe()
	server, err := ttrpc.NewServer()
	if err != nil {
		t.Fatal(err)
	}
	guestpb.RegisterGuestService(server, l)
	lis := singleConn{make(chan net.Conn, 1), make(chan struct{})}
	lis.conn <- guestEnd
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(context.Background(), lis)
	}()
	t.Cleanup(func() {
		_ = guestEnd.Close()
		close(lis.ended)
		<-done
		_ = server.Close()
	})
	return hostEnd
}

func connect(t *testing.T, l *fakeGuest) *Client {
	t.Helper()
	l.hello.Protocol, l.hello.Workdir = protocol, []byte("/w")
	c, err := Connect(t.Context(), serveFakeGuest(t, l), Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Hangup)
	return c
}

func TestInvalidHelloIsRefused(t *testing.T) {
	for want, hello := range map[string]*fakeGuest{
		"protocol 99":   {hello: guestpb.HelloResponse{Protocol: 99, Workdir: []byte("/w")}},
		`"relative"`:    {hello: guestpb.HelloResponse{Protocol: protocol, Workdir: []byte("relative")}},
		"make build":    {hello: guestpb.HelloResponse{Protocol: 99}},
		`its workspace`: {hello: guestpb.HelloResponse{Protocol: protocol}},
	} {
		_, err := Connect(t.Context(), serveFakeGuest(t, hello), Config{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %s: %v", want, err)
		}
	}
}

func TestInvalidRunAnswersAreRefused(t *testing.T) {
	for name, r := range map[string]*guestpb.RunResponse{
		"more than requested": {Output: make([]byte, 100), Total: 100, Head: 100},
		"head too large":      {Output: []byte("abc"), Total: 3, Head: 4},
		"negative head":       {Output: []byte("abc"), Total: 3, Head: -1},
		"total too small":     {Output: []byte("abc"), Total: 1, Head: 3},
	} {
		c := connect(t, &fakeGuest{run: func() (*guestpb.RunResponse, error) { return r, nil }})
		_, err := c.Run(t.Context(), env.Command{Args: []string{"x"}, MaxOutput: 10})
		died, _ := errors.AsType[*env.DiedError](err)
		if died == nil || !died.CausedByCommand {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := c.Stat(t.Context(), "x"); !errors.Is(err, env.ErrSandboxDied) {
			t.Errorf("%s: the next call: %v", name, err)
		}
	}
	c := connect(t, &fakeGuest{run: func() (*guestpb.RunResponse, error) {
		return &guestpb.RunResponse{Limit: "because"}, nil
	}})
	if r, err := c.Run(t.Context(), env.Command{Args: []string{"x"}}); err != nil || r.Limit != "" {
		t.Errorf("unknown limit: %q, %v", r.Limit, err)
	}
}

func TestInvalidPullAnswersAreRefused(t *testing.T) {
	for name, r := range map[string]*guestpb.PullResponse{
		"more than requested": {Data: make([]byte, 100)},
		"never any data":      {},
	} {
		c := connect(t, &fakeGuest{pull: func() (*guestpb.PullResponse, error) { return r, nil }})
		if _, _, err := c.ReadFile(t.Context(), "x", 10); !errors.Is(err, env.ErrSandboxDied) {
			t.Errorf("%s: %v", name, err)
		}
	}
	endless := &fakeGuest{pull: func() (*guestpb.PullResponse, error) {
		return &guestpb.PullResponse{Data: make([]byte, pieceBytes)}, nil
	}}
	c := connect(t, endless)
	c.config.Limits.DiskBytes = 1 << 20
	if err := c.TarOut(t.Context(), "x", io.Discard); err == nil || errors.Is(err, env.ErrSandboxDied) {
		t.Errorf("endless archive: %v", err)
	}
}

func TestGuestErrorsAreTranslated(t *testing.T) {
	for code, want := range map[codes.Code]error{
		codes.NotFound: env.ErrNotExist, codes.OutOfRange: env.ErrNoSpace, codes.InvalidArgument: env.ErrRefused,
		codes.DeadlineExceeded: context.DeadlineExceeded, codes.Unimplemented: env.ErrSandboxDied,
		codes.Code(12345): env.ErrSandboxDied,
	} {
		c := connect(t, &fakeGuest{pull: func() (*guestpb.PullResponse, error) {
			return nil, status.Error(code, "\x1b[31mred\u202e"+strings.Repeat("x", 10_000))
		}})
		_, _, err := c.ReadFile(t.Context(), "x", 10)
		if !errors.Is(err, want) || strings.ContainsAny(err.Error(), "\x1b\u202e") || len(err.Error()) > 1000 {
			t.Errorf("%v: %.100q", code, err)
		}
	}
}

// If a guest never answers, a call ends after its limit plus the grace period, even if the guest
// does not read either.
func TestCallsEndIfTheGuestIsSilent(t *testing.T) {
	for _, reads := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			hostEnd, guestEnd := net.Pipe()
			if reads {
				go func() { _, _ = io.Copy(io.Discard, guestEnd) }()
			}
			began := time.Now()
			_, err := Connect(t.Context(), hostEnd, Config{})
			if took := time.Since(began); !errors.Is(err, env.ErrSandboxDied) || took > helloTimeout+answerGrace {
				t.Errorf("reads %v: %v after %v", reads, err, took)
			}
			_ = guestEnd.Close()
		})
	}
}

// On a busy machine, a guest may need seconds to answer.
func TestASlowGuestIsAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, &fakeGuest{
			run: func() (*guestpb.RunResponse, error) {
				time.Sleep(17 * time.Second) // in the time of the bubble
				return &guestpb.RunResponse{}, nil
			},
			cancel: func() { time.Sleep(13 * time.Second) },
		})
		if _, err := c.Run(t.Context(), env.Command{Args: []string{"x"}, Timeout: time.Second}); err != nil {
			t.Error(err)
		}
	})
}

// FuzzStream sends arbitrary bytes as the answers of a guest.
func FuzzStream(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x00\x00\x00\x02\x00\x00\x00\x01\x02\x00\x0a\x00"))
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x00\x00\x00\x00\x01\x02\x00"))
	f.Add([]byte("\xff\xff\xff\xff\x00\x00\x00\x01\x02\x00"))
	f.Add([]byte("\x00\x00\x00\x08\x00\x00\x00\x01\x02\x00\x12\x06\x08\x01\x12\x02/w"))
	f.Fuzz(func(t *testing.T, input []byte) {
		hostEnd, guestEnd := net.Pipe()
		drained := make(chan struct{})
		go func() {
			defer close(drained)
			_, _ = io.Copy(io.Discard, guestEnd)
		}()
		written := make(chan struct{})
		go func() {
			defer close(written)
			_, _ = guestEnd.Write(input)
			_ = guestEnd.Close()
		}()
		if c, err := Connect(t.Context(), hostEnd, Config{}); err == nil {
			_, _ = c.Run(t.Context(), env.Command{Args: []string{"x"}})
			c.Hangup()
		}
		<-written
		<-drained
	})
}
