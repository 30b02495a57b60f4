package engine

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// Run directories with equal host names and paths, as in two containers, may differ: only an equal
// key makes them the same.
func TestOnlyItsOwnPredecessorLosesTheCoordinatorLease(t *testing.T) {
	t.Parallel()
	conn, err := Dial(t.Context(), Cluster{URL: listen(t, &server.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	preside := func(key string) (*CoordinatorLease, error) {
		return conn.LeaseRun(t.Context(), RunEntry{RunID: "r1", Dir: "/run", Key: key})
	}
	first, err := preside("one")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Release()
	_, err = preside("two")
	locked, ok := errors.AsType[*LockedError](err)
	if !ok || locked.ExitCode() != 9 || !strings.Contains(locked.Error(), "run r1 on nats://127.0.0.1") || !strings.Contains(locked.Hint(), "engine.lease") {
		t.Fatalf("another directory's process: %v", err)
	}
	if err := first.SetPhase(t.Context(), Working, nil); err != nil {
		t.Errorf("the first coordinator has lost its lease: %v", err)
	}
	next, err := preside("one")
	if err != nil {
		t.Fatalf("the next process of the same directory: %v", err)
	}
	defer next.Release()
	if err := first.SetPhase(t.Context(), Draining, nil); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("two coordinators have the lease: %v", err)
	}
	<-first.Context().Done() // its beat finds out
	if context.Cause(first.Context()) == nil {
		t.Error("without a reason")
	}
	if err := next.SetPhase(t.Context(), Stopped, nil); err != nil {
		t.Fatal(err)
	}
	third, err := preside("two")
	if err != nil {
		t.Fatalf("a stopped run is anybody's: %v", err)
	}
	third.Release()
}

// holding relays connections to a server, whose answers it holds back while it is locked.
type holding struct{ sync.Mutex }

func (h *holding) relay(t *testing.T, server string) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		client, err := l.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", server)
		if err != nil {
			t.Error(err)
			_ = client.Close()
			return
		}
		go func() {
			_, _ = io.Copy(far, client)
			_ = far.Close()
		}()
		buf := make([]byte, 64<<10)
		for {
			n, err := far.Read(buf)
			if err != nil {
				_ = client.Close()
				return
			}
			h.Lock()
			_, _ = client.Write(buf[:n])
			h.Unlock()
		}
	}()
	return l.Addr().String()
}

// An interrupt between a new phase and the answer to it leaves the lease to its holder,
// who can still tell the workers that the run has stopped.
func TestAnInterruptedPhaseIsFollowedByAnother(t *testing.T) {
	t.Parallel()
	url := listen(t, &server.Options{})
	var answers holding
	conn, err := Dial(t.Context(), Cluster{URL: "nats://" + answers.relay(t, strings.TrimPrefix(url, "nats://"))})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	watch, err := Dial(t.Context(), Cluster{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = watch.Close() }()
	lease, err := conn.LeaseRun(t.Context(), RunEntry{RunID: "r1", Dir: "/run", Key: "one"})
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Release()

	ctx, interrupt := context.WithCancel(t.Context())
	set := make(chan error, 1)
	answers.Lock()
	go func() { set <- lease.SetPhase(ctx, Working, nil) }()
	for phase := Planning; phase != Working; {
		r, _, err := watch.Run(t.Context(), "r1")
		if err != nil {
			t.Fatal(err)
		}
		phase = r.Phase
	}
	interrupt()
	if err := <-set; !errors.Is(err, context.Canceled) {
		t.Fatalf("interrupted: %v", err)
	}
	answers.Unlock()
	if err := lease.SetPhase(t.Context(), Stopped, nil); err != nil {
		t.Error(err)
	}
	if r, _, err := watch.Run(t.Context(), "r1"); err != nil || r.Phase != Stopped {
		t.Errorf("in the registry: %s, %v", r.Phase, err)
	}
}
