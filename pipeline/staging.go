package pipeline

import (
	"context"
	"errors"
	"fmt"

	"github.com/tracesmith/tracesmith/sinks"
)

// probeStaging refuses a place in which episodes cannot be staged, or could overwrite
// each other, before one is paid for.
func (r *run) probeStaging(ctx context.Context) error {
	where, remedy := "run.staging", "stage in another place, or leave run.staging out to stage in the run's directory"
	if r.cfg.Staging == "" {
		where, remedy = "the run's directory", "use a run directory on another file system, or set run.staging to another place"
	}
	switch err := r.deps.Staging.Probe(ctx); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return interrupted(ctx)
	case errors.Is(err, sinks.ErrUnsafe):
		return &StopError{Code: 8, Err: fmt.Errorf("%s: %w", where, err), Remedy: remedy}
	default:
		return r.storeError(fmt.Errorf("%s: %w", where, err))
	}
}

// sweep removes what killed processes had begun to stage: in the run directory,
// whose lock is ours, when nobody else executes its jobs.
func (r *run) sweep(ctx context.Context) error {
	if r.deps.Cluster != nil {
		return nil
	}
	return r.removeTorn(ctx)
}

func (r *run) removeTorn(ctx context.Context) error {
	s, ok := r.deps.Staging.(sinks.Sweeper)
	if !ok || r.cfg.Staging != "" {
		return nil
	}
	torn, err := s.Torn(ctx)
	if err != nil {
		return r.storeError(fmt.Errorf("looking for what was not staged whole: %w", err))
	}
	for _, t := range torn {
		if err := t.Remove(ctx); err != nil {
			return r.storeError(fmt.Errorf("removing %s, which was not staged whole: %w", t.Name, err))
		}
	}
	return nil
}
