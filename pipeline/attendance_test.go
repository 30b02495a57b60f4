package pipeline

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/internal/enginetest"
	"github.com/tracesmith/tracesmith/pipeline/engine"
)

func dial(t *testing.T) *engine.Conn {
	t.Helper()
	conn, err := engine.Dial(t.Context(), engine.Cluster{URL: enginetest.NATS(t).ClientURL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// preside is a coordinator of run r that comes in the place of one that is gone.
func preside(t *testing.T, conn *engine.Conn) *engine.Chair {
	t.Helper()
	chair, err := conn.Preside(t.Context(), engine.RunEntry{RunID: "r", Dir: "d", Key: "k", Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(chair.Leave)
	return chair
}

// attend is a worker of run r, and the context of its claims.
func attend(t *testing.T, conn *engine.Conn) (*attendance, context.Context) {
	r := newRun(Config{RunID: "r", LookEvery: 20 * time.Millisecond}, Deps{Cluster: conn}.withDefaults(), "r", plan{})
	claims, end := context.WithCancelCause(t.Context())
	t.Cleanup(func() { end(nil) })
	r.stop, r.drain = end, end
	return &attendance{r: r, w: engine.WorkerEntry{ID: "w", Name: "w"}, moved: time.Now(), over: make(chan struct{})}, claims
}

func (a *attendance) isOver() bool {
	select {
	case <-a.over:
		return true
	default:
		return false
	}
}

// A worker without money waits for the end of its run, and no longer when another
// coordinator has come: that one may have brought some.
func TestANewCoordinatorEndsTheWait(t *testing.T) {
	t.Parallel()
	conn := dial(t)
	told := func(c *engine.Chair) {
		if err := c.Set(t.Context(), engine.Working, nil); err != nil {
			t.Fatal(err)
		}
	}
	killed := preside(t, conn)
	told(killed)
	a, claims := attend(t, conn)
	if !a.look(t.Context(), claims) || a.isOver() {
		t.Fatal("over under the first coordinator")
	}
	killed.Leave()
	told(preside(t, conn))
	if !a.look(t.Context(), claims) || !a.isOver() || claims.Err() != nil {
		t.Errorf("over %v, claims %v", a.isOver(), context.Cause(claims))
	}
}

// A worker that has not read of the budget of its run claims nothing in it, also where
// it came while the coordinator made its plan.
func TestAWorkerThatDoesNotCountClaimsNothing(t *testing.T) {
	t.Parallel()
	conn := dial(t)
	chair := preside(t, conn)
	a, claims := attend(t, conn)
	entered := make(chan bool, 1)
	go func() { entered <- a.enter(t.Context(), claims) }()
	for seen := false; !seen; {
		workers, err := conn.Workers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		seen = len(workers) > 0
	}
	info, err := json.Marshal(FleetInfo{Budgeted: true})
	if err == nil {
		err = chair.Set(t.Context(), engine.Working, info)
	}
	if err != nil {
		t.Fatal(err)
	}
	if !<-entered || claims.Err() == nil || !a.isOver() {
		t.Errorf("claims %v, over %v", claims.Err(), a.isOver())
	}
}
