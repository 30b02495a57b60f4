package budget

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/pipeline/observe"
)

// readState reads the current shared state of a run and its revision.
func readState(ctx context.Context, store *engine.BudgetStore) (*draft, uint64, error) {
	body, revision, err := store.State(ctx)
	if err != nil {
		return nil, 0, err
	}
	if revision == 0 {
		body = []byte("{}")
	}
	d, err := newDraft(body, func(key string) (total closedTotal, err error) {
		body, err := store.Total(ctx, key)
		if err == nil && body != nil {
			err = json.Unmarshal(body, &total)
		}
		if err != nil {
			err = fmt.Errorf("reading the budget of the run: %w", err)
		}
		return total, err
	})
	return d, revision, err
}

// replaceState replaces the shared state if it still has the given revision. ok is false if
// another process has changed it.
func replaceState(ctx context.Context, store *engine.BudgetStore, d *draft, writer string, revision uint64) (next uint64, ok bool, err error) {
	state, totals, err := d.encode(writer)
	if err != nil {
		return 0, false, err
	}
	return store.Replace(ctx, state, revision, totals)
}

// Read returns the shared budget of a run on a cluster, or nil if the run has none.
func Read(ctx context.Context, conn *engine.Conn, runID string) (*observe.Budget, error) {
	store, err := conn.Budget(ctx, runID)
	if err != nil || store == nil {
		return nil, err
	}
	d, revision, err := readState(ctx, store)
	if err != nil || revision == 0 {
		return nil, err
	}
	b := &observe.Budget{LimitUSD: d.Limit, SpentUSD: d.Closed, UsedUp: d.Exhausted != ""}
	for _, sh := range d.Open {
		b.SpentUSD += sh.Spent
		if sh.Lost {
			b.LostUSD += sh.Held
		} else {
			b.ReservedUSD += sh.Held
		}
	}
	b.SpentUSD += b.LostUSD
	return b, nil
}
