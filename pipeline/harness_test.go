package pipeline_test

import (
	"context"

	"github.com/tracesmith/tracesmith/internal/pipelinetest"
	"github.com/tracesmith/tracesmith/sinks"
	"github.com/tracesmith/tracesmith/sinks/stores"
)

type harness = pipelinetest.Harness

const (
	turns     = pipelinetest.Turns
	callCost  = pipelinetest.CallCost
	callWorst = pipelinetest.CallWorst
)

func newHarness(dir string, tasks int) *harness {
	return pipelinetest.New(dir, tasks, func(ctx context.Context, dir string) (sinks.Store, error) {
		return stores.Open(ctx, dir, stores.S3Config{})
	})
}
