package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tracesmith/tracesmith/pipeline"
	"github.com/tracesmith/tracesmith/pipeline/budget"
	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/schemas"
)

var errRunOver = errors.New("the run takes no more jobs")

// worker executes jobs of one run.
type worker struct {
	cfg      Config
	batch    *pipeline.Batch
	executor *pipeline.Executor
}

func newWorker(cfg Config, b *pipeline.Batch) *worker {
	w := &worker{cfg: cfg, batch: b, executor: pipeline.NewExecutor(b)}
	w.executor.Job, w.executor.Shared, w.executor.Patience = w.job, true, cfg.Conn.Patience()
	return w
}

// join opens the streams and the budget of the run. joined is false without an error if the run
// has completed since the worker saw it in the registry.
func (w *worker) join(ctx context.Context, instance string) (joined bool, err error) {
	b, conn := w.batch, w.cfg.Conn
	b.Engine, err = engine.Open(ctx, engine.Options{
		RunID: b.RunID, Conn: conn, Join: true, Instance: instance, AckWait: b.Config.Lease, Log: b.Deps.Log,
	})
	if err == nil {
		if err = w.joinBudget(ctx); err == nil {
			return true, nil
		}
		defer func() { err = errors.Join(err, b.Engine.Close()) }()
	}
	if conn.Completed(ctx, b.RunID) {
		return false, nil
	}
	return false, pipeline.WithExitCode(err)
}

// joinBudget opens the shared budget of the run, if it has one.
func (w *worker) joinBudget(ctx context.Context) error {
	b := w.batch
	entry, _, err := w.cfg.Conn.RunEntry(ctx, b.RunID)
	if err != nil {
		return err
	}
	details, err := readDetails(entry)
	if err != nil {
		return err
	}
	if limits := w.cfg.sharedLimits(); !details.Budgeted && limits.Run == 0 && limits.Task == 0 {
		return nil
	}
	store, err := b.Engine.JoinBudget(ctx)
	if err == nil {
		w.executor.Budget = budget.NewClient(ctx, store, engine.Instance(), w.cfg.Poll/4, b.Deps.Log)
	}
	return err
}

// job returns the job of a lease. ok is false if the job is not selected. The error is ErrOutdated if
// a new coordinator may have selected it; then this worker takes no more jobs and joins again.
func (w *worker) job(lease *engine.Lease) (job schemas.Job, ok bool, err error) {
	b := w.batch
	if err := json.Unmarshal(lease.Data, &job); err != nil {
		return job, false, fmt.Errorf("reading job %s: %w", lease.ID, err)
	}
	if b.HasTask(job.TaskID) && job.Attempt < b.Config.Attempts && job.AgentKey == b.Config.AgentKey && job.RunID == b.RunID {
		return job, true, nil
	}
	entry, _, err := w.cfg.Conn.RunEntry(lease.Context(), b.RunID)
	if err != nil {
		return job, false, err
	}
	if details, err := readDetails(entry); err != nil || details.RunSpec == w.cfg.specName() {
		return job, false, err
	}
	b.Drain(errRunOver)
	return job, false, pipeline.ErrOutdated
}
