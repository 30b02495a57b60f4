package check

import (
	"context"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/tracesmith/tracesmith/schemas"
)

// Batch checks many tasks.
type Batch struct {
	Ledger  *Ledger
	Workers int // number of concurrent checks; at least 1
	Runs    int // reports in the ledger with fewer runs are not reused
	// Check checks one task. If it returns an error, the task becomes a gap, which the ledger does not keep.
	Check func(context.Context, schemas.Task) (Report, error)
	// OnStart is called before each check, and OnDone after it; the error is that of Check. Calls are not concurrent.
	OnStart func(schemas.Task)
	OnDone  func(schemas.Task, Report, error)
}

// Result is the result of a batch.
type Result struct {
	Reports []Report    `json:"reports"` // in the order of the tasks, including reused ones
	Gaps    []Unchecked `json:"gaps,omitempty"`
	Reused  int         `json:"reused"` // number of reports that were already in the ledger
}

// Unchecked is a task that could not be checked, for a reason outside of the task.
type Unchecked struct {
	InstanceID string `json:"instance_id"`
	Reason     string `json:"reason"`
}

// Run checks the tasks without a usable report in the ledger. If ctx ends, it returns an error, and the result and the
// ledger contain the checks that were finished by then.
func (b Batch) Run(ctx context.Context, tasks []schemas.Task) (Result, error) {
	var mu sync.Mutex
	var out Result
	reports := make([]*Report, len(tasks))
	gaps := make([]*Unchecked, len(tasks))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(max(b.Workers, 1))
	for i, t := range tasks {
		if r, ok := b.Ledger.Known(t.ID, b.Runs); ok {
			reports[i] = &r
			out.Reused++
			continue
		}
		group.Go(func() error {
			if groupCtx.Err() != nil {
				return groupCtx.Err()
			}
			mu.Lock()
			b.OnStart(t)
			mu.Unlock()
			r, err := b.Check(groupCtx, t)
			if groupCtx.Err() != nil {
				return groupCtx.Err()
			}
			if err == nil {
				if err := b.Ledger.Add(r); err != nil {
					return err
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				gaps[i] = &Unchecked{t.InstanceID, err.Error()}
			} else {
				reports[i] = &r
			}
			b.OnDone(t, r, err)
			return nil
		})
	}
	err := group.Wait()
	for i := range tasks {
		if reports[i] != nil {
			out.Reports = append(out.Reports, *reports[i])
		}
		if gaps[i] != nil {
			out.Gaps = append(out.Gaps, *gaps[i])
		}
	}
	if err != nil {
		return out, fmt.Errorf("checking tasks: %w", err)
	}
	return out, nil
}
