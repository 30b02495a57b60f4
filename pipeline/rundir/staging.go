package rundir

import (
	"context"
	"fmt"
	"strings"

	"github.com/tracesmith/tracesmith/sinks"
)

// StagedPrefix returns the common prefix of the keys under which a run stages its episodes.
func StagedPrefix(runID string) string {
	key := sinks.StagedKey(runID, "")
	return key[:strings.LastIndex(key, "/")+1]
}

// RequireUnstaged returns an *Error if staging holds episodes of the run. Call it for a fresh run
// that stages outside its directory: --fresh does not move these episodes aside, and the run would
// reuse them.
func RequireUnstaged(ctx context.Context, runID string, staging sinks.Store) error {
	for _, err := range staging.List(ctx, StagedPrefix(runID)) {
		if err != nil {
			return fmt.Errorf("listing staged episodes: %w", err)
		}
		return &Error{
			Err:    fmt.Errorf("%s holds episodes of run %s, which --fresh does not move aside", staging.URI(), runID),
			Remedy: "choose another run.staging, or omit --fresh to resume with them",
		}
	}
	return nil
}
