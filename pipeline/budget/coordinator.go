package budget

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/tracesmith/tracesmith/pipeline/engine"
)

// maxRepairs is how many shares a coordinator repairs with one write of the state.
const maxRepairs = 20

// Coordinator is the part of the process that coordinates a run in the run's shared budget:
// it sets the limits and finds the calls that are lost.
type Coordinator struct {
	store  *engine.BudgetStore
	name   string // of the process
	writes int
}

// Setup is what Open needs to know about a run.
type Setup struct {
	Limits  Limits         // Episode is not used
	Ledger  *Ledger        // what was paid before
	Jobs    []engine.Entry // records of the jobs, read before the step logs that Ledger counts
	Staged  func(episode string) bool
	Confirm func(context.Context) error // called before a run that had no budget gets one
}

// Open opens the shared budget of a run and sets its limits. If the run has none, Open creates
// one from the ledger, or returns nil if there is no limit for the run and its tasks.
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
		if revision == 0 && !limited { // Confirm refused the first state
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

// create prepares the first state and writes its totals.
func (c *Coordinator) create(ctx context.Context, d *draft, s Setup) error {
	err := s.Confirm(ctx)
	if err != nil {
		return err
	}
	run, tasks, episodes := s.Ledger.spent()
	d.Closed = run
	totals := map[string][]byte{}
	put := func(key string, spent float64) {
		if spent != 0 {
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

// repair makes the shares of episodes that are staged, or that no worker executes, what the
// ledger says. It stops after some and returns more: workers write the state meanwhile.
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

// Check marks the calls of workers that have lost their job, and returns the reason for which
// no further call may begin, "" if there is none. lost reports whether no worker executes a
// delivery of an episode's job any more.
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
		_, err = c.replace(ctx, d, revision) // if another process was faster, the next check repeats it
	}
	return d.Exhausted, err
}
