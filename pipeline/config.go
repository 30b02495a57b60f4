package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/pipeline/normalise"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// Config of one run. RunDir, AgentKey and Identity are required.
type Config struct {
	RunDir string
	RunID  string // "": the directory's own, or a new one
	Fresh  bool   // a used directory is moved aside first, never deleted

	Tasks    []string // instance ids to run; empty: all of the source
	Attempts int      // samples per task; default 1
	AgentKey string   // hash of agent, prompts, tools, model and sampling: part of every job's id
	// Identity names what must not change when a run directory is used again,
	// for people: "agent", "model", "prompts", "tools" ... The task set and the
	// schema version are added.
	Identity map[string]string
	Resolved json.RawMessage // the full configuration, for run.json, which gets it without secrets
	Command  []string        // how the user started this, for the summary

	Workers int           // default 1
	Retry   []string      // outcomes to run again; only "infra" can be
	Limits  agents.Limits // of each episode

	// What the model may cost, in USD, earlier invocations included; 0: no limit.
	// A run at its limit stops, resumable; an episode at its own, or its task's
	// (which all attempts share), ends as max_cost.
	MaxCost, TaskCost, EpisodeCost float64

	// Staging says for run.json where Deps.Staging is; "": in RunDir.
	Staging string
	Lease   time.Duration // a silent owner loses its job after this; default 60s
	// LookEvery is how often a worker on a cluster tells the board of itself and asks
	// for the run's phase, default 2s. The budget is read again more often: by its
	// coordinator after half of this, by a worker that waits for money after a quarter.
	LookEvery time.Duration
	InFlight  int    // jobs in workers' hands over a cluster; default 65536
	Offer     []byte // what a cluster's workers need to execute jobs of this run

	// Unsynced leaves it to the kernel when the embedded engine's files are on
	// disk. Tests alone: a power cut then loses what was acknowledged.
	Unsynced bool

	Normalise     normalise.Config
	RetryDelay    time.Duration // before the first retry of a failed job, doubled each time; default 5s
	StagePatience time.Duration // how long a store may be unreachable; default 10m
	MinFree       uint64        // bytes that must be free in RunDir; 0: the engine's default
}

// Deps are the parts a run is made of. Source, NewEnv, NewPolicy, Verifier and
// Staging are required.
type Deps struct {
	Source    env.Source
	NewEnv    func(ctx context.Context, j schemas.Job, t schemas.Task) (env.Env, error)
	NewPolicy func(j schemas.Job, t schemas.Task) (agents.Policy, error)
	Verifier  env.Verifier
	// Baseline finds the test lists of a task that comes without them; nil: such
	// tasks are judged as they are.
	// A *TaskError of NewEnv, Baseline or Verifier is final for that job.
	Baseline func(ctx context.Context, t schemas.Task) (schemas.TestSpec, error)
	// Preflight is asked before the first job of an invocation, never when
	// everything is staged already; its error stops the run with nothing begun.
	// May be nil.
	Preflight func(ctx context.Context) error
	// Staging holds staging/<run>/<episode>.json.zst; it may be rooted at RunDir
	// but must not write there before its first Create.
	Staging  sinks.Store
	Observer observe.Observer // nil: silent
	// Cluster is where workers of other processes execute the jobs; nil: this
	// process does.
	Cluster *engine.Conn
	// Drain, when closed, stops the taking of jobs; running ones finish.
	Drain <-chan struct{}
	Clock func() time.Time // nil: time.Now
	Log   *slog.Logger     // nil: nowhere
	// Crash is called at every boundary of a job with its name (CrashPoints, CallCrashPoints);
	// tests die in it. nil outside tests.
	Crash func(point string)
}

// CrashPoints are the boundaries at which Deps.Crash is called, in order.
var CrashPoints = []string{
	"claimed", "recorded-reply", "recorded-step", "rolled-out", "graded", "before-stage", "staged", "done", "acked",
}

// CallCrashPoints are those of a call to a model, for agents that make some.
var CallCrashPoints = []string{"announced-call", "answered-call"}

