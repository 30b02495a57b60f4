package pipeline

import (
	"context"

	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/schemas"
)

// AddEarlierCalls adds to the ledger the model calls that earlier processes made for episodes
// that are not staged.
func (b *Batch) AddEarlierCalls(ctx context.Context) error {
	counts, err := b.countCalls(ctx)
	for id, c := range counts {
		b.Ledger.AddEarlier(b.Ledger.Account(id, b.ToDo[id].TaskID), c.calls, c.failed)
	}
	return err
}

// RestoreCalls sets the ledger to the calls that the staged episodes record and, for the other
// episodes, to those in the step logs. The coordinator of a run needs this because its workers
// made the calls.
func (b *Batch) RestoreCalls(ctx context.Context) error {
	b.mu.Lock()
	for _, e := range b.episodes {
		if !e.Reused && e.Outcome != schemas.OutcomeInfra {
			b.Ledger.Restore(b.Ledger.Account(e.ID, b.ToDo[e.ID].TaskID), e.Calls, false)
		}
	}
	b.mu.Unlock()
	counts, err := b.countCalls(ctx)
	for id, c := range counts {
		b.Ledger.Restore(b.Ledger.Account(id, b.ToDo[id].TaskID), c.calls, c.failed)
	}
	return err
}

// countCalls adds up the calls in the step logs of the episodes that are not staged.
func (b *Batch) countCalls(ctx context.Context) (map[string]*callCount, error) {
	counts := map[string]*callCount{}
	err := b.Engine.ReadLogs(ctx, func(id string, e engine.LogEntry) error {
		if b.isStaged(id) {
			return nil
		}
		if counts[id] == nil {
			counts[id] = &callCount{}
		}
		return counts[id].add(e)
	})
	for _, c := range counts {
		c.countLost()
	}
	return counts, err
}

func (b *Batch) isStaged(episode string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.episodes[episode]
	return ok && e.Outcome != schemas.OutcomeInfra
}
