package wire

import (
	"context"
	"errors"
	"fmt"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/schemas"
)

// Bare takes one job through the agent and the verifier with nothing made
// durable: what an episode costs before the pipeline is counted.
func (r *Run) Bare(ctx context.Context, j schemas.Job) (err error) {
	var task schemas.Task
	for _, t := range r.Tasks {
		if t.ID == j.TaskID {
			task = t
		}
	}
	e, err := r.newEnv(ctx, j, task)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close(context.WithoutCancel(ctx))) }()
	policy, err := r.newPolicy(j, task)
	if err != nil {
		return err
	}
	if _, err := agents.Run(ctx, agents.Config{Env: e, Policy: policy, Job: j, Task: task}); err != nil {
		return fmt.Errorf("running a bare episode: %w", err)
	}
	patch, sha, err := e.Patch(ctx)
	if err != nil {
		return fmt.Errorf("taking the patch: %w", err)
	}
	if task.Tests.NeedsBaseline() {
		if task.Tests, err = r.baseline(ctx, task); err != nil {
			return err
		}
	}
	tree, err := r.Bench.Source.Tree(ctx, task.InstanceID)
	if err != nil {
		return fmt.Errorf("opening the repository: %w", err)
	}
	_, err = r.Bench.Verify(ctx, task, tree, patch, sha)
	return err
}
