package pipeline

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/pipeline/budget"
	"github.com/tracesmith/tracesmith/schemas"
)

// Canceling the job that started the baseline run of its task does not cancel the baseline run:
// the other jobs of the task get its result.
func TestBaselineOutlivesTheJobThatStartedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		b := newBatch(Config{}, Deps{Baseline: func(ctx context.Context, _ schemas.Task) (schemas.TestSpec, error) {
			select {
			case <-release:
				return schemas.TestSpec{Method: schemas.VerifyPytest}, nil
			case <-ctx.Done():
				return schemas.TestSpec{}, ctx.Err()
			}
		}}, "r", plan{}, budget.Limits{})
		var baselines env.Baselines
		job := func(ctx context.Context) chan error {
			ended := make(chan error, 1)
			go func() {
				j := &jobRun{batch: b, baselines: &baselines, task: schemas.Task{ID: "task"}}
				_, err := j.tests(ctx)
				ended <- err
			}()
			return ended
		}
		ctx, cancel := context.WithCancel(t.Context())
		first := job(ctx)
		synctest.Wait()
		second := job(t.Context())
		synctest.Wait()
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("the canceled job: %v", err)
		}
		close(release)
		if err := <-second; err != nil {
			t.Errorf("the other job: %v", err)
		}
	})
}
