package wire

import (
	"context"

	soundness "github.com/tracesmith/tracesmith/env/tasks/check"
	"github.com/tracesmith/tracesmith/schemas"
)

// Check checks whether a task of the source is sound. A task whose repository cannot
// be read is broken. A returned error is a failure of the check and says nothing about the
// task. Of cfg, Check uses Runs, Seed and Isolated.
func (w *Workbench) Check(ctx context.Context, t schemas.Task, cfg soundness.Config) (soundness.Report, error) {
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
	cfg.Driver, cfg.Spec, cfg.Store, cfg.NewDebugger, cfg.Timeout = d, spec, w.store, newDebugger, w.cfg.Sandbox.VerifyTimeout
	return soundness.Task(ctx, cfg, t, tree)
}
