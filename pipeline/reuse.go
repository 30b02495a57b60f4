package pipeline

import (
	"cmp"
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/pipeline/rundir"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// Reuse reads the episodes that are staged already. Jobs without a staged episode go into ToDo. The
// calls of staged episodes that only an earlier invocation selected count in the ledger.
func (b *Batch) Reuse(ctx context.Context) error {
	sizes := map[string]int64{}
	for o, err := range b.Deps.Staging.List(ctx, rundir.StagedPrefix(b.RunID)) {
		if err != nil {
			return b.StoreError(fmt.Errorf("listing staged episodes: %w", err))
		}
		sizes[o.Key] = o.Size
	}
	b.staged = len(sizes)
	var keys []string
	jobs := map[string]schemas.Job{} // those that are staged, by key
	tasks := map[string]string{}     // their IDs, by group
	for _, j := range b.plan.jobs {
		tasks[j.GroupID] = j.TaskID
		key := sinks.StagedKey(b.RunID, j.EpisodeID)
		if _, ok := sizes[key]; !ok {
			b.ToDo[j.EpisodeID] = j
			continue
		}
		jobs[key] = j
		keys = append(keys, key)
	}
	for key := range sizes {
		if _, ok := jobs[key]; !ok {
			keys = append(keys, key)
			b.unselected++
		}
	}
	found := make([]observe.Episode, len(keys))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for i, key := range keys {
		g.Go(func() error {
			body, err := b.Deps.Staging.Get(gctx, key)
			if err != nil {
				return b.StoreError(fmt.Errorf("reading a staged episode: %w", err))
			}
			s, err := sinks.DecodeStaged(body)
			if err != nil {
				return &StopError{Code: 2, Err: fmt.Errorf("%s/%s is damaged: %w", b.Deps.Staging.URI(), key, err), Remedy: "delete it and start the same command again: it repeats the episode"}
			}
			found[i] = observe.FromStaged(s, sizes[key])
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i, key := range keys {
		e := found[i]
		if job, ok := jobs[key]; ok {
			b.SetReused(job, e)
		} else {
			b.Ledger.AddEarlier(b.Ledger.Account(e.ID, cmp.Or(tasks[e.GroupID], e.GroupID)), e.Calls, false)
		}
	}
	return nil
}
