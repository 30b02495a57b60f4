package pipeline

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/pipeline/normalise"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// Config configures one run. RunDir, AgentKey and Identity are required.
type Config struct {
	RunDir string
	RunID  string // empty: the ID that RunDir has already, or a new one
	Fresh  bool   // move a used RunDir aside instead of resuming it

	Tasks    []string // instance IDs to run; empty: all tasks of the source
	Attempts int      // samples per task; default 1
	AgentKey string   // hash of agent, prompts, tools, model and sampling: part of every job's ID
	// Identity holds what must not change when a run directory is resumed, by the names that
	// messages use: "agent", "model", "prompts", "tools". The run adds the task set and the
	// schema version.
	Identity map[string]string
	Resolved json.RawMessage // the full configuration; run.json gets it without secrets
	Command  []string        // the user's command, for the summary

	Workers int           // default 1
	Retry   []string      // outcomes to run again; only "infra" is possible
	Limits  agents.Limits // of each episode

	// Limits on the cost of model calls in USD, including those of earlier invocations; 0: no
	// limit. A run that reaches MaxCost stops and can be resumed. An episode that reaches
	// EpisodeCost, or TaskCost, which all attempts at the task share, ends as max_cost.
	MaxCost, TaskCost, EpisodeCost float64

	CallTimeout time.Duration // time limit of a model call, for messages; 0: unknown

	// Staging is the location of Deps.Staging as run.json records it; empty: in RunDir.
	Staging string
	Lease   time.Duration // a worker that is silent for this long loses its job; default 60s

	// Unsynced lets the embedded engine write its files without syncing them, so that a power
	// cut loses acknowledged steps. Only tests set it.
	Unsynced bool

	Normalise     normalise.Config
	RetryDelay    time.Duration // before the first retry of a failed job, doubled each time; default 5s
	StagePatience time.Duration // how long a store may be unreachable; default 10m
	MinFree       uint64        // bytes that must be free in RunDir; 0: the engine's default
}

// Deps holds the components of a run. Source, NewEnv, NewPolicy, Verifier and Staging are
// required.
type Deps struct {
	Source    env.Source
	NewEnv    func(ctx context.Context, j schemas.Job, t schemas.Task) (env.Env, error)
	NewPolicy func(j schemas.Job, t schemas.Task) (agents.Policy, error)
	Verifier  env.Verifier
	// Baseline finds the test lists of a task that has none; nil: the verifier gets such tasks
	// unchanged. If NewEnv, Baseline or Verifier returns a *TaskError, the job is not retried.
	Baseline func(ctx context.Context, t schemas.Task) (schemas.TestSpec, error)
	// Pairs compares the values that an episode shows with the fixed program; nil: the columns about that are null.
	Pairs Pairs
	// Preflight is called before the first job of an invocation, unless everything is staged
	// already. If it returns an error, the run stops before any job starts. It may be nil.
	Preflight func(ctx context.Context) error
	// Endpoints returns the state of the model servers, for people. It may be nil.
	Endpoints func() []observe.Endpoint
	// Staging holds staging/<run>/<episode>.json.zst. It may be rooted at RunDir but must not
	// write there before its first Create.
	Staging  sinks.Store
	Observer observe.Observer // nil: observe.Silent
	// Closing Drain makes the run take no further jobs. Running jobs finish.
	Drain <-chan struct{}
	Clock func() time.Time // nil: time.Now
	Hooks Hooks
	// Log is for workers of a cluster; nil: discards everything. A process with a run directory
	// logs there.
	Log *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Attempts = cmp.Or(c.Attempts, 1)
	c.Workers = cmp.Or(c.Workers, 1)
	c.RetryDelay = cmp.Or(c.RetryDelay, 5*time.Second)
	c.Lease = cmp.Or(c.Lease, time.Minute)
	c.StagePatience = cmp.Or(c.StagePatience, 10*time.Minute)
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
	d.Log = cmp.Or(d.Log, slog.New(slog.DiscardHandler))
	if d.Preflight == nil {
		d.Preflight = func(context.Context) error { return nil }
	}
	if d.Hooks.Staging != nil && d.Staging != nil {
		d.Staging = d.Hooks.Staging(d.Staging)
	}
	return d
}

// Pairs runs a failing test of a task on the buggy and on the fixed version of its repository. trace.Pairs
// implements it.
type Pairs interface {
	Trace(ctx context.Context, t schemas.Task, tree env.Tree, test string) (schemas.PairedTrace, error)
	Evaluate(ctx context.Context, t schemas.Task, tree env.Tree, fixed bool, test string, queries []schemas.TraceQuery) ([]schemas.TraceReply, error)
}
