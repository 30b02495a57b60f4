package pipeline

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/llms/tape"
	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/pipeline/normalise"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// closeTimeout bounds what is done for an episode after its end.
const closeTimeout = 30 * time.Second

// worker takes jobs until claims ends, and carries each through all stages.
func (r *run) worker(claims, all context.Context, name string) {
	for {
		lease, err := r.engine.Next(claims, name)
		if err != nil {
			if claims.Err() == nil {
				r.fail(err)
			}
			return
		}
		if err := r.take(all, lease); err != nil {
			r.fail(err)
			return
		}
	}
}

// take runs one job and settles its lease. An error is one of the engine.
func (r *run) take(all context.Context, lease *engine.Lease) error {
	job, ok, err := r.jobOf(lease)
	if err != nil {
		return err
	}
	if !ok {
		return lease.Abandon(all, "plan", classNotSelected, "not among the selected tasks and attempts")
	}
	r.hand(job, true)
	defer r.hand(job, false)
	ctx, end := context.WithCancelCause(all)
	defer end(nil)
	defer context.AfterFunc(lease.Context(), func() { end(context.Cause(lease.Context())) })()
	r.deps.Crash("claimed")
	r.deps.Observer.JobStarted(job, lease.Delivery)
	done, rec, err := r.stages(ctx, lease, job)
	settle, cancel := context.WithTimeout(context.WithoutCancel(all), r.settleTimeout())
	defer cancel()
	if err == nil {
		if r.budget != nil {
			r.budget.Restore(job, lease.Delivery, done.episode.Calls.Spent()) // whoever staged it
			r.budget.CloseShare(settle, job, lease.Delivery)
		}
		return r.finish(settle, lease, job, done)
	}
	return r.unfinished(settle, ctx, lease, job, rec, err)
}

// result of the stages: what is staged.
type result struct {
	episode observe.Episode
	hash    string
}

// finish settles a job that is staged.
func (r *run) finish(ctx context.Context, lease *engine.Lease, job schemas.Job, done result) error {
	if err := lease.Done(ctx, done.hash); err != nil && !errors.Is(err, engine.ErrLeaseLost) {
		return err
	} else if err != nil {
		// Another worker has the job; it finds the object there and settles.
		r.deps.Log.Warn("lease lost after staging", "episode", job.EpisodeID)
	} else {
		r.deps.Crash("done")
		if err := r.tidy(ctx, lease); err != nil {
			return err
		}
		r.deps.Crash("acked")
	}
	r.book(job, done.episode)
	return nil
}

// unfinished settles a job that did not come to its end: fatal and cancelled
// ones are given back untouched, the rest are ours to try again.
func (r *run) unfinished(settle, ctx context.Context, lease *engine.Lease, job schemas.Job, rec *recorder, err error) error {
	if errors.Is(err, engine.ErrLeaseLost) || errors.Is(context.Cause(ctx), engine.ErrLeaseLost) {
		r.deps.Observer.JobRetried(job, engine.ErrLeaseLost)
		return release(lease.Release(settle))
	}
	f := asFatal(err, r.ledger.Answered())
	if rec != nil {
		if err := rec.flush(); err != nil && !errors.Is(err, engine.ErrLeaseLost) && f == nil {
			f = asFatal(unanswered(err), true)
		}
	}
	if f != nil {
		r.fail(f)
	}
	if r.budget != nil {
		r.budget.CloseShare(settle, job, lease.Delivery)
	}
	if f != nil || ctx.Err() != nil {
		r.ended(job, schemas.OutcomeCancelled, schemas.ExitCancelled, "")
		return release(lease.Release(settle))
	}
	if _, ok := errors.AsType[*TaskError](err); ok {
		if failing := release(lease.Abandon(settle, stageOf(err), classOf(err), err.Error())); failing != nil {
			return failing
		}
		r.ended(job, schemas.OutcomeInfra, classOf(err), err.Error())
		return nil
	}
	delay := r.cfg.RetryDelay << min(lease.Delivery-1, 5)
	delay += rand.N(delay/2 + 1)
	state, failing := lease.Fail(settle, stageOf(err), classOf(err), err.Error(), delay)
	switch {
	case errors.Is(failing, engine.ErrLeaseLost):
	case failing != nil:
		return failing
	case state.State == engine.Dead:
		r.ended(job, schemas.OutcomeInfra, classOf(err), err.Error())
	default:
		r.mu.Lock()
		r.friction.InfraRetries++
		r.mu.Unlock()
		r.deps.Observer.JobRetried(job, errors.New(r.cfg.clean(err.Error())))
	}
	return nil
}

