package wire

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/trace"
	"github.com/tracesmith/tracesmith/env/verify"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/pipeline"
	"github.com/tracesmith/tracesmith/schemas"
)

// Pairs returns what compares values with the fixed programs, or nil if the configuration does not want it. It keeps the
// traces until Close, because the attempts at a task use the same ones.
func (w *Workbench) Pairs() pipeline.Pairs {
	if !w.cfg.Run.GoldTraces {
		return nil
	}
	return w.pairs()
}

func (w *Workbench) pairs() trace.Pairs {
	return trace.Pairs{Runner: observer{w}, Dir: filepath.Join(w.scratch, "pairs")}
}

// Trace compares the runs of a failing test on the buggy and on the fixed version of a task. If the
// gold patch does not apply, the error is a *pipeline.TaskError.
func (w *Workbench) Trace(ctx context.Context, t schemas.Task, test string) (schemas.PairedTrace, error) {
	tree, err := w.Source.Tree(ctx, t.InstanceID)
	if err != nil {
		return schemas.PairedTrace{}, err
	}
	pair, err := w.pairs().Trace(ctx, t, tree, test)
	if unfit, ok := errors.AsType[*workspace.ApplyError](err); ok {
		err = &pipeline.TaskError{Err: &verify.TaskError{Instance: t.InstanceID, Kind: verify.ErrGoldFails, Detail: unfit.Error(), Remedy: "make the gold patch against the task's repository"}}
	}
	return pair, err
}

// observer runs tests with a probe, as part of the limit on gradings.
type observer struct{ w *Workbench }

// Observe implements trace.Runner.
func (o observer) Observe(ctx context.Context, t schemas.Task, tree env.Tree, patch []byte, variant verify.Variant) (verify.Run, error) {
	v, err := o.w.verifier(ctx, t, tree)
	if err != nil {
		return verify.Run{}, err
	}
	done, err := o.w.acquireGrading(ctx)
	if err != nil {
		return verify.Run{}, err
	}
	defer done()
	return v.Observe(ctx, t, tree, patch, variant)
}
