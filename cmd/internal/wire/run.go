package wire

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/pipeline"
	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/pipeline/fleet"
	"github.com/tracesmith/tracesmith/pipeline/normalise"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/pipeline/preflight"
	"github.com/tracesmith/tracesmith/pipeline/redact"
	"github.com/tracesmith/tracesmith/pipeline/rundir"
	"github.com/tracesmith/tracesmith/schemas"
)

// RunOptions are the inputs of a run that its configuration does not hold.
type RunOptions struct {
	Fresh            bool
	Retry            []string
	RunID            string          // on a worker, the ID of the run; "": that of the run directory, or a new one
	Cluster          *engine.Conn    // where workers of other processes take the jobs; nil: this process executes them
	Drain            <-chan struct{} // see pipeline.Deps.Drain
	Command          []string
	Producer, Commit string
	Getenv           func(string) string
	Environ          []string  // NAME=value; values of secret names are redacted
	Stdin            io.Reader // input of the person who acts as the agent, if one does
	Progress         io.Writer
	Warn             io.Writer
	Observer         observe.Observer // nil: shows progress on Progress
	Clock            func() time.Time // nil: time.Now
	Hooks            pipeline.Hooks
}

// Run is a batch of episodes that is ready to start.
type Run struct {
	Bench *Workbench
	Agent *Agent
	Tasks []schemas.Task
	cfg   configs.Config
	opt   RunOptions

	baselines env.Baselines // by task id

	idOnce sync.Once
	id     string // of the run
}

// NewRun checks everything that can be checked before a sandbox starts. It starts the
// MCP servers.
func NewRun(ctx context.Context, cfg configs.Config, opt RunOptions) (*Run, error) {
	agent, err := NewAgent(cfg, opt.Getenv)
	if err != nil {
		return nil, err
	}
	agent.Warn = opt.Warn
	if agent.needs.Console {
		agent.Console = NewConsole(opt.Stdin, opt.Progress)
		cfg.Run.Workers = 1
		if cfg.Agent.Wall == configs.Default().Agent.Wall { // people may think as long as they like
			cfg.Agent.Wall = 0
		}
	}
	bench, err := NewWorkbench(ctx, cfg, Host{Getenv: opt.Getenv, Warn: opt.Warn, Version: opt.Producer})
	if err != nil {
		return nil, err
	}
	agent.Trace = bench.Trace
	r := &Run{Bench: bench, Agent: agent, cfg: cfg, opt: opt}
	if err = agent.Offer(bench.Toolbox.Schemas()); err == nil {
		r.Tasks, err = SelectTasks(ctx, bench.Source, cfg.Tasks)
	}
	if err == nil {
		err = agent.ReadRecordings(ctx, r.Tasks, cfg.S3)
	}
	if err == nil {
		err = r.checkPolicies()
	}
	if err != nil {
		return nil, errors.Join(err, bench.Close())
	}
	return r, nil
}

// checkPolicies builds each task's policy once and renders its prompts, to find wrong
// settings, wrong templates and tasks that the agent cannot work on. Its error names all such tasks.
func (r *Run) checkPolicies() error {
	var problems []error
	var suitable []string
	for _, t := range r.Tasks {
		if err := r.checkPolicy(t); err != nil {
			problems = append(problems, err)
			continue
		}
		suitable = append(suitable, t.InstanceID)
	}
	if len(problems) == 0 {
		return nil
	}
	err := problems[0]
	if len(problems) > 1 && problems[1].Error() != err.Error() { // not an error that every task has
		err = fmt.Errorf("%d tasks do not suit the agent %s:\n%w", len(problems), r.cfg.Agent.Kind, errors.Join(problems[:min(len(problems), maxProblems)]...))
	}
	if len(suitable) == 0 || len(suitable) > maxProblems {
		return err
	}
	return &pipeline.StopError{Code: 2, Err: err, Remedy: "the other tasks, with -p 'tasks.ids=[" + strings.Join(suitable, ",") + "]'"}
}

