package pipeline

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// closeTimeout bounds the work after the end of an episode: closing its environment and settling
// its job.
const closeTimeout = 30 * time.Second

// jobRun executes one delivery of a job.
type jobRun struct {
	batch     *Batch
	baselines *env.Baselines
	functions *functionCache
	lease     *engine.Lease
	job       schemas.Job
	task      schemas.Task
	rec       *recorder // nil until the step log is open
}

// execute runs the stages of the job whose results the step log does not contain yet. The last one
// writes the episode to staging. open opens the step log.
func (j *jobRun) execute(ctx context.Context, open func() (*recorder, error)) (done StagedEpisode, err error) {
	b, stage := j.batch, stageRollout
	defer func() {
		if v := recover(); v != nil {
			err = &stagePanic{v, debug.Stack()}
			b.Deps.Log.Error("panic in a stage", "episode", j.job.EpisodeID, "panic", v, "stack", string(debug.Stack()))
		}
		if err != nil {
			err = &stageError{stage, err}
		}
	}()
	if j.lease.Delivery > 1 { // the process of an earlier delivery may have died between staging and settling
		if done, err = b.adopt(ctx, j.job); !errors.Is(err, sinks.ErrNotFound) {
			return done, err
		}
	}
	if j.rec, err = open(); err != nil {
		return done, err
	}
	if j.rec.rollout == nil {
		if err = j.rollOut(ctx); err != nil {
			return done, err
		}
	}
	ep := j.rec.rollout.Episode
	ep.Task, ep.Steps = j.task, j.rec.steps
	for i := range ep.Steps {
		ep.Steps[i].Replayed = i < j.rec.rollout.Replayed
	}
	stage = stageGrade
	b.Activities.Set(j.job.EpisodeID, observe.InTests, "")
	if j.rec.verdict == nil {
		if err = j.grade(ctx, &ep); err != nil {
			return done, err
		}
	}
	ep.Verdict = *j.rec.verdict
	markUndecided(&ep)
	stage = stageNormalise
	b.Activities.Set(j.job.EpisodeID, observe.InStaging, "")
	config := b.Config.Normalise
	source, err := j.repository(ctx)
	if err != nil {
		return done, err
	}
	config.Functions, config.Names = source.functions, source.names
	config.Compare = j.compare(ctx)
	staged, err := normalise.Episode(&ep, config)
	if err != nil {
		return done, secretAsTaskError(err)
	}
	staged.Calls = new(b.Ledger.Calls(j.rec.account))
	stage = stageStage
	return b.stage(ctx, j.job, staged)
}

// repository returns the functions and names of the task's repository, which the episode's metrics use.
func (j *jobRun) repository(ctx context.Context) (repository, error) {
	tree, err := j.batch.Deps.Source.Tree(ctx, j.task.InstanceID)
	if err != nil {
		return repository{}, fmt.Errorf("opening the repository of %s: %w", j.task.InstanceID, err)
	}
	return j.functions.get(tree)
}

// rollOut runs the agent in an environment and records the result.
func (j *jobRun) rollOut(ctx context.Context) error {
	b := j.batch
	e, err := b.Deps.NewEnv(ctx, j.job, j.task)
	if err != nil {
		return fmt.Errorf("making the environment: %w", err)
	}
	defer func() {
		closeCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
		defer cancel()
		if err := e.Close(closeCtx); err != nil {
			b.Deps.Log.Warn("closing an environment", "episode", j.job.EpisodeID, "error", err)
		}
	}()
	policy, err := b.Deps.NewPolicy(ctx, j.job, j.task)
	if err != nil {
		return fmt.Errorf("making the policy: %w", err)
	}
	calls := tape.New(tape.Path(b.Config.RunDir, j.job.EpisodeID), b.Config.Clean)
	defer func() {
		if err := calls.Close(); err != nil {
			b.Deps.Log.Warn("closing the record of model calls", "episode", j.job.EpisodeID, "error", err)
		}
	}()
	j.rec.tape = calls
	res, err := agents.Run(ctx, agents.Config{
		Env: e, Policy: policy, Recorder: j.rec, Limits: b.Config.Limits, Job: j.job, Task: j.task, Clock: b.Deps.Clock,
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		if asFatal(err, b.Ledger.Answered()) != nil {
			b.Fail(err) // before the environment is closed, so that other jobs do not meet the same error
		}
		return err
	}
	patch, sha, err := e.Patch(ctx)
	switch {
	case errors.Is(err, env.ErrSandboxDied) && res.ExitReason == schemas.ExitKilledSandbox:
		patch, sha = nil, "" // the work is lost with the sandbox
	case errors.Is(err, env.ErrRefused):
		// The workspace contains something that a patch cannot express, such as a nested Git
		// repository. A retry would find the same, so the episode ends without a patch.
		patch, sha = nil, ""
		res.ExitReason, res.ErrorClass, res.ErrorMessage = schemas.ExitBadWorkspace, schemas.ExitBadWorkspace, err.Error()
	case err != nil:
		return fmt.Errorf("taking the patch: %w", err)
	}
	if res.Agent.ConfigJSON, err = agentConfig(res.Agent.ConfigJSON, b.Config); err != nil {
		return fmt.Errorf("encoding the agent's configuration: %w", err)
	}
	var leftOut []schemas.OmittedFile
	if t, ok := e.(env.PatchTrimmer); ok {
		leftOut = t.LeftOut()
	}
	var base string
	if t, ok := e.(env.BaseHasher); ok {
		if base, err = t.Base(ctx); err != nil {
			return fmt.Errorf("finding the base tree of the workspace: %w", err)
		}
	}
	j.rec.steps = res.Steps
	j.rec.rollout = &rollout{Replayed: res.Replayed, Episode: schemas.Episode{
		Job: j.job, Started: res.Started, Ended: res.Ended, Agent: res.Agent, EnvKey: e.Key(), Tools: res.Tools, ToolSets: res.ToolSets,
		Compared: res.Compared, Diverged: res.Diverged,
		Patch: patch, FinalSHA: sha, BaseSHA: base, LeftOut: leftOut, ExitReason: res.ExitReason, ErrorClass: res.ErrorClass, ErrorMessage: res.ErrorMessage,
		QueueMS: j.lease.Waited.Milliseconds(), Delivery: j.lease.Delivery,
	}}
	return j.rec.append(ctx, kindRollout, j.rec.rollout)
}

// agentConfig returns the settings of the agent and the limits of its episode as canonical JSON.
// The limits may change when a run is resumed. 0 means no limit.
func agentConfig(settings string, cfg Config) (string, error) {
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

// markUndecided sets the exit reason of an episode that has no verdict because its patch lacks
// files.
func markUndecided(ep *schemas.Episode) {
	if len(ep.LeftOut) > 0 && ep.Verdict.Status == schemas.VerifyNotRun {
		ep.ExitReason, ep.ErrorClass, ep.ErrorMessage = schemas.ExitBadWorkspace, schemas.ExitBadWorkspace, ep.Verdict.Reason
	}
}
