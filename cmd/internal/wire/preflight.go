package wire

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/pipeline/preflight"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

const (
	clusterPatience = 5 * time.Second // how long a check waits for a cluster
	canaryTimeout   = time.Minute     // maximum time of a canary call
)

// modelServer is one model with a check for each of its endpoints, or nil for those without one.
type modelServer struct {
	section string // where the configuration holds the model
	llm     configs.LLM
	parts   []modelEndpoint // in the order of llm.AllEndpoints
}

// cheapChecks returns the checks that a run performs before its first episode. They cost nothing,
// and the staging store is not among them because the pipeline probes it.
func (r *Run) cheapChecks(ctx context.Context) []preflight.Check {
	checks := append(diskChecks(r.cfg), r.Bench.sandboxChecks(r.Tasks, false)...)
	checks = append(checks, r.Agent.modelChecks()...)
	if r.cfg.Publish.To != "" {
		checks = append(checks, storeCheck(ctx, "publish.to", r.cfg.Publish.To, r.cfg.S3))
	}
	return checks
}

// Preflight performs the checks of a dry run, which are those of Doctor without canary calls, and
// reports each result.
func (r *Run) Preflight(ctx context.Context, report func(preflight.Result)) {
	checks := append(diskChecks(r.cfg), r.Bench.sandboxChecks(r.Tasks, true)...)
	checks = append(checks, r.Agent.modelChecks()...)
	preflight.Run(ctx, append(checks, outsideChecks(ctx, r.cfg)...), report)
}

// Doctor checks everything that a configuration names and reports each result. A part that cannot be
// built is a failed check, and the other parts are still checked. With canary, it makes one small call
// to each model.
func Doctor(ctx context.Context, cfg configs.Config, host Host, canary bool, report func(preflight.Result)) {
	preflight.Run(ctx, diskChecks(cfg), report)
	checkWorkbench(ctx, cfg, host, report)
	a, err := prepareAgent(cfg)
	if err != nil {
		report(preflight.Fail("agent", err))
	} else {
		preflight.Run(ctx, a.doctorChecks(host.Getenv, canary), report)
	}
	preflight.Run(ctx, outsideChecks(ctx, cfg), report)
}

// checkWorkbench checks the tasks, the tools and the sandboxes. If the tasks or the tools cannot be
// built, it still checks a sandbox without them.
func checkWorkbench(ctx context.Context, cfg configs.Config, host Host, report func(preflight.Result)) {
	var tasks []schemas.Task
	bench, err := NewWorkbench(ctx, cfg, host)
	switch {
	case err != nil:
		report(preflight.Fail("config", err))
		cfg.Tasks, cfg.Agent.Tools, cfg.MCP = configs.Default().Tasks, configs.Default().Agent.Tools, nil
		if bench, err = NewWorkbench(ctx, cfg, host); err != nil {
			return // for the same reason
		}
	default:
		if tasks, err = SelectTasks(ctx, bench.Source, cfg.Tasks); err != nil {
			report(preflight.Fail("tasks", err))
			break
		}
		report(preflight.Result{Check: "tasks", Status: preflight.OK, Message: fmt.Sprintf("source %s: %d selected", bench.Source.Name(), len(tasks))})
	}
	defer func() { _ = bench.Close() }()
	if len(tasks) == 0 {
		tasks = []schemas.Task{{Workdir: schemas.DefaultWorkdir}}
	}
	preflight.Run(ctx, bench.sandboxChecks(tasks, true), report)
}

// doctorChecks connects the agent to its models, and returns their checks. A model that the agent
// does not need is checked if it is configured.
func (a *Agent) doctorChecks(getenv func(string) string, canary bool) []preflight.Check {
	var err error
	switch {
	case a.needs.Model:
		err = a.connect(getenv)
	case a.cfg.LLM.Model != "":
		a.client, err = a.openModel("llm", a.cfg.LLM, getenv)
	default:
		return []preflight.Check{result(preflight.Result{Check: "model", Status: preflight.OK, Message: "agent " + a.cfg.Agent.Kind + " asks no model"})}
	}
	if err != nil {
		return []preflight.Check{result(preflight.Fail("model", err))}
	}
	if !canary {
		return a.modelChecks()
	}
	var checks []preflight.Check
	for _, s := range a.servers {
		endpoints := s.endpoints()
		for i, e := range s.llm.AllEndpoints() {
			if endpoints[i].Client, err = a.canaryClient(s, e, getenv); err != nil {
				return []preflight.Check{result(preflight.Fail("model", err))}
			}
		}
		checks = append(checks, preflight.Model(endpoints))
	}
	return checks
}

