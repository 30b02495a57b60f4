package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/pipeline/observe"
)

// plannedTasks is how many tasks a dry run lists; --json lists all.
const plannedTasks = 10

// plan prints what the run would do and performs its checks, for --dry-run.
func (f *runFlags) plan(ctx context.Context, s *State, cfg configs.Config, run *wire.Run) error {
	plan, err := run.Plan(ctx)
	if err != nil {
		return err
	}
	var report checkReport
	if f.asJSON {
		run.Preflight(ctx, report.add)
		return cmp.Or(printPlan(s, cfg, run, plan, report), report.err())
	}
	writePlan(s.Stdout, cfg, run, plan)
	fmt.Fprintln(s.Stdout, "\nChecks:")
	report.out = s.Stdout
	run.Preflight(ctx, report.add)
	if err := ctx.Err(); err != nil {
		return err
	}
	fmt.Fprintln(s.Stdout, report.verdict())
	if len(run.Agent.Models()) > 0 {
		fmt.Fprintln(s.Stdout, "No model was called; tracesmith doctor makes one small call to each.")
	}
	return report.err()
}

// printPlan prints the plan as JSON.
func printPlan(s *State, cfg configs.Config, run *wire.Run, plan wire.Plan, report checkReport) error {
	var ids []string
	for _, t := range run.Tasks {
		ids = append(ids, t.InstanceID)
	}
	return PrintJSON(s, map[string]any{
		"schema": "tracesmith.plan/1", "run_dir": cfg.Run.Dir, "tasks": ids, "attempts": cfg.Run.Attempts,
		"episodes": len(plan.Episodes), "reused": plan.Reused, "agent": cfg.Agent.Kind, "workers": cfg.Run.Workers, "episode_ids": plan.Episodes,
		"models": models(run), "limits": cfg.Limits, "estimate": plan.Estimate, "checks": report.results, "exit_code": report.exitCode(),
	})
}

// models returns the models of a run as text, one for each endpoint.
func models(run *wire.Run) []string {
	out := []string{}
	for _, m := range run.Agent.Models() {
		for _, e := range m.AllEndpoints() {
			out = append(out, strings.TrimSuffix(fmt.Sprintf("%s (%s) at %s", m.Model, m.Provider, e.BaseURL), " at "))
		}
	}
	return out
}

// writePlan writes the plan and the estimate as text.
func writePlan(w io.Writer, cfg configs.Config, run *wire.Run, plan wire.Plan) {
	total := len(plan.Episodes)
	fmt.Fprintf(w, "%s × %s = %s, %d at once, into %s\n", count(len(run.Tasks), "task"), count(cfg.Run.Attempts, "attempt"), count(total, "episode"), cfg.Run.Workers, cfg.Run.Dir)
	if plan.Reused > 0 {
		fmt.Fprintf(w, "%s finished already, %d to run\n", count(plan.Reused, "episode"), total-plan.Reused)
	}
	for i, t := range run.Tasks {
		if i == plannedTasks {
			fmt.Fprintf(w, "  and %d more (--json lists them)\n", len(run.Tasks)-i)
			break
		}
		fmt.Fprintf(w, "  %s/%s\n", t.Source, t.InstanceID)
	}
	sandboxes := map[string]int{}
	for _, t := range run.Tasks {
		sandboxes[run.Bench.Driver(t).Name()]++
	}
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(sandboxes)) {
		kinds = append(kinds, fmt.Sprintf("%s (%s)", kind, count(sandboxes[kind], "task")))
	}
	rows := [][2]string{
		{"agent", fmt.Sprintf("%s, at most %s and %s for an episode", cfg.Agent.Kind, count(cfg.Agent.MaxSteps, "step"), cfg.Agent.Wall)},
		{"model", cmp.Or(strings.Join(models(run), ", "), "none")},
		{"sandbox", strings.Join(kinds, ", ")},
		{"publish", cmp.Or(cfg.Publish.To, "not set (publish.to)")},
		{"limits", limitText(cfg.Limits)},
	}
	fmt.Fprint(w, "\n"+table(rows))
	writeEstimate(w, cfg, plan.Estimate)
}

// writeEstimate writes what the models may use; nothing if the agent asks none.
func writeEstimate(w io.Writer, cfg configs.Config, e wire.Estimate) {
	if e.Most.Calls == 0 {
		return
	}
	fmt.Fprint(w, "\n"+wrap(fmt.Sprintf("Estimate: the first prompt has about %s tokens, and an observation %d. A typical episode takes %d calls with answers of %d tokens; "+
		"most are %d calls (agent.max_steps) with answers of %s tokens (llm.max_tokens). It ignores prompt caches and retries.",
		observe.Number(e.FirstPrompt), wire.ObservationTokens, min(wire.TypicalCalls, cfg.Agent.MaxSteps), min(wire.ReplyTokens, e.LongestReply), cfg.Agent.MaxSteps, observe.Number(e.LongestReply)), 0)+"\n")
	t := newTable(w, "\tTYPICAL\tMOST")
	fmt.Fprintf(t, "calls\t%s\t%s\n", observe.Number(e.Typical.Calls), observe.Number(e.Most.Calls))
	fmt.Fprintf(t, "prompt tokens\t%s\t%s\n", observe.Number(e.Typical.PromptTokens), observe.Number(e.Most.PromptTokens))
	fmt.Fprintf(t, "answer tokens\t%s\t%s\n", observe.Number(e.Typical.ReplyTokens), observe.Number(e.Most.ReplyTokens))
	fmt.Fprintf(t, "cost\t%s\t%s\n", costText(e.Typical.CostUSD), costText(e.Most.CostUSD))
	_ = t.Flush()
	if limit := cfg.Limits.TotalCost; limit > 0 {
		fmt.Fprintf(w, "The run stops before it costs more than %s (limits.total_cost).\n", observe.USD(limit))
	}
	if e.Most.Limited {
		fmt.Fprintln(w, "Costs are at most what the limits allow; tokens and calls are those without limits.")
	}
}

func costText(usd *float64) string {
	if usd == nil {
		return "unknown: add the model to prices"
	}
	return observe.USD(*usd)
}

// limitText lists the cost limits.
func limitText(l configs.Limits) string {
	var parts []string
	for _, limit := range []struct {
		name string
		usd  float64
	}{{"the run", l.TotalCost}, {"a task", l.TaskCost}, {"an episode", l.EpisodeCost}} {
		if limit.usd > 0 {
			parts = append(parts, observe.USD(limit.usd)+" for "+limit.name)
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "no cost limit (--max-cost)")
}
