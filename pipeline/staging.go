package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// StoreError returns an error of the staging store with exit code 8. It returns cancellations and
// errors that have an exit code unchanged.
func (b *Batch) StoreError(err error) error {
	if _, ok := errors.AsType[fatal](err); ok || errors.Is(err, context.Canceled) {
		return err
	}
	return &StopError{Code: 8, Err: err, Remedy: "check the staging store " + b.Deps.Staging.URI() + "; " + resumes}
}

// ProbeStaging returns an error if the staging store is unusable or would let episodes overwrite
// each other. Run calls it before the first job, so that no model call is paid for in vain.
func (b *Batch) ProbeStaging(ctx context.Context) error {
	where, remedy := "run.staging", "stage in another place, or leave run.staging out to stage in the run's directory"
	if b.Config.Staging == "" {
		where, remedy = "the run's directory", "use a run directory on another file system, or set run.staging to another place"
	}
	switch err := b.Deps.Staging.Probe(ctx); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return Interrupted(ctx)
	case errors.Is(err, sinks.ErrUnsafe):
		return &StopError{Code: 8, Err: fmt.Errorf("%s: %w", where, err), Remedy: remedy}
	default:
		return b.StoreError(fmt.Errorf("%s: %w", where, err))
	}
}

// RemoveTorn removes incomplete objects that killed processes left behind, if the run stages in
// its own directory. No other process may execute jobs of the run at that time.
func (b *Batch) RemoveTorn(ctx context.Context) error {
	s, ok := b.Deps.Staging.(sinks.Sweeper)
	if !ok || b.Config.Staging != "" {
		return nil
	}
	torn, err := s.UnfinishedWrites(ctx)
	if err != nil {
		return b.StoreError(fmt.Errorf("looking for incomplete objects: %w", err))
	}
	for _, t := range torn {
		if err := t.Remove(ctx); err != nil {
			return b.StoreError(fmt.Errorf("removing the incomplete object %s: %w", t.Name, err))
		}
	}
	return nil
}

// WithStore repeats an operation while the staging store is unreachable, so that no finished
// episode is lost. After Config.StagePatience it returns an error that stops the run.
func (b *Batch) WithStore(ctx context.Context, do func(sinks.Store) error) error {
	deadline := time.Now().Add(b.Config.StagePatience)
	for wait := 250 * time.Millisecond; ; wait = min(2*wait, 30*time.Second) {
		err := do(b.Deps.Staging)
		if err == nil || errors.Is(err, sinks.ErrExists) || errors.Is(err, sinks.ErrNotFound) || ctx.Err() != nil || asFatal(err, true) != nil {
			return err
		}
		if time.Now().Add(wait).After(deadline) {
			return b.StoreError(err)
		}
		b.Deps.Log.Warn("staging store failed", "error", err, "retry_in", wait)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

// Fetch reads the staged episode of a job. The error wraps sinks.ErrNotFound if there is none.
func (b *Batch) Fetch(ctx context.Context, job schemas.Job) (StagedEpisode, error) {
	key := sinks.StagedKey(job.RunID, job.EpisodeID)
	var body []byte
	err := b.WithStore(ctx, func(store sinks.Store) (err error) {
		body, err = store.Get(ctx, key)
		return err
	})
	if err != nil {
		return StagedEpisode{}, fmt.Errorf("looking for the staged episode: %w", err)
	}
	s, err := sinks.DecodeStaged(body)
	if err != nil {
		return StagedEpisode{}, fmt.Errorf("%s: %w", key, err)
	}
	return StagedEpisode{observe.FromStaged(s, int64(len(body))), schemas.HashBytes(body)}, nil
}

// stage writes an episode without overwriting. If another worker has staged the episode, stage
// returns that one.
func (b *Batch) stage(ctx context.Context, job schemas.Job, s sinks.Staged) (StagedEpisode, error) {
	body, err := sinks.EncodeStaged(s)
	if err != nil {
		return StagedEpisode{}, err
	}
	key := sinks.StagedKey(job.RunID, job.EpisodeID)
	err = b.WithStore(ctx, func(store sinks.Store) error { return store.Create(ctx, key, body) })
	if errors.Is(err, sinks.ErrExists) {
		return b.adopt(ctx, job)
	}
	if err != nil {
		return StagedEpisode{}, fmt.Errorf("staging: %w", err)
	}
	return StagedEpisode{observe.FromStaged(s, int64(len(body))), schemas.HashBytes(body)}, nil
}

// adopt returns the episode that another worker, or an earlier delivery of the job, has staged.
func (b *Batch) adopt(ctx context.Context, job schemas.Job) (StagedEpisode, error) {
	done, err := b.Fetch(ctx, job)
	if err == nil {
		b.mu.Lock()
		b.friction.Adopted++
		b.mu.Unlock()
	}
	return done, err
}