// ended books the outcome of a job without a staged episode.
func (r *run) ended(job schemas.Job, outcome, reason, cause string) {
	e := observe.Episode{
		ID: job.EpisodeID, GroupID: job.GroupID, Instance: job.Instance, Attempt: job.Attempt,
		Outcome: outcome, ExitReason: reason, Cause: r.cfg.clean(cause),
	}
	r.book(job, e)
}

func (r *run) book(job schemas.Job, e observe.Episode) {
	r.mu.Lock()
	r.episodes[e.ID] = e
	r.mu.Unlock()
	r.deps.Observer.JobFinished(job, e)
}

// stagePanic is a panic in a stage, turned into a failure of this job alone.
type stagePanic struct {
	value any
	stack []byte
}

func (p *stagePanic) Error() string { return fmt.Sprintf("panic: %v\n%s", p.value, p.stack) }

// stages carries a job from its log to staging. The recorder is returned as
// soon as there is one.
func (r *run) stages(ctx context.Context, lease *engine.Lease, job schemas.Job) (done result, rec *recorder, err error) {
	stage := stageRollout
	defer func() {
		if v := recover(); v != nil {
			err = &stagePanic{v, debug.Stack()}
			r.deps.Log.Error("panic in a stage", "episode", job.EpisodeID, "panic", v, "stack", string(debug.Stack()))
		}
		if err != nil {
			err = &stageError{stage, err}
		}
	}()
	if lease.Delivery > 1 { // an earlier delivery may have died between staging and settling
		if done, err = r.adopt(ctx, job); !errors.Is(err, sinks.ErrNotFound) {
			return done, nil, err
		}
	}
	task := r.plan.tasks[job.TaskID]
	if rec, err = r.openRecorder(ctx, job, lease.Delivery); err != nil {
		return done, nil, err
	}
	if rec.rollout == nil {
		if err = r.roll(ctx, lease, task, rec); err != nil {
			return done, rec, err
		}
		r.deps.Crash("rolled-out")
	}
	ep := rec.rollout.Episode
	ep.Task, ep.Steps = task, rec.steps
	for i := range ep.Steps {
		ep.Steps[i].Replayed = i < rec.rollout.Replayed
	}
	stage = stageGrade
	if rec.verdict == nil {
		if err = r.grade(ctx, task, &ep, rec); err != nil {
			return done, rec, err
		}
		r.deps.Crash("graded")
	}
	ep.Verdict = *rec.verdict
	undecided(&ep)
	stage = stageNormalise
	staged, err := normalise.Episode(&ep, r.cfg.Normalise)
	if err != nil {
		return done, rec, held(err)
	}
	staged.Calls = new(r.ledger.Calls(rec.account))
	stage = stageStage
	done, err = r.stage(ctx, job, staged)
	return done, rec, err
}

