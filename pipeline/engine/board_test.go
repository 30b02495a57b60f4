package engine

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// Equal host names and equal paths make no equal run directory: those of two
// containers often are. Its key does.
func TestTheChairIsTakenFromOnesOwnPredecessorOnly(t *testing.T) {
	t.Parallel()
	conn, err := Dial(t.Context(), Cluster{URL: listen(t, &server.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	preside := func(key string) (*Chair, error) {
		return conn.Preside(t.Context(), RunEntry{RunID: "r1", Dir: "/run", Key: key})
	}
	first, err := preside("one")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Leave()
	_, err = preside("two")
	locked, ok := errors.AsType[*LockedError](err)
	if !ok || locked.ExitCode() != 9 || !strings.Contains(locked.Error(), "run r1 on nats://127.0.0.1") || !strings.Contains(locked.Hint(), "engine.lease") {
		t.Fatalf("another directory's process: %v", err)
	}
	if err := first.Set(t.Context(), Working, nil); err != nil {
		t.Errorf("who was there first is out of the chair: %v", err)
	}
	next, err := preside("one")
	if err != nil {
		t.Fatalf("the next process of the same directory: %v", err)
	}
	defer next.Leave()
	if err := first.Set(t.Context(), Draining, nil); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("two are in the chair: %v", err)
	}
	<-first.Context().Done() // its beat finds out
	if context.Cause(first.Context()) == nil {
		t.Error("without a reason")
	}
	if err := next.Set(t.Context(), Stopped, nil); err != nil {
		t.Fatal(err)
	}
	third, err := preside("two")
	if err != nil {
		t.Fatalf("a stopped run is anybody's: %v", err)
	}
	third.Leave()
}
