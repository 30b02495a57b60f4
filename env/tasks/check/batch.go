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
	Workers int // checks at once; below 1 is 1
	Runs    int // a known report with fewer is not enough
	// Check checks one task. An error makes a gap, which is not kept.
	Check func(context.Context, schemas.Task) (Report, error)
	// Begun and Done are called for each task, from one goroutine at a time; err is set for a
	// gap.
	Begun func(schemas.Task)
	Done  func(schemas.Task, Report, error)
}

// Result of a batch. Reports are in the order of the tasks, known ones included.
type Result struct {
	Reports []Report `json:"reports"`
	Gaps    []Gap    `json:"gaps,omitempty"`
	Reused  int      `json:"reused"` // reports that were known before
}

// Gap is a task that could not be checked, for a reason outside of the task.
type Gap struct {
	InstanceID string `json:"instance_id"`
	Reason     string `json:"reason"`
}

// Run checks the tasks that the ledger does not know. If ctx ends, it returns an error; the result
// and the ledger have the checks that were finished by then.
func (b Batch) Run(ctx context.Context, tasks []schemas.Task) (Result, error) {
	var mu sync.Mutex
	var out Result
	reports := make([]*Report, len(tasks))
	gaps := make([]*Gap, len(tasks))
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(max(b.Workers, 1))
	for i, t := range tasks {
		if r, ok := b.Ledger.Known(t.ID, b.Runs); ok {
			reports[i] = &r
			out.Reused++
			continue
		}
		group.Go(func() error {
			if within.Err() != nil {
				return within.Err()
			}
			mu.Lock()
			b.Begun(t)
			mu.Unlock()
			r, err := b.Check(within, t)
			if within.Err() != nil {
				return within.Err()
			}
			if err == nil {
				if err := b.Ledger.Add(r); err != nil {
					return err
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				gaps[i] = &Gap{t.InstanceID, err.Error()}
			} else {
				reports[i] = &r
			}
			b.Done(t, r, err)
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
