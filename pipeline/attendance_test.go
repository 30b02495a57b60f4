package pipeline

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/pipeline/engine"
)

// preside is a coordinator of run r that comes in the place of one that is gone.
func (b *bank) preside() *engine.Chair {
	b.t.Helper()
	chair, err := b.conn.Preside(b.t.Context(), engine.RunEntry{RunID: "r", Dir: "d", Key: "k", Lease: time.Minute})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(chair.Leave)
	return chair
}

// attend is a worker of run r, and the context of its claims.
func (b *bank) attend() (*attendance, context.Context) {
	r := newRun(Config{RunID: "r", LookEvery: 20 * time.Millisecond}, Deps{Cluster: b.conn}.withDefaults(), RunInfo{}, plan{})
	claims, end := context.WithCancelCause(b.t.Context())
	b.t.Cleanup(func() { end(nil) })
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
	b := newBank(t, 1, 0)
	told := func(c *engine.Chair) {
		if err := c.Set(t.Context(), engine.Working, nil); err != nil {
			t.Fatal(err)
		}
	}
	killed := b.preside()
	told(killed)
	a, claims := b.attend()
	if !a.look(t.Context(), claims) || a.isOver() {
		t.Fatal("over under the first coordinator")
	}
	killed.Leave()
	told(b.preside())
	if !a.look(t.Context(), claims) || !a.isOver() || claims.Err() != nil {
		t.Errorf("over %v, claims %v", a.isOver(), context.Cause(claims))
	}
}

// A worker that has not read of the budget of its run claims nothing in it, also where
// it came while the coordinator made its plan.
func TestAWorkerThatDoesNotCountClaimsNothing(t *testing.T) {
	t.Parallel()
	b := newBank(t, 1, 0)
	chair := b.preside()
	a, claims := b.attend()
	entered := make(chan bool, 1)
	go func() { entered <- a.enter(t.Context(), claims) }()
	for seen := false; !seen; {
		workers, err := b.conn.Workers(t.Context())
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
