package pipeline

import (
	"context"
	"fmt"

	"github.com/tracesmith/tracesmith/schemas"
)

// grade has the patch judged in a fresh sandbox. If no patch can hold the workspace, it
// asks for no verdict, which would be one on the base tree.
func (r *run) grade(ctx context.Context, task schemas.Task, ep *schemas.Episode, rec *recorder) error {
	if ep.ExitReason == schemas.ExitBadWorkspace {
		rec.verdict = &schemas.Verdict{Status: schemas.VerifyNotRun, Method: task.Tests.Method, Reason: ep.ErrorMessage}
		return rec.append(ctx, kindVerdict, rec.verdict)
	}
	spec, err := r.tests(ctx, task)
	if err != nil {
		return fmt.Errorf("finding the tests of %s: %w", task.InstanceID, err)
	}
	task.Tests = spec
	tree, err := r.deps.Source.Tree(ctx, task.InstanceID)
	if err != nil {
		return fmt.Errorf("opening the repository of %s: %w", task.InstanceID, err)
	}
	v, err := r.deps.Verifier.Verify(ctx, task, tree, ep.Patch, ep.FinalSHA)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return fmt.Errorf("verifying: %w", err)
	case v.Status == schemas.VerifyError: // ours: tried again, never scored
		return fmt.Errorf("verifying: %s", v.Reason)
	}
	v = v.Without(ep.LeftOut)
	rec.verdict = &v
	return rec.append(ctx, kindVerdict, v)
}

// undecided ends an episode whose patch lacks files and did not pass without them as
// one whose workspace no patch can hold.
func undecided(ep *schemas.Episode) {
	if len(ep.LeftOut) > 0 && ep.Verdict.Status == schemas.VerifyNotRun {
		ep.ExitReason, ep.ErrorClass, ep.ErrorMessage = schemas.ExitBadWorkspace, schemas.ExitBadWorkspace, ep.Verdict.Reason
	}
}
