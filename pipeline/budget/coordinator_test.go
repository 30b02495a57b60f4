package budget

import (
	"fmt"
	"testing"

	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/schemas"
)

// A coordinator repairs the shares of many episodes with several writes of the state. Nothing
// is counted twice, and the shares of episodes that a worker executes do not change.
func TestRepairInSeveralWrites(t *testing.T) {
	t.Parallel()
	const open = 2*maxRepairs + 5
	p := newMemoryStore(t, 100, 100)
	setup := Setup{Ledger: NewLedger(Limits{}), Staged: func(string) bool { return false }}
	for n := range open + 1 {
		id := fmt.Sprint("e", n)
		p.apply(reservation("1", id, 1, 0.02))
		state := engine.Queued
		if n == open {
			state = engine.Running
		}
		setup.Jobs = append(setup.Jobs, engine.Entry{ID: id, Record: engine.Record{State: state, Delivery: 1}})
		setup.Ledger.Restore(setup.Ledger.Account(id, "x"), schemas.Calls{CostUSD: 0.01}, false)
	}
	writes := 0
	for more := true; more; writes++ {
		before := len(p.draft().Open)
		if err := p.change(func(d *draft) (err error) {
			more, err = repair(d, setup)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if left := len(p.draft().Open); before-left > maxRepairs {
			t.Errorf("%d shares repaired in one write, want at most %d", before-left, maxRepairs)
		}
	}
	if left := p.draft().Open; writes != 3 || len(left) != 1 {
		t.Errorf("%d writes, %d open shares left; want 3 and 1", writes, len(left))
	}
	p.check("repaired", "x", open*0.01, 0.02)
}
