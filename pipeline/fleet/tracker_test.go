package fleet

import (
	"testing"

	"github.com/tracesmith/tracesmith/pipeline"
	"github.com/tracesmith/tracesmith/pipeline/engine"
)

// Jobs that are no longer selected can lose their calls as well, and the coordinator does not wait
// for them.
func TestJobsThatAreNotSelectedCanBeLost(t *testing.T) {
	t.Parallel()
	tr := newTracker(nil, &pipeline.Batch{})
	see := func(revision uint64, state engine.State, delivery int) {
		tr.see(engine.Entry{ID: "a", Revision: revision, Record: engine.Record{State: state, Delivery: delivery}})
	}
	if tr.lost("a", 1) {
		t.Error("before anything was seen")
	}
	see(1, engine.Running, 1)
	if tr.lost("a", 1) || !tr.idle(nil) {
		t.Errorf("in a worker's hands: lost %v, idle %v", tr.lost("a", 1), tr.idle(nil))
	}
	see(2, engine.Running, 2)
	if !tr.lost("a", 1) || tr.lost("a", 2) {
		t.Error("in another worker's hands")
	}
	see(3, engine.Dead, 2)
	if !tr.lost("a", 2) {
		t.Error("given up")
	}
}
