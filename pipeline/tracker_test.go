package pipeline

import (
	"testing"

	"github.com/tracesmith/tracesmith/pipeline/engine"
)

func newCoordinator() *fleet {
	return &fleet{
		r: newRun(Config{}, Deps{}, "", plan{}), ended: map[string]bool{}, running: map[string]handed{}, at: map[string]uint64{}, hands: map[string]hand{},
	}
}

// What a job holds that is not to do any more, fewer attempts are asked for, is lost like
// that of others when its worker is gone, and its end is not waited for.
func TestAJobThatIsNotToDoIsForsakenToo(t *testing.T) {
	t.Parallel()
	f := newCoordinator()
	see := func(revision uint64, state engine.State, delivery int) {
		f.see(engine.Entry{ID: "a", Revision: revision, Record: engine.Record{State: state, Delivery: delivery}})
	}
	if f.forsaken("a", 1) {
		t.Error("before anything was seen")
	}
	see(1, engine.Running, 1)
	if f.forsaken("a", 1) || !f.idle(nil) {
		t.Errorf("in a worker's hands: forsaken %v, idle %v", f.forsaken("a", 1), f.idle(nil))
	}
	see(2, engine.Running, 2)
	if !f.forsaken("a", 1) || f.forsaken("a", 2) {
		t.Error("in another worker's hands")
	}
	see(3, engine.Dead, 2)
	if !f.forsaken("a", 2) {
		t.Error("given up")
	}
}
