package pipeline

import (
	"context"
	"fmt"

	"github.com/tracesmith/tracesmith/schemas"
)

// grade verifies the patch in a fresh sandbox and records the verdict. If the changes in the
// workspace cannot be expressed as a patch, grade does not run the tests, because they would
// judge the unchanged repository.
func (j *jobRun) grade(ctx context.Context, ep *schemas.Episode) error {
	b, task := j.batch, j.task
	if ep.ExitReason == schemas.ExitBadWorkspace {
		return j.setVerdict(ctx, schemas.Verdict{Status: schemas.VerifyNotRun, Method: task.Tests.Method, Reason: ep.ErrorMessage})
	}
	spec, err := j.tests(ctx)
	if err != nil {
		return fmt.Errorf("finding the tests of %s: %w", task.InstanceID, err)
	}
	task.Tests = spec
	tree, err := b.Deps.Source.Tree(ctx, task.InstanceID)
	if err != nil {
		return fmt.Errorf("opening the repository of %s: %w", task.InstanceID, err)
	}
	v, err := b.Deps.Verifier.Verify(ctx, task, tree, ep.Patch, ep.FinalSHA)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("verifying: %w", err)
	case v.Status == schemas.VerifyError: // a failure of tracesmith: the job is retried, the agent not blamed
		return fmt.Errorf("verifying: %s", v.Reason)
	}
	return j.setVerdict(ctx, v.WithOmitted(ep.LeftOut))
}

func (j *jobRun) setVerdict(ctx context.Context, v schemas.Verdict) error {
	j.rec.verdict = &v
	return j.rec.append(ctx, kindVerdict, v)
}

// tests returns the test lists of the task, or those of a baseline run, which all jobs of the
// task share.
func (j *jobRun) tests(ctx context.Context) (schemas.TestSpec, error) {
	if j.batch.Deps.Baseline == nil || !j.task.Tests.NeedsBaseline() {
		return j.task.Tests, nil
	}
	return j.baselines.Get(ctx, j.task.ID, func(ctx context.Context) (schemas.TestSpec, error) {
		return j.batch.Deps.Baseline(ctx, j.task)
	})
}
