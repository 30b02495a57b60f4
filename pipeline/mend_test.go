package pipeline

import (
	"fmt"
	"testing"

	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/schemas"
)

func newCoordinator() *fleet {
	return &fleet{
		r: newRun(Config{}, Deps{}, RunInfo{}, plan{}), ended: map[string]bool{}, running: map[string]handed{}, at: map[string]uint64{}, hands: map[string]hand{},
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

// A coordinator mends the shares of many episodes with some writes of the page: nothing is
// counted twice, and those in a worker's hands are left alone.
func TestMendingInParts(t *testing.T) {
	t.Parallel()
	const open = 2*mendAtOnce + 5
	p := newPaper(t, 100, 100)
	var entries []engine.Entry
	f := newCoordinator()
	for n := range open + 1 {
		id := fmt.Sprint("e", n)
		p.grant(asking("1", id, 1, 0.02))
		state := engine.Queued
		if n == open {
			state = engine.Running
		}
		entries = append(entries, engine.Entry{ID: id, Record: engine.Record{State: state, Delivery: 1}})
		f.r.ledger.restore(f.r.ledger.account(id, "x"), schemas.Calls{CostUSD: 0.01}, false)
	}
	writes := 0
	for more := true; more; writes++ {
		before := len(p.sheet().Open)
		if err := p.change(func(s *sheet) (err error) {
			more, err = f.mend(s, entries)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if left := len(p.sheet().Open); before-left > mendAtOnce {
			t.Errorf("%d shares with one write", before-left)
		}
	}
	if left := p.sheet().Open; writes != 3 || len(left) != 1 {
		t.Errorf("%d writes, %d left", writes, len(left))
	}
	p.is("mended", "x", open*0.01, 0.02)
}