func (c Config) withDefaults() Config {
	if c.Attempts == 0 {
		c.Attempts = 1
	}
	if c.Workers == 0 {
		c.Workers = 1
	}
	if c.RetryDelay == 0 {
		c.RetryDelay = 5 * time.Second
	}
	if c.Lease == 0 {
		c.Lease = time.Minute
	}
	if c.LookEvery == 0 {
		c.LookEvery = 2 * time.Second
	}
	if c.InFlight == 0 {
		c.InFlight = 1 << 16
	}
	if c.StagePatience == 0 {
		c.StagePatience = 10 * time.Minute
	}
	return c
}

func (c Config) validate(d Deps) error {
	var errs []error
	need := func(ok bool, format string, a ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, a...))
		}
	}
	need(c.RunDir != "", "a run needs a run directory")
	need(c.AgentKey != "", "a run needs an agent key")
	need(c.Attempts >= 1, "attempts: %d is not at least 1", c.Attempts)
	need(c.Workers >= 1, "workers: %d is not at least 1", c.Workers)
	need(d.Source != nil && d.NewEnv != nil && d.NewPolicy != nil && d.Verifier != nil && d.Staging != nil,
		"a run needs a task source, environments, policies, a verifier and a staging store")
	if c.RunID != "" {
		errs = append(errs, engine.CheckRunID(c.RunID))
	}
	for _, r := range c.Retry {
		need(r == schemas.OutcomeInfra, "retry: %q cannot be run again in the same run directory: its episodes are staged and stay; only %q can", r, schemas.OutcomeInfra)
	}
	if err := errors.Join(errs...); err != nil {
		return &StopError{Code: 2, Err: err}
	}
	return nil
}

func (d Deps) withDefaults() Deps {
	if d.Observer == nil {
		d.Observer = observe.Silent{}
	}
	if d.Clock == nil {
		d.Clock = time.Now
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	if d.Preflight == nil {
		d.Preflight = func(context.Context) error { return nil }
	}
	if d.Crash == nil {
		d.Crash = func(string) {}
	}
	return d
}

// plan is what a run selects.
type plan struct {
	tasks map[string]schemas.Task // by id
	order []string                // task ids as the source lists them
	jobs  []schemas.Job
	set   string // names the task set for people and for comparison
}

// selectTasks lists the tasks of a run.
func selectTasks(ctx context.Context, cfg Config, src env.Source) (plan, error) {
	all, err := src.Tasks(ctx)
	if err != nil {
		return plan{}, fmt.Errorf("listing tasks: %w", err)
	}
	p := plan{tasks: map[string]schemas.Task{}}
	known := map[string]bool{}
	for _, t := range all {
		known[t.InstanceID] = true
		if len(cfg.Tasks) > 0 && !slices.Contains(cfg.Tasks, t.InstanceID) {
			continue
		}
		if _, twice := p.tasks[t.ID]; twice {
			continue
		}
		p.tasks[t.ID] = t
		p.order = append(p.order, t.ID)
	}
	for _, want := range cfg.Tasks {
		if !known[want] {
			return plan{}, &StopError{Code: 2, Err: fmt.Errorf("task source %s has no task %q", src.Name(), want), Remedy: "list the tasks with: tracesmith tasks list"}
		}
	}
	if len(p.order) == 0 {
		return plan{}, &StopError{Code: 2, Err: fmt.Errorf("task source %s has no tasks", src.Name())}
	}
	sorted := slices.Sorted(slices.Values(p.order))
	p.set = fmt.Sprintf("%d tasks (%s)", len(p.order), schemas.Hash(strings.Join(sorted, "\n"))[:12])
	return p, nil
}

// Jobs are those of a batch, in the order in which they are taken up. Config
// must name its RunID; nothing is opened or written.
func Jobs(ctx context.Context, cfg Config, src env.Source) ([]schemas.Job, error) {
	cfg = cfg.withDefaults()
	p, err := selectTasks(ctx, cfg, src)
	p.derive(cfg.RunID, cfg)
	return p.jobs, err
}

// derive makes the jobs: all first attempts before the second ones, so that a
// run that is stopped has seen as many tasks as it could.
func (p *plan) derive(runID string, cfg Config) {
	for attempt := range cfg.Attempts {
		for _, id := range p.order {
			p.jobs = append(p.jobs, schemas.NewJob(runID, p.tasks[id], cfg.AgentKey, attempt))
		}
	}
}
