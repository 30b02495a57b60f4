package fleet

import (
	"testing"

	"github.com/tracesmith/tracesmith/pipeline"
	"github.com/tracesmith/tracesmith/pipeline/engine"
)

// The tracker follows the deliveries of jobs that are no longer selected, but does not wait for
// these jobs.
func TestDeliveriesOfUnselectedJobsAreTracked(t *testing.T) {
	t.Parallel()
	tr := newTracker(nil, &pipeline.Batch{})
	update := func(revision uint64, state engine.State, delivery int) {
		tr.update(engine.Entry{ID: "a", Revision: revision, Record: engine.Record{State: state, Delivery: delivery}})
	}
	if tr.deliveryEnded("a", 1) {
		t.Error("a job without a record is lost")
	}
	update(1, engine.Running, 1)
	if tr.deliveryEnded("a", 1) || !tr.idle(nil) {
		t.Errorf("during the first delivery: lost %v, idle %v", tr.deliveryEnded("a", 1), tr.idle(nil))
	}
	update(2, engine.Running, 2)
	if !tr.deliveryEnded("a", 1) || tr.deliveryEnded("a", 2) {
		t.Error("during the second delivery: the first must be lost, the second not")
	}
	update(3, engine.Dead, 2)
	if !tr.deliveryEnded("a", 2) {
		t.Error("the last delivery of a dead job is not lost")
	}
}
