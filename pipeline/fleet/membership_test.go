package fleet

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/internal/enginetest"
	"github.com/tracesmith/tracesmith/pipeline"
	"github.com/tracesmith/tracesmith/pipeline/budget"
	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/pipeline/observe"
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

// leaseRun returns the lease of a coordinator of run r. It replaces an earlier lease.
func leaseRun(t *testing.T, conn *engine.Conn) *engine.CoordinatorLease {
	t.Helper()
	held, err := conn.LeaseRun(t.Context(), engine.RunEntry{RunID: "r", Dir: "d", Key: "k", Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(held.Release)
	return held
}

// newMember returns the membership of a worker of run r, and the context of its claims.
func newMember(t *testing.T, conn *engine.Conn) (*membership, context.Context) {
	claims, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	b := &pipeline.Batch{Activities: observe.NewActivities(), RunID: "r", Stop: cancel, Drain: cancel, Ledger: budget.NewLedger(budget.Limits{})}
	w := newWorker(Config{Conn: conn, Poll: 20 * time.Millisecond}, b)
	return newMembership(w, engine.WorkerEntry{ID: "w", Name: "w"}), claims
}

func (m *membership) isOver() bool {
	select {
	case <-m.over:
		return true
	default:
		return false
	}
}

// A worker that found the budget used up stops waiting for the end of the run when a new
// coordinator starts, which may have a higher limit.
func TestNewCoordinatorEndsTheWaitForBudget(t *testing.T) {
	t.Parallel()
	conn := dial(t)
	publish := func(c *engine.CoordinatorLease) {
		if err := c.SetPhase(t.Context(), engine.Working, nil); err != nil {
			t.Fatal(err)
		}
	}
	killed := leaseRun(t, conn)
	publish(killed)
	m, claims := newMember(t, conn)
	if !m.poll(t.Context(), claims) || m.isOver() {
		t.Fatal("the membership is over under the first coordinator")
	}
	killed.Release()
	publish(leaseRun(t, conn))
	if !m.poll(t.Context(), claims) || !m.isOver() || claims.Err() != nil {
		t.Errorf("over %v, claims %v", m.isOver(), context.Cause(claims))
	}
}

// A worker that does not know about the budget of its run claims no jobs, even if it joined while
// the coordinator made its plan.
func TestWorkerWithoutBudgetClaimsNothing(t *testing.T) {
	t.Parallel()
	conn := dial(t)
	held := leaseRun(t, conn)
	m, claims := newMember(t, conn)
	entered := make(chan bool, 1)
	go func() { entered <- m.waitForPlan(t.Context(), claims) }()
	for seen := false; !seen; {
		workers, err := conn.Workers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		seen = len(workers) > 0
	}
	info, err := json.Marshal(RunDetails{Budgeted: true})
	if err == nil {
		err = held.SetPhase(t.Context(), engine.Working, info)
	}
	if err != nil {
		t.Fatal(err)
	}
	if !<-entered || claims.Err() == nil || !m.isOver() {
		t.Errorf("claims %v, over %v", claims.Err(), m.isOver())
	}
}