// maxProblems is how many tasks an error names.
const maxProblems = 20

func (r *Run) checkPolicy(t schemas.Task) error {
	if r.Agent.needs.Trace && len(t.Tests.FailToPass) == 0 && !t.Tests.NeedsBaseline() {
		return noFailingTest(t)
	}
	p, err := r.Agent.Policy(schemas.Job{}, t)
	if err != nil {
		return err
	}
	if err := r.Agent.checkPrompts(p, t.Public()); err != nil {
		return fmt.Errorf("task %s: %w", t.InstanceID, err)
	}
	return nil
}

// noFailingTest is the error of a task with an agent that follows a failing test.
func noFailingTest(t schemas.Task) error {
	return fmt.Errorf("task %s is graded by the exit code of its entrypoint, so no failing test is known: use pytest or unittest as the entrypoint, list tests.fail_to_pass, or use an agent that asks a model (react)", t.InstanceID)
}

// policy builds the policy of one job. An agent that follows a failing test gets the tests that the task lists. If the task lists
// none, it gets those that failed when the tests ran.
func (r *Run) policy(ctx context.Context, j schemas.Job, t schemas.Task) (agents.Policy, error) {
	if r.Agent.needs.Trace && len(t.Tests.FailToPass) == 0 {
		spec, err := r.Baseline(ctx, t)
		if err != nil {
			return nil, err
		}
		if t.Tests.FailToPass = spec.FailToPass; len(spec.FailToPass) == 0 {
			return nil, &pipeline.TaskError{Err: noFailingTest(t)}
		}
	}
	return r.Agent.Policy(j, t)
}

// Close releases the workbench.
func (r *Run) Close() error { return r.Bench.Close() }

// Execute runs or resumes the batch.
func (r *Run) Execute(ctx context.Context) (observe.Report, error) {
	cfg, deps, err := r.parts(ctx)
	if err != nil {
		return observe.Report{}, err
	}
	r.warnChangedLimits()
	r.reap(ctx)
	defer func() { // a daemon may have started a sandbox after the death of the process that requested it
		if ctx.Err() == nil {
			r.reap(ctx)
		}
	}()
	if r.opt.Cluster == nil {
		return pipeline.Run(ctx, cfg, deps)
	}
	offer, err := r.offer(cfg)
	if err != nil {
		return observe.Report{}, err
	}
	place := r.opt.Cluster.Place()
	fmt.Fprintf(r.opt.Progress, "coordinating via %s\nstart workers with: tracesmith worker --nats %s\n", place, place)
	return fleet.Coordinate(ctx, fleet.Config{Config: cfg, Conn: r.opt.Cluster, InFlight: r.cfg.Engine.InFlight, RunSpec: offer}, deps)
}

// warnChangedLimits names limits of an episode that differ from those with which the run began, because the
// episodes that it reuses had those.
func (r *Run) warnChangedLimits() {
	var began configs.Config
	info, err := rundir.ReadInfo(r.cfg.Run.Dir)
	if err != nil || r.opt.Fresh || json.Unmarshal(info.Config, &began) != nil {
		return
	}
	for _, limit := range []struct {
		setting    string
		began, now any
	}{
		{"agent.max_steps", began.Agent.MaxSteps, r.cfg.Agent.MaxSteps}, {"agent.wall", began.Agent.Wall, r.cfg.Agent.Wall},
		{"agent.max_prompt_tokens", began.Agent.MaxPromptTokens, r.cfg.Agent.MaxPromptTokens},
	} {
		if limit.began != limit.now {
			fmt.Fprintf(r.opt.Warn, "warning: the run began with %s %v, and continues with %v: reused episodes are not run again\n", limit.setting, limit.began, limit.now)
		}
	}
}

