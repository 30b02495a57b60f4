package budget

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/tracesmith/tracesmith/pipeline/engine"
)

// maxRepairs is the largest number of shares that a coordinator repairs in one write of the state.
const maxRepairs = 20

// Coordinator maintains the shared budget of a run, in the process that coordinates the run. It
// sets the limits and marks the running calls of workers that have lost their jobs.
type Coordinator struct {
	store  *engine.BudgetStore
	name   string // of this process
	writes int
}

// Setup describes a run for Open.
type Setup struct {
	Limits  Limits                      // Open ignores Episode
	Ledger  *Ledger                     // contains the calls of earlier processes
	Jobs    []engine.Entry              // records of the jobs, read before the step logs that Ledger counts
	Staged  func(episode string) bool   // reports whether an episode is staged
	Confirm func(context.Context) error // called before Open creates a budget; Open returns its error
}

// Open opens the shared budget of a run and sets its limits. If the run has no budget, Open
// creates one from the ledger. It returns nil if the run has no budget and s.Limits limits neither
// the run nor its tasks.
func Open(ctx context.Context, e *engine.Engine, s Setup) (*Coordinator, error) {
	limited := s.Limits.Run > 0 || s.Limits.Task > 0
	store, err := e.OpenBudget(ctx, limited)
	if err != nil || store == nil {
		return nil, err
	}
	c := &Coordinator{store: store, name: engine.Instance()}
	for {
		d, revision, err := readState(ctx, store)
		if err != nil {
			return nil, err
		}
		if revision == 0 && !limited { // an earlier Open ended before it wrote a state
			return nil, nil
		}
		more := false
		if revision == 0 {
			err = c.create(ctx, d, s)
		} else {
			more, err = repair(d, s)
		}
		if err != nil {
			return nil, err
		}
		if !more {
			d.Limit, d.TaskLimit, d.Exhausted = s.Limits.Run, s.Limits.Task, ""
		}
		if ok, err := c.replace(ctx, d, revision); ok && !more || err != nil {
			return c, err
		}
	}
}

func (c *Coordinator) replace(ctx context.Context, d *draft, revision uint64) (bool, error) {
	c.writes++
	_, ok, err := replaceState(ctx, c.store, d, fmt.Sprintf("%s %d", c.name, c.writes), revision)
	return ok, err
}

// create writes the totals of a new budget and fills in its first state, which the caller writes.
func (c *Coordinator) create(ctx context.Context, d *draft, s Setup) error {
	err := s.Confirm(ctx)
	if err != nil {
		return err
	}
	run, tasks, episodes := s.Ledger.spent()
	d.Closed = run
	totals := map[string][]byte{}
	put := func(key string, spent float64) {
		if spent != 0 && err == nil {
			totals[key], err = json.Marshal(closedTotal{Spent: spent})
		}
	}
	for id, spent := range tasks {
		put(taskKey(id), spent)
	}
	for id, spent := range episodes {
		put(episodeKey(id), spent)
	}
	if err != nil {
		return fmt.Errorf("encoding the budget: %w", err)
	}
	return c.store.PutTotals(ctx, totals)
}

// repair corrects the shares of episodes that are staged, or that no worker executes: it sets the
// amount spent to that in the ledger, and closes the shares. It stops after maxRepairs shares and
// returns more if shares remain, because during a long repair workers would change the state.
func repair(d *draft, s Setup) (more bool, err error) {
	_, _, spent := s.Ledger.spent()
	jobs := map[string]engine.Entry{}
	for _, e := range s.Jobs {
		jobs[e.ID] = e
	}
	repaired := 0
	for id, sh := range maps.Clone(d.Open) {
		e := jobs[id]
		executed := e.Delivery < sh.Delivery || e.Delivery == sh.Delivery && e.State == engine.Running
		if executed && !s.Staged(id) {
			continue
		}
		if repaired++; repaired > maxRepairs {
			return true, nil
		}
		if err := errors.Join(d.restore(id, sh.Task, sh.Delivery, spent[id]), d.closeShare(id, sh.Delivery)); err != nil {
			return false, err
		}
	}
	return false, nil
}

// Check marks the running calls of workers that have lost their jobs. It returns the reason why no
// further call may begin, or "" if calls may begin. lost reports whether no worker executes the
// given delivery of an episode's job any longer.
func (c *Coordinator) Check(ctx context.Context, lost func(episode string, delivery int) bool) (exhausted string, err error) {
	d, revision, err := readState(ctx, c.store)
	if err != nil {
		return "", err
	}
	for id, sh := range d.Open {
		if sh.Held > 0 && !sh.Lost && lost(id, sh.Delivery) {
			d.markLost(id)
		}
	}
	if d.changed {
		_, err = c.replace(ctx, d, revision) // if another process wrote first, the next Check marks the calls
	}
	return d.Exhausted, err
}