// canaryClient returns a client of one endpoint that neither retries nor caches.
func (a *Agent) canaryClient(s modelServer, e configs.LLMEndpoint, getenv func(string) string) (llms.Client, error) {
	l := s.llm
	l.Endpoints, l.BaseURL, l.APIKey = nil, e.BaseURL, e.APIKey
	l.RPM, l.TPM, l.Parallel = 0, 0, 0
	l.MaxRetries, l.Cache, l.Timeout = 0, "", min(l.Timeout, canaryTimeout)
	client, _, err := newClient(s.section, l, a.prices(l), false, getenv, a.warn)
	return client, err
}

// endpoints returns the endpoints of the model without clients for a canary call.
func (s modelServer) endpoints() []preflight.Endpoint {
	var out []preflight.Endpoint
	for i, e := range s.llm.AllEndpoints() {
		out = append(out, preflight.Endpoint{Section: s.section, URL: e.BaseURL, Checker: s.parts[i].checker, Sample: sampling(s.llm)})
	}
	return out
}

// Models returns the models that the agent asks.
func (a *Agent) Models() []configs.LLM {
	var out []configs.LLM
	for _, s := range a.servers {
		out = append(out, s.llm)
	}
	return out
}

// modelChecks returns the checks of the agent's models that cost nothing.
func (a *Agent) modelChecks() []preflight.Check {
	var checks []preflight.Check
	for _, s := range a.servers {
		checks = append(checks, preflight.Model(s.endpoints()))
	}
	return checks
}

// Check asks the server of each model, at no cost, whether it works and accepts the key.
// It returns nil for agents without a model.
func (a *Agent) Check(ctx context.Context) (err error) {
	preflight.Run(ctx, a.modelChecks(), func(r preflight.Result) { err = cmp.Or(err, r.Err) })
	return err
}

// sandboxChecks returns checks that start one sandbox of each kind. With thorough, they also stop a
// program in the debugger, and start one sandbox for each interpreter that tasks name.
func (w *Workbench) sandboxChecks(tasks []schemas.Task, thorough bool) []preflight.Check {
	var checks []preflight.Check
	seen := map[string]bool{}
	for _, t := range tasks {
		spec := w.bareSpec(t)
		key := w.kind(t)
		if thorough && key != "docker" && key != "kubernetes" { // an image has its own interpreter
			key += " " + spec.Python
		}
		if seen[key] {
			continue
		}
		seen[key] = true
		s := preflight.Sandbox{Driver: w.Driver(t), Spec: spec, Programs: w.checkPrograms}
		s.Spec.Label = "preflight"
		s.Spec.Limits = env.Limits{} // otherwise it would warn of limits that the configuration lifts
		if thorough {
			s.NewDebugger = newDebugger
		}
		checks = append(checks, s.Check)
	}
	return checks
}

// diskChecks returns the checks of free space.
func diskChecks(cfg configs.Config) []preflight.Check {
	return []preflight.Check{
		preflight.Disk("run directory", cmp.Or(cfg.Run.Dir, "."), preflight.RunSpace),
		preflight.Disk("temporary files", os.TempDir(), preflight.TempSpace),
	}
}

// outsideChecks returns the checks of the stores and the cluster.
func outsideChecks(ctx context.Context, cfg configs.Config) []preflight.Check {
	var checks []preflight.Check
	switch {
	case cfg.Run.Staging != "":
		checks = append(checks, storeCheck(ctx, "run.staging", cfg.Run.Staging, cfg.S3))
	case cfg.Run.Dir != "":
		checks = append(checks, storeCheck(ctx, "run.dir", cfg.Run.Dir, cfg.S3))
	}
	if cfg.Publish.To != "" {
		checks = append(checks, storeCheck(ctx, "publish.to", cfg.Publish.To, cfg.S3))
	}
	if cfg.NATS.URL != "" {
		checks = append(checks, preflight.Cluster(func(ctx context.Context) (*engine.Conn, error) { return Dial(ctx, cfg.NATS, clusterPatience) }))
	}
	return checks
}

// storeCheck returns the check of a store.
func storeCheck(ctx context.Context, setting, place string, cfg configs.S3) preflight.Check {
	open := func(place string) (sinks.Store, error) { return OpenStore(ctx, place, cfg) }
	if dir, local := strings.CutPrefix(place, "file://"); local || !strings.Contains(place, "://") {
		return preflight.Directory(setting, dir, open)
	}
	store, err := open(place)
	if err != nil {
		return result(preflight.Fail("store", fmt.Errorf("%s: %w", setting, err)))
	}
	return preflight.Store(setting, place, store)
}

// result returns a check whose result is already known.
func result(r preflight.Result) preflight.Check {
	return func(context.Context) []preflight.Result { return []preflight.Result{r} }
}