// Episodes returns the ids of the batch's episodes, in the order in which they start.
func (r *Run) Episodes(ctx context.Context) ([]string, error) {
	cfg, deps, err := r.parts(ctx)
	if err != nil {
		return nil, err
	}
	jobs, err := pipeline.Jobs(ctx, cfg, deps.Source)
	ids := make([]string, len(jobs))
	for i, j := range jobs {
		ids[i] = j.EpisodeID
	}
	return ids, err
}

// runID returns the id of the run, from which the ids of its episodes derive. A run that
// stages in its own directory has a random id, so that the same configuration in two
// directories makes different episodes, which can be published together. With a cluster
// or a configured staging location, the id of a new directory depends only on plan, a hash of
// the agent and the tasks, so that the same command resumes the same run on every machine.
func (r *Run) runID(plan string) string {
	r.idOnce.Do(func() {
		const digits = 8
		name := r.cfg.Run.Name + "-"
		if r.id = r.opt.RunID; r.id != "" {
			return
		}
		r.id = name + plan[:digits]
		info, err := rundir.ReadInfo(r.cfg.Run.Dir)
		if err == nil && !r.opt.Fresh && len(info.RunID) == len(name)+digits && strings.HasPrefix(info.RunID, name) {
			r.id = info.RunID
			return
		}
		if r.cfg.Run.Staging != "" || r.opt.Cluster != nil {
			return
		}
		r.id = name + schemas.ShortHash([]any{plan, rand.Text()})[:digits]
	})
	return r.id
}

// parts returns the pipeline's configuration and dependencies, which are the same for
// the coordinator and all workers of a run.
func (r *Run) parts(ctx context.Context) (pipeline.Config, pipeline.Deps, error) {
	identity := r.Agent.Identity(r.Bench.Toolbox.Schemas())
	var ids []string
	for _, t := range r.Tasks {
		ids = append(ids, t.InstanceID)
	}
	runID := r.runID(schemas.ShortHash([]any{identity, ids}))
	place := stagingPlace(r.cfg.Run, runID)
	staging, err := OpenStore(ctx, cmp.Or(place, r.cfg.Run.Dir), r.cfg.S3)
	if err != nil {
		return pipeline.Config{}, pipeline.Deps{}, err
	}
	return pipeline.Config{
			RunDir: r.cfg.Run.Dir, RunID: runID, Staging: place, Lease: r.cfg.Engine.Lease,
			Fresh: r.opt.Fresh, Tasks: ids, Attempts: r.cfg.Run.Attempts, AgentKey: schemas.ShortHash(identity), Identity: identity,
			Resolved: mustCanonicalJSON(r.cfg), Command: r.opt.Command,
			Workers: r.cfg.Run.Workers, Retry: r.opt.Retry,
			CallTimeout: r.callTimeout(),
			MaxCost:     r.cfg.Limits.TotalCost, TaskCost: r.cfg.Limits.TaskCost, EpisodeCost: r.cfg.Limits.EpisodeCost,
			Limits: agents.Limits{
				MaxSteps: r.cfg.Agent.MaxSteps, MaxFormatErrors: r.cfg.Agent.MaxFormatErrors, MaxRepeats: r.cfg.Agent.MaxRepeats,
				Wall: r.cfg.Agent.Wall, MaxPromptTokens: r.cfg.Agent.MaxPromptTokens,
			},
			Normalise: normalise.Config{Producer: r.opt.Producer, Commit: r.opt.Commit, Prices: priceTable(r.cfg.Prices), Secrets: redact.NewKnown(append(r.Agent.Secrets(r.opt.Getenv), redact.Environment(r.opt.Environ)...))},
		}, pipeline.Deps{
			Drain: r.opt.Drain, Clock: r.opt.Clock,
			Source: r.Bench.Source, NewEnv: r.NewEnv, NewPolicy: r.policy, Verifier: r.Bench, Baseline: r.Baseline, Pairs: r.Bench.Pairs(),
			Preflight: r.preflight, Hooks: r.opt.Hooks, Staging: staging, Observer: r.observer(), Endpoints: r.endpoints,
		}, nil
}

