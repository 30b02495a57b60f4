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

// A coordinator takes the lease from an earlier one at once only if both use the same run
// directory. The key identifies the directory, because two containers may have equal host names
// and paths.
func TestLeaseRunReplacesOnlyTheSameRunDirectory(t *testing.T) {
	t.Parallel()
	conn, err := Dial(t.Context(), Cluster{URL: listen(t, &server.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	leaseRun := func(key string) (*CoordinatorLease, error) {
		return conn.LeaseRun(t.Context(), RunEntry{RunID: "r1", Dir: "/run", Key: key})
	}
	first, err := leaseRun("one")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Release()
	_, err = leaseRun("two")
	locked, ok := errors.AsType[*LockedError](err)
	if !ok || locked.ExitCode() != 9 || !strings.Contains(locked.Error(), "run r1 on nats://127.0.0.1") || !strings.Contains(locked.Hint(), "engine.lease") {
		t.Fatalf("LeaseRun from another directory: %v", err)
	}
	if err := first.SetPhase(t.Context(), Working, nil); err != nil {
		t.Errorf("the first coordinator lost its lease: %v", err)
	}
	next, err := leaseRun("one")
	if err != nil {
		t.Fatalf("LeaseRun from the same directory: %v", err)
	}
	defer next.Release()
	if err := first.SetPhase(t.Context(), Draining, nil); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("the replaced coordinator still has the lease: %v", err)
	}
	<-first.Context().Done() // the next heartbeat notices the loss
	if context.Cause(first.Context()) == nil {
		t.Error("the context ended without a cause")
	}
	if err := next.SetPhase(t.Context(), Stopped, nil); err != nil {
		t.Fatal(err)
	}
	third, err := leaseRun("two")
	if err != nil {
		t.Fatalf("LeaseRun of a stopped run from another directory: %v", err)
	}
	third.Release()
}

// answerGate relays a connection to a server. While it is locked, it holds the answers back.
type answerGate struct{ sync.Mutex }

func (g *answerGate) relay(t *testing.T, server string) (addr string) {
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
		upstream, err := net.Dial("tcp", server)
		if err != nil {
			t.Error(err)
			_ = client.Close()
			return
		}
		go func() {
			_, _ = io.Copy(upstream, client)
			_ = upstream.Close()
		}()
		buf := make([]byte, 64<<10)
		for {
			n, err := upstream.Read(buf)
			if err != nil {
				_ = client.Close()
				return
			}
			g.Lock()
			_, _ = client.Write(buf[:n])
			g.Unlock()
		}
	}()
	return l.Addr().String()
}

// If SetPhase is canceled before the servers answer, the coordinator keeps its lease and can still
// set another phase.
func TestSetPhaseAfterCanceledSetPhase(t *testing.T) {
	t.Parallel()
	url := listen(t, &server.Options{})
	var answers answerGate
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
		r, _, err := watch.RunEntry(t.Context(), "r1")
		if err != nil {
			t.Fatal(err)
		}
		phase = r.Phase
	}
	interrupt()
	if err := <-set; !errors.Is(err, context.Canceled) {
		t.Fatalf("the canceled SetPhase returned %v", err)
	}
	answers.Unlock()
	if err := lease.SetPhase(t.Context(), Stopped, nil); err != nil {
		t.Error(err)
	}
	if r, _, err := watch.RunEntry(t.Context(), "r1"); err != nil || r.Phase != Stopped {
		t.Errorf("in the registry: %s, %v", r.Phase, err)
	}
}
