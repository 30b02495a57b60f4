package wire

import (
	"context"

	soundness "github.com/tracesmith/tracesmith/env/tasks/check"
	"github.com/tracesmith/tracesmith/schemas"
)

// Check checks whether a task of the source is sound. A task whose repository cannot
// be read is broken. A returned error is a failure of the check and says nothing about the
// task.
func (w *Workbench) Check(ctx context.Context, t schemas.Task, runs int, seed int64) (soundness.Report, error) {
	tree, err := w.Source.Tree(ctx, t.InstanceID)
	if err != nil {
		if ctx.Err() != nil {
			return soundness.Report{}, err
		}
		return soundness.Unreadable(t, err), nil
	}
	d := w.Driver(t)
	spec, err := w.spec(ctx, d, t, tree)
	if err != nil {
		return soundness.Report{}, err
	}
	return soundness.Task(ctx, soundness.Config{
		Driver: d, Spec: spec, Store: w.store, NewDebugger: newDebugger, Timeout: w.cfg.Sandbox.VerifyTimeout, Runs: runs, Seed: seed,
	}, t, tree)
}