// observer returns the observer that displays progress. It prints plain lines if a person
// acts as the agent, because the person uses the terminal.
func (r *Run) observer() observe.Observer {
	if r.opt.Observer != nil {
		return r.opt.Observer
	}
	if r.Agent.needs.Console {
		return observe.NewPlain(r.opt.Progress)
	}
	return observe.New(r.opt.Progress)
}

// callTimeout returns the time limit of a model call; 0 if the agent has no model.
func (r *Run) callTimeout() time.Duration {
	if !r.Agent.needs.Model {
		return 0
	}
	return r.cfg.LLM.Timeout
}

// endpoints returns the state of the model servers.
func (r *Run) endpoints() (out []observe.Endpoint) {
	for _, s := range r.Agent.servers {
		for i, e := range s.llm.AllEndpoints() {
			now := s.parts[i].pace.State()
			_, place, _ := strings.Cut(e.BaseURL, "://")
			one := observe.Endpoint{Name: strings.TrimSpace(s.llm.Model + " " + place), Running: now.Running, Refused: now.Refused, Failed: now.Failed, Pause: now.Pause}
			if !math.IsInf(now.Parallel, 1) {
				one.Limit = int(now.Parallel)
			}
			out = append(out, one)
		}
	}
	return out
}

// reap removes what killed processes left behind, even if no job is left: the last
// process may have died between its last episode and its exit.
func (r *Run) reap(ctx context.Context) {
	if n, err := r.Bench.Reap(ctx, r.Tasks); err != nil {
		fmt.Fprintf(r.opt.Warn, "warning: %v\n", err)
	} else if n > 0 {
		fmt.Fprintf(r.opt.Warn, "removed sandboxes and directories that earlier processes left behind: %d\n", n)
	}
}

// preflight runs before the first episode of a run, unless everything is staged already. It performs
// the checks that are cheap and, if there is only one task, checks whether its tests fail.
func (r *Run) preflight(ctx context.Context) error {
	for _, check := range r.cheapChecks(ctx) {
		for _, result := range check(ctx) {
			switch result.Status {
			case preflight.Failed:
				return result.Err
			case preflight.Warning:
				fmt.Fprintf(r.opt.Warn, "warning: %s\n", result.Message)
			}
		}
	}
	if len(r.Tasks) == 1 {
		err := r.checkTests(ctx, r.Tasks[0])
		if defect, ok := errors.AsType[*pipeline.TaskError](err); ok {
			return &pipeline.StopError{Code: 2, Err: defect}
		}
		return err
	}
	return nil
}

// checkTests returns an error if a task without test lists has no failing tests, before an
// agent works on a task that cannot be solved.
func (r *Run) checkTests(ctx context.Context, t schemas.Task) error {
	if !t.Tests.NeedsBaseline() && t.Tests.Method != schemas.VerifyExitCode {
		return nil
	}
	_, err := r.Baseline(ctx, t)
	return err
}

// Baseline returns the test lists of a task. It finds them once for all jobs of the task.
func (r *Run) Baseline(ctx context.Context, t schemas.Task) (schemas.TestSpec, error) {
	return r.baselines.Get(ctx, t.ID, func(ctx context.Context) (schemas.TestSpec, error) { return r.Bench.Baseline(ctx, t) })
}

// NewEnv returns the environment of one job. It returns an error if the task's tests do not
// fail.
func (r *Run) NewEnv(ctx context.Context, _ schemas.Job, t schemas.Task) (env.Env, error) {
	if err := r.checkTests(ctx, t); err != nil {
		return nil, err
	}
	return r.Bench.NewEnv(ctx, t)
}

// priceTable returns a name, with a hash, for the prices from which costs are computed; ""
// if there are none.
func priceTable(prices []configs.Price) string {
	if len(prices) == 0 {
		return ""
	}
	return "config:" + schemas.ShortHash(prices)
}
