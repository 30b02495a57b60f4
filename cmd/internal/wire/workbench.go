package wire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/semaphore"

	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/drivers"
	"github.com/tracesmith/tracesmith/env/pdb"
	"github.com/tracesmith/tracesmith/env/verify"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/env/workspace/setup"
	"github.com/tracesmith/tracesmith/pipeline"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/tools"
	"github.com/tracesmith/tracesmith/tools/mcp"
)

// Workbench creates environments, and runs tests for baselines and verdicts. It holds the
// task source, the sandbox drivers, the tool set and the git store. It is safe for
// concurrent use.
type Workbench struct {
	Source  env.Source
	Toolbox *tools.Set

	cfg     configs.Config
	servers *mcp.Servers
	store   *workspace.Store
	builder *setup.Builder
	scratch string
	drivers map[string]env.Driver
	limited map[string]env.Driver // drivers, with the limit on concurrent starts

	gradings *semaphore.Weighted // bounds concurrent test runs; nil: no limit
}

// NewWorkbench builds the components that a configuration names. It starts only the MCP
// servers, whose tools are part of a run's identity.
func NewWorkbench(ctx context.Context, cfg configs.Config, host Host) (*Workbench, error) {
	w := &Workbench{
		cfg: cfg, drivers: map[string]env.Driver{}, limited: map[string]env.Driver{},
		builder: &setup.Builder{Cache: setup.Cache{Dir: setup.DefaultCache(), Limit: int64(cfg.Sandbox.SetupCache)}, Timeout: cfg.Sandbox.SetupTimeout},
	}
	if err := w.build(ctx, host); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func (w *Workbench) build(ctx context.Context, host Host) (err error) {
	cfg := w.cfg
	if w.Source, err = Source(cfg.Tasks); err != nil {
		return err
	}
	for _, kind := range env.Drivers.Kinds() {
		if w.drivers[kind], err = driver(cfg, kind); err != nil {
			return err
		}
		if w.limited[kind] = w.drivers[kind]; cfg.Run.Starts > 0 {
			w.limited[kind] = env.LimitStarts(w.drivers[kind], cfg.Run.Starts)
		}
	}
	if cfg.Run.Gradings > 0 {
		w.gradings = semaphore.NewWeighted(int64(cfg.Run.Gradings))
	}
	if cfg.Sandbox.Kind != "" && w.drivers[cfg.Sandbox.Kind] == nil {
		return fmt.Errorf("sandbox.kind: unknown sandbox %q: choose one of %s", cfg.Sandbox.Kind, strings.Join(env.Drivers.Kinds(), ", "))
	}
	if w.scratch, err = drivers.MakeScratch("work"); err != nil {
		return err
	}
	if w.store, err = workspace.Open(filepath.Join(w.scratch, "git")); err != nil {
		return err
	}
	w.builder.Placement = w.store.Placement
	return w.openToolbox(ctx, host)
}

// Close removes the scratch files and stops the MCP servers.
func (w *Workbench) Close() error {
	if w.servers != nil {
		w.servers.Close()
	}
	return errors.Join(w.builder.Close(), os.RemoveAll(w.scratch))
}

// Driver returns the sandbox driver of a task: that of sandbox.kind if it is set, docker if
// the task or the configuration names an image, or else bubblewrap.
func (w *Workbench) Driver(t schemas.Task) env.Driver {
	return w.limited[w.kind(t)]
}

func (w *Workbench) kind(t schemas.Task) string {
	switch {
	case w.cfg.Sandbox.Kind != "":
		return w.cfg.Sandbox.Kind
	case t.Image != "" || w.cfg.Sandbox.Image != "":
		return "docker"
	}
	return "bubblewrap"
}

// Reap removes sandboxes and directories that dead processes left behind, and returns their
// number.
func (w *Workbench) Reap(ctx context.Context, tasks []schemas.Task) (int, error) {
	total, seen := 0, map[string]bool{}
	for _, t := range tasks {
		d := w.Driver(t)
		if seen[d.Name()] {
			continue
		}
		seen[d.Name()] = true
		n, err := env.RemoveLeftovers(ctx, d)
		if err != nil {
			return total, fmt.Errorf("removing left-over %s sandboxes: %w", d.Name(), err)
		}
		total += n
	}
	n, err := env.RemoveLeftovers(ctx, drivers.Scratch{})
	if err != nil {
		return total, fmt.Errorf("removing left-over directories: %w", err)
	}
	return total + n, nil
}

// spec returns the specification of a task's sandbox. It runs the task's setup unless the
// result is cached.
func (w *Workbench) spec(ctx context.Context, d env.Driver, t schemas.Task, tree env.Tree) (env.SandboxSpec, error) {
	return w.builder.Prepare(ctx, d, w.bareSpec(t), t, tree)
}

// bareSpec returns the specification of a task's sandbox without its setup.
func (w *Workbench) bareSpec(t schemas.Task) env.SandboxSpec {
	c := w.cfg.Sandbox
	return env.SandboxSpec{
		Label: t.InstanceID, Image: cmp.Or(c.Image, t.Image), Python: cmp.Or(c.Python, t.Python), Workdir: t.Workdir,
		Limits: env.Limits{MemoryBytes: int64(c.Memory), DiskBytes: int64(c.Disk), Processes: c.Processes, CPUs: c.CPUs},
	}
}

// NewEnv returns the environment of a task; Reset starts its sandbox.
func (w *Workbench) NewEnv(ctx context.Context, t schemas.Task) (env.Env, error) {
	return w.NewEnvOn(ctx, w.Driver(t), t)
}

// NewEnvOn is like NewEnv, with another driver.
func (w *Workbench) NewEnvOn(ctx context.Context, d env.Driver, t schemas.Task) (env.Env, error) {
	tree, err := w.Source.Tree(ctx, t.InstanceID)
	if err != nil {
		return nil, fmt.Errorf("reading the repository of %s: %w", t.InstanceID, err)
	}
	spec, err := w.spec(ctx, d, t, tree)
	if err != nil {
		return nil, err
	}
	e, err := env.New(env.Config{
		Driver: d, Spec: spec, Task: t, Tree: tree, Toolbox: w.Toolbox, Workspace: w.store,
		NewDebugger: newDebugger, Evaluate: verify.Eval, CommandTimeout: w.cfg.Sandbox.CommandTimeout,
	})
	if err != nil {
		return nil, fmt.Errorf("making the environment of %s: %w", t.InstanceID, err)
	}
	return e, nil
}

func newDebugger(sb env.Sandbox, t schemas.Task) env.Debugger {
	return pdb.New(pdb.Config{Sandbox: sb, Workdir: t.Workdir, Entrypoint: cmp.Or(t.DebugEntrypoint, t.Entrypoint)})
}

// Verify implements env.Verifier. It grades the patch in a fresh sandbox.
func (w *Workbench) Verify(ctx context.Context, t schemas.Task, tree env.Tree, patch []byte, finalSHA string) (schemas.Verdict, error) {
	v, err := w.verifier(ctx, t, tree)
	if err != nil {
		return schemas.Verdict{}, err
	}
	done, err := w.acquireGrading(ctx)
	if err != nil {
		return schemas.Verdict{}, err
	}
	defer done()
	verdict, err := v.Verify(ctx, t, tree, patch, finalSHA)
	return verdict, asTaskError(err)
}

// Baseline finds a task's test lists by running its tests on the base and, if there is
// a gold patch, on the fixed state.
func (w *Workbench) Baseline(ctx context.Context, t schemas.Task) (schemas.TestSpec, error) {
	tree, err := w.Source.Tree(ctx, t.InstanceID)
	if err != nil {
		return schemas.TestSpec{}, fmt.Errorf("reading the repository of %s: %w", t.InstanceID, err)
	}
	v, err := w.verifier(ctx, t, tree)
	if err != nil {
		return schemas.TestSpec{}, err
	}
	done, err := w.acquireGrading(ctx)
	if err != nil {
		return schemas.TestSpec{}, err
	}
	defer done()
	spec, err := v.Baseline(ctx, t, tree)
	return spec, asTaskError(err)
}

// acquireGrading waits until another test run may start. The caller must call done when
// the run has ended.
func (w *Workbench) acquireGrading(ctx context.Context) (done func(), err error) {
	if w.gradings == nil {
		return func() {}, nil
	}
	if err := w.gradings.Acquire(ctx, 1); err != nil {
		return nil, fmt.Errorf("waiting for a turn to grade: %w", err)
	}
	return func() { w.gradings.Release(1) }, nil
}

// asTaskError returns a *pipeline.TaskError for an error that is a defect of the task and
// would recur.
func asTaskError(err error) error {
	if defect, ok := errors.AsType[*verify.TaskError](err); ok {
		return &pipeline.TaskError{Err: defect}
	}
	return err
}

func (w *Workbench) verifier(ctx context.Context, t schemas.Task, tree env.Tree) (*verify.Verifier, error) {
	d := w.Driver(t)
	spec, err := w.spec(ctx, d, t, tree)
	if err != nil {
		return nil, err
	}
	return verify.New(verify.Config{Driver: d, Spec: spec, Store: w.store, Timeout: w.cfg.Sandbox.VerifyTimeout}), nil
}
