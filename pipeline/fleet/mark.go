package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/tracesmith/tracesmith/pipeline"
	"github.com/tracesmith/tracesmith/sinks"
)

func markerKey(runID string) string { return "fleet/" + runID }

// writeMarker writes the run's marker to staging. A worker that finds the marker in its staging
// store knows that it stages in the same place.
func writeMarker(ctx context.Context, b *pipeline.Batch) error {
	err := b.WithStore(ctx, func(store sinks.Store) error {
		return store.Create(ctx, markerKey(b.RunID), []byte(b.RunID+"\n"))
	})
	if err != nil && !errors.Is(err, sinks.ErrExists) {
		return b.StoreError(fmt.Errorf("writing the run's marker to the staging store: %w", err))
	}
	return nil
}

// checkMarker returns an error unless this worker stages in the same place as the coordinator.
func checkMarker(ctx context.Context, b *pipeline.Batch) error {
	staging := b.Deps.Staging
	var body []byte
	err := b.WithStore(ctx, func(store sinks.Store) (err error) {
		body, err = store.Get(ctx, markerKey(b.RunID))
		return err
	})
	if err == nil && strings.TrimSpace(string(body)) == b.RunID {
		return nil
	}
	if err != nil && !errors.Is(err, sinks.ErrNotFound) {
		return &pipeline.StopError{Code: 8, Err: fmt.Errorf("opening the staging store %s: %w", staging.URI(), err), Remedy: "check its credentials and address on this machine"}
	}
	host, _ := os.Hostname()
	return &pipeline.StopError{
		Code: 2, Err: fmt.Errorf("run %s stages in %s, which is a different place on this machine (%s): the run's marker is not there", b.RunID, staging.URI(), host),
		Remedy: "workers on other machines need a bucket (run.staging: s3://BUCKET/PREFIX in the run's configuration) or a directory that is mounted under the same path on all of them",
	}
}
