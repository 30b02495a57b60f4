package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/pipeline/rundir"
	"github.com/tracesmith/tracesmith/schemas"
)

// plan holds the selected tasks of a run and the jobs derived from them.
type plan struct {
	tasks map[string]schemas.Task // by ID
	order []string                // task IDs in the order of the source
	jobs  []schemas.Job
	set   string // identifies the task set: its size and a hash of its task IDs
}

// selectTasks returns a plan with the selected tasks and no jobs.
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
		if _, duplicate := p.tasks[t.ID]; duplicate {
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

// recorded returns what the run directory records about the plan.
func (p *plan) recorded(attempts int) rundir.Plan {
	ids := map[string]string{}
	for _, id := range p.order { // several tasks may have the same name
		t := p.tasks[id]
		name := t.Source + "/" + t.InstanceID
		ids[name] = strings.TrimSpace(ids[name] + " " + id)
	}
	return rundir.Plan{Tasks: ids, Attempts: attempts, Set: p.set}
}

// Jobs returns the jobs of a run in the order in which the run takes them, without opening a run
// directory. cfg must have a RunID.
func Jobs(ctx context.Context, cfg Config, src env.Source) ([]schemas.Job, error) {
	cfg = cfg.withDefaults()
	p, err := selectTasks(ctx, cfg, src)
	p.derive(cfg.RunID, cfg)
	return p.jobs, err
}

// derive creates the jobs, all first attempts before all second ones, so that a run that stops
// early has tried as many tasks as possible.
func (p *plan) derive(runID string, cfg Config) {
	for attempt := range cfg.Attempts {
		for _, id := range p.order {
			p.jobs = append(p.jobs, schemas.NewJob(runID, p.tasks[id], cfg.AgentKey, attempt))
		}
	}
}