// roll takes the policy through the environment and records how it ended.
func (r *run) roll(ctx context.Context, lease *engine.Lease, task schemas.Task, rec *recorder) error {
	e, err := r.deps.NewEnv(ctx, rec.job, task)
	if err != nil {
		return fmt.Errorf("making the environment: %w", err)
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		if err := e.Close(end); err != nil {
			r.deps.Log.Warn("closing an environment", "episode", rec.job.EpisodeID, "error", err)
		}
	}()
	policy, err := r.deps.NewPolicy(rec.job, task)
	if err != nil {
		return fmt.Errorf("making the policy: %w", err)
	}
	spoken := tape.New(tape.Path(r.cfg.RunDir, rec.job.EpisodeID), r.cfg.clean)
	defer func() {
		if err := spoken.Close(); err != nil {
			r.deps.Log.Warn("closing the record of model calls", "episode", rec.job.EpisodeID, "error", err)
		}
	}()
	rec.tape = spoken
	res, err := agents.Run(ctx, agents.Config{
		Env: e, Policy: policy, Recorder: rec, Limits: r.cfg.Limits, Job: rec.job, Task: task, Clock: r.deps.Clock,
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		if asFatal(err, r.ledger.Answered()) != nil {
			r.fail(err) // before the environment is closed: others need not find out, too
		}
		return err
	}
	patch, sha, err := e.Patch(ctx)
	switch {
	case errors.Is(err, env.ErrSandboxDied) && res.ExitReason == schemas.ExitKilledSandbox:
		patch, sha = nil, "" // it took its work with it
	case errors.Is(err, env.ErrRefused):
		// The agent left what no patch can hold, a repository of its own for
		// example. Another try would find the same; the episode has no patch.
		patch, sha = nil, ""
		res.ExitReason, res.ErrorClass, res.ErrorMessage = schemas.ExitBadWorkspace, schemas.ExitBadWorkspace, err.Error()
	case err != nil:
		return fmt.Errorf("taking the patch: %w", err)
	}
	if res.Agent.ConfigJSON, err = configured(res.Agent.ConfigJSON, r.cfg); err != nil {
		return fmt.Errorf("encoding the agent's configuration: %w", err)
	}
	var left []schemas.LeftOut
	if t, ok := e.(env.Trimming); ok {
		left = t.LeftOut()
	}
	var base string
	if b, ok := e.(env.Based); ok {
		if base, err = b.Base(ctx); err != nil {
			return fmt.Errorf("naming the tree the workspace began with: %w", err)
		}
	}
	rec.steps = res.Steps
	rec.rollout = &rollout{Replayed: res.Replayed, Episode: schemas.Episode{
		Job: rec.job, Started: res.Started, Ended: res.Ended, Agent: res.Agent, EnvKey: e.Key(), Tools: res.Tools, ToolSets: res.ToolSets,
		Compared: res.Compared, Diverged: res.Diverged,
		Patch: patch, FinalSHA: sha, BaseSHA: base, LeftOut: left, ExitReason: res.ExitReason, ErrorClass: res.ErrorClass, ErrorMessage: res.ErrorMessage,
		QueueMS: lease.Waited.Milliseconds(), Delivery: lease.Delivery,
	}}
	return rec.append(ctx, kindRollout, rec.rollout)
}

// configured is what shaped the agent's way: its own settings, and the limits it
// ran under, which may change when a run is resumed. A limit of 0 is none.
func configured(settings string, cfg Config) (string, error) {
	l := cfg.Limits
	b, err := schemas.CanonicalJSON(map[string]any{
		"settings": json.RawMessage(cmp.Or(settings, "{}")),
		"limits": map[string]any{
			"max_steps": l.MaxSteps, "max_format_errors": l.MaxFormatErrors, "max_repeats": l.MaxRepeats,
			"wall_s": l.Wall.Seconds(), "max_prompt_tokens": l.MaxPromptTokens,
			"episode_cost_usd": cfg.EpisodeCost, "task_cost_usd": cfg.TaskCost,
		},
	})
	return string(b), err
}

// tests are the task's own lists, or those of a baseline run, found once.
func (r *run) tests(ctx context.Context, task schemas.Task) (schemas.TestSpec, error) {
	if r.deps.Baseline == nil || !task.Tests.NeedsBaseline() {
		return task.Tests, nil
	}
	return r.baselines.Get(ctx, task.ID, func(ctx context.Context) (schemas.TestSpec, error) {
		return r.deps.Baseline(ctx, task)
	})
}

// stage writes the episode create-only. Whoever was first has staged it.
func (r *run) stage(ctx context.Context, job schemas.Job, s sinks.Staged) (result, error) {
	body, err := sinks.EncodeStaged(s)
	if err != nil {
		return result{}, err
	}
	key := sinks.StagedKey(job.RunID, job.EpisodeID)
	r.deps.Crash("before-stage")
	err = r.patiently(ctx, func() error { return r.deps.Staging.Create(ctx, key, body) })
	if errors.Is(err, sinks.ErrExists) {
		return r.adopt(ctx, job)
	}
	if err != nil {
		return result{}, fmt.Errorf("staging: %w", err)
	}
	r.deps.Crash("staged")
	return result{observe.FromStaged(s, int64(len(body))), schemas.HashBytes(body)}, nil
}

// adopt takes the staged object as the job's result; sinks.ErrNotFound if
// there is none.
func (r *run) adopt(ctx context.Context, job schemas.Job) (result, error) {
	done, err := r.fetch(ctx, job)
	if err == nil {
		r.mu.Lock()
		r.friction.Adopted++
		r.mu.Unlock()
	}
	return done, err
}

// patiently repeats a store operation while the store is unreachable; finished
// episodes wait rather than be lost. Past the patience the run stops.
func (r *run) patiently(ctx context.Context, do func() error) error {
	deadline := time.Now().Add(r.cfg.StagePatience)
	for wait := 250 * time.Millisecond; ; wait = min(2*wait, 30*time.Second) {
		err := do()
		if err == nil || errors.Is(err, sinks.ErrExists) || errors.Is(err, sinks.ErrNotFound) || ctx.Err() != nil || asFatal(err, true) != nil {
			return err
		}
		if time.Now().Add(wait).After(deadline) {
			return r.storeError(err)
		}
		r.deps.Log.Warn("staging store", "error", err, "retry_in", wait)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}
