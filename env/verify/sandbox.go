package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// Recording is a run of a tree without a variant, from which the verifier can make the verdicts on all
// patches that give this tree.
type Recording struct {
	tree string // git hash of the tested tree
	run  testRun
}

// Run returns the run.
func (r *Recording) Run() Run { return r.run.public() }

// runOrReuse runs the tests of a tree in a fresh sandbox. If recording is not nil and is a run of the
// same tree, runOrReuse returns that run instead.
func runOrReuse(ctx context.Context, cfg Config, t schemas.Task, tree string, variant Variant, recording *Recording) (testRun, error) {
	if recording == nil || recording.tree != tree {
		return runFresh(ctx, cfg, t, tree, variant)
	}
	run := recording.run
	run.tampered = slices.Clone(run.tampered) // the caller adds to it
	return run, nil
}

// runFresh places a tree in a fresh sandbox and runs the task's tests there.
func runFresh(ctx context.Context, cfg Config, t schemas.Task, tree string, variant Variant) (out testRun, err error) {
	spec := cfg.Spec
	t.Entrypoint = cmp.Or(t.Tests.Command, t.Entrypoint)
	t.Workdir = cmp.Or(spec.Workdir, t.Workdir, schemas.DefaultWorkdir)
	spec.Workdir = t.Workdir
	spec.Image = cmp.Or(spec.Image, t.Image)
	spec.Python = cmp.Or(spec.Python, t.Python)
	sb, err := cfg.Driver.Start(ctx, spec)
	if err != nil {
		return out, fmt.Errorf("starting a %s sandbox: %w", cfg.Driver.Name(), err)
	}
	defer func() {
		closeErr := sb.Close(context.WithoutCancel(ctx))
		if err == nil && closeErr != nil && !errors.Is(closeErr, env.ErrSandboxDied) {
			err = fmt.Errorf("closing sandbox: %w", closeErr)
		}
	}()
	t.Workdir = env.WorkdirOf(sb, t.Workdir)
	err = env.Stream(
		func(w io.Writer) error { return cfg.Store.Export(ctx, tree, w) },
		func(r io.Reader) error { return sb.TarIn(ctx, t.Workdir, r) },
	)
	if err != nil {
		return out, fmt.Errorf("placing the graded tree: %w", err)
	}
	return runTests(ctx, sb, t, cfg.Timeout, variant)
}
