package rundir_test

import (
	"context"
	"errors"
	"testing"

	"github.com/tracesmith/tracesmith/internal/enginetest"
	"github.com/tracesmith/tracesmith/internal/pipelinetest"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
	"github.com/tracesmith/tracesmith/sinks/stores"
)

func TestMain(m *testing.M) { enginetest.Main(m, func() bool { return false }) }

func newHarness(dir string, tasks int) *pipelinetest.Harness {
	return pipelinetest.New(dir, tasks, func(ctx context.Context, dir string) (sinks.Store, error) {
		return stores.Open(ctx, dir, stores.S3Config{})
	})
}

// failFor returns a verifier that fails for one task.
func failFor(instance string) func(schemas.Task) (schemas.Verdict, error) {
	return func(t schemas.Task) (schemas.Verdict, error) {
		if t.InstanceID == instance {
			return schemas.Verdict{}, errors.New("no sandbox")
		}
		return schemas.Verdict{}, nil
	}
}
