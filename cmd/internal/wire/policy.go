package wire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/agents/handover"
	"github.com/tracesmith/tracesmith/agents/prompts"
	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/middle"
	"github.com/tracesmith/tracesmith/llms/tokens"
	"github.com/tracesmith/tracesmith/pipeline"
	"github.com/tracesmith/tracesmith/schemas"
)

// Agent builds policies, one per episode, on one shared model client.
type Agent struct {
	Warn    io.Writer      // nil: no warnings
	Console agents.Console // for agents that need one
	// Trace compares the runs of a failing test on the buggy and on the fixed version of a task. Agents that
	// declare Needs.Trace need it.
	Trace func(ctx context.Context, t schemas.Task, test string) (schemas.PairedTrace, error)

	cfg     configs.Config
	needs   agents.Needs
	client  llms.Client
	models  map[string]agents.Model // further models, by their names in section models
	servers []modelServer           // of all models
	tools   []schemas.ToolSchema
	prompts *prompts.Set

	recordings map[string][]attemptRecording // by instance id, in order
}

// NewAgent checks the agent's kind, its settings and its model's settings, without
// calling the model.
func NewAgent(cfg configs.Config, getenv func(string) string) (*Agent, error) {
	a, err := prepareAgent(cfg)
	if err == nil && a.needs.Model {
		err = a.connect(getenv)
	}
	if err != nil {
		return nil, err
	}
	return a, nil
}

// prepareAgent returns an agent that is not connected to its model yet.
func prepareAgent(cfg configs.Config) (*Agent, error) {
	spec, ok := agents.Registry.Lookup(cfg.Agent.Kind)
	if !ok {
		_, err := agents.Registry.Config(cfg.Agent.Kind, nil) // the error lists the known kinds
		return nil, fmt.Errorf("agent.kind: %w", err)
	}
	cfg.Agent.Kind = spec.Kind // an alias names the same agent, so the run stays the same
	needs, err := agents.NeedsOf(cfg.Agent.Kind, cfg.Agent.With)
	if err != nil {
		return nil, WithPlace(cfg, "agent.with", fmt.Errorf("agent.with: %w", err))
	}
	a := &Agent{cfg: cfg, needs: needs}
	if a.prompts, err = prompts.Load(prompts.Files(cfg.Agent.Prompts)); err != nil {
		return nil, err
	}
	return a, nil
}

// connect opens the models of the agent.
func (a *Agent) connect(getenv func(string) string) error {
	if err := checkModels(a.cfg); err != nil {
		return err
	}
	l := a.cfg.LLM
	if l.Model == "" || l.AllEndpoints()[0].BaseURL == "" && l.Provider == "openai" {
		return fmt.Errorf("agent %q asks a model: set llm.model and llm.base_url (for example -p llm.base_url=http://127.0.0.1:8000/v1)", a.cfg.Agent.Kind)
	}
	var err error
	if a.client, err = a.openModel("llm", l, getenv); err != nil {
		return err
	}
	return a.connectNamed(getenv)
}

// connectNamed connects the models that the agent's settings name.
func (a *Agent) connectNamed(getenv func(string) string) error {
	a.models = map[string]agents.Model{}
	for _, name := range a.needs.Models {
		l, ok := a.cfg.Models[name]
		switch {
		case name == a.cfg.LLM.ModelsEntry: // both names share the limits of one server
			a.models[name] = agents.Model{Client: a.client, Sampling: sampling(a.cfg.LLM)}
			continue
		case !ok:
			return fmt.Errorf("agent %q asks model %q, which section models does not have: it has %s",
				a.cfg.Agent.Kind, name, cmp.Or(strings.Join(slices.Sorted(maps.Keys(a.cfg.Models)), ", "), "none"))
		case l.AllEndpoints()[0].BaseURL == "" && l.Provider == "openai":
			return fmt.Errorf("agent %q asks model %q: set models.%s.base_url", a.cfg.Agent.Kind, name, name)
		}
		client, err := a.openModel("models."+name, l, getenv)
		if err != nil {
			return err
		}
		a.models[name] = agents.Model{Client: client, Sampling: sampling(l)}
	}
	return nil
}

// openModel connects one model. section is where the configuration holds l.
func (a *Agent) openModel(section string, l configs.LLM, getenv func(string) string) (llms.Client, error) {
	client, endpoints, err := newClient(section, l, a.prices(l), a.cfg.Limits.Any(), getenv, a.warn)
	if err != nil {
		return nil, WithPlace(a.cfg, section+".with", err)
	}
	a.servers = append(a.servers, modelServer{section, l, endpoints})
	return llms.WithTraits(client, traits(l)), nil
}

// traits returns the traits of a model that the configuration sets.
func traits(l configs.LLM) llms.Traits {
	return llms.Traits{ContextLimit: l.ContextLimit, Vocabulary: l.Tokenizer, NoSystem: l.SystemRole != nil && !*l.SystemRole}
}

// warn prints a warning for the user.
func (a *Agent) warn(text string) {
	if a.Warn != nil {
		fmt.Fprintf(a.Warn, "warning: %s\n", text)
	}
}

// Offer sets the tools that the environment offers. It returns an error if a name collides
// with a tool of the agent, or if a configured tool_choice is not offered.
func (a *Agent) Offer(tools []schemas.ToolSchema) error {
	for _, own := range a.needs.Tools {
		if slices.ContainsFunc(tools, func(t schemas.ToolSchema) bool { return t.Name == own.Name }) {
			return fmt.Errorf("agent %[2]q has its own tool %[1]s: give the other one a prefix (mcp)", own.Name, a.cfg.Agent.Kind)
		}
	}
	if a.needs.Model {
		if err := a.checkToolChoice(tools); err != nil {
			return err
		}
	}
	a.tools = tools
	return nil
}

// providerClient returns a client of a model at one endpoint, without the middleware.
func providerClient(section string, l configs.LLM, e configs.LLMEndpoint, getenv func(string) string) (llms.Client, error) {
	with := maps.Clone(map[string]any(l.With))
	if with == nil {
		with = map[string]any{}
	}
	with["model"], with["timeout"], with["api_key"] = l.Model, l.Timeout.String(), e.APIKey
	if e.BaseURL != "" {
		with["base_url"] = e.BaseURL
	}
	if len(l.Headers) > 0 {
		with["headers"] = l.Headers
	}
	client, err := llms.Providers.Build(l.Provider, with, llms.Deps{Getenv: getenv})
	if e, ok := errors.AsType[*llms.Error](err); ok { // no server was called: the error is a missing key
		return nil, &pipeline.StopError{Code: 4, Err: fmt.Errorf("%s.%s", section, e.Message)}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", section, err)
	}
	return client, nil
}

// modelEndpoint has what the program needs of an endpoint besides its client.
type modelEndpoint struct {
	checker llms.Checker // asks, at no cost, whether the endpoint works; nil: it cannot be asked
	pace    *middle.Pace
}

// newClient returns a client of one model that distributes calls over its endpoints. section is where
// the configuration holds l.
func newClient(section string, l configs.LLM, prices middle.Prices, limited bool, getenv func(string) string, note func(string)) (llms.Client, []modelEndpoint, error) {
	var endpoints []middle.Endpoint
	var out []modelEndpoint
	counter, err := tokens.Choose(l.Tokenizer, l.Model)
	if err != nil {
		return nil, nil, fmt.Errorf("%s.tokenizer: %w", section, err)
	}
	for _, e := range l.AllEndpoints() {
		client, err := providerClient(section, l, e, getenv)
		if err != nil {
			return nil, nil, err
		}
		c, _ := client.(llms.Checker)
		pace := middle.NewPace(middle.PaceConfig{RPM: float64(e.RPM), TPM: float64(e.TPM), Parallel: e.Parallel})
		out = append(out, modelEndpoint{c, pace})
		endpoints = append(endpoints, middle.Endpoint{Client: client, Name: e.BaseURL, Weight: e.Weight, Counter: counter, Pace: pace})
	}
	c, err := middle.Wrap(endpoints, middle.Config{
		Retry: middle.RetryConfig{MaxTries: uint(l.MaxRetries) + 1}, Prices: prices, Limited: limited, Cache: l.Cache, Warn: note,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", section, err)
	}
	return c, out, nil
}

// prices returns the model's own price, then those of section prices.
func (a *Agent) prices(l configs.LLM) middle.Prices {
	var out middle.Prices
	all := a.cfg.Prices
	if l.Price != nil {
		own := *l.Price
		own.Model = l.Model
		all = append([]configs.Price{own}, all...)
	}
	for _, p := range all {
		out = append(out, middle.Price{Model: p.Model, Input: p.Input, Output: p.Output, Cached: p.Cached, CacheWrite: p.CacheWrite, CacheWrite1h: p.CacheWrite1h, Free: p.Free})
	}
	return out
}

// sampling returns the sampling parameters of a model.
func sampling(l configs.LLM) llms.Sampling {
	return llms.Sampling{Temperature: l.Temperature, TopP: l.TopP, MaxTokens: l.MaxTokens, ToolChoice: l.ToolChoice, Extra: l.Extra}
}

// Policy builds the policy of one episode.
func (a *Agent) Policy(j schemas.Job, t schemas.Task) (agents.Policy, error) {
	deps := agents.Deps{Task: t.Public(), Client: a.client, Models: a.models, Tools: a.tools, Seed: j.Seed, Prompts: a.prompts, Console: a.Console}
	deps.Recording = a.recording(j, t)
	if a.needs.Gold {
		deps.Gold = &agents.Privileged{GoldPatch: t.GoldPatch, Failing: t.Tests.FailToPass}
	}
	if a.needs.Trace && a.Trace != nil {
		deps.Gold.Trace = func(ctx context.Context, test string) (schemas.PairedTrace, error) { return a.Trace(ctx, t, test) }
	}
	return agents.Registry.Build(a.cfg.Agent.Kind, a.settings(), deps)
}

// checkPrompts renders the prompts of a task, to find errors in templates.
func (a *Agent) checkPrompts(p agents.Policy, t schemas.Task) error {
	own := a.cfg.Agent.Prompts
	info := p.Info()
	if info.Policy != "model" && own != (configs.Prompts{}) {
		return fmt.Errorf("agent %s has no templates: leave out agent.prompts", info.Name)
	}
	if own.SolveSystem+own.SolveProblem != "" {
		if len(info.Phases) < 2 {
			return fmt.Errorf("agent %s holds one conversation: leave out agent.prompts.solve_system and solve_problem", info.Name)
		}
		if _, _, err := a.prompts.Solve(a.solver(), t, a.tools, handover.Pack{}); err != nil {
			return err
		}
	}
	_, _, err := agents.Preview(p, t, a.tools)
	return err
}

// solver returns the model of an agent's second conversation.
func (a *Agent) solver() prompts.Model {
	client := a.client
	for _, m := range a.models {
		client = m.Client
	}
	if client == nil {
		return prompts.Model{}
	}
	return prompts.Model{Name: client.Model(), ContextLimit: llms.TraitsOf(client).ContextLimit}
}

// settings returns agent.with. For an agent with a model it adds the sampling parameters
// of section llm, unless agent.with has its own.
func (a *Agent) settings() map[string]any {
	with := maps.Clone(map[string]any(a.cfg.Agent.With))
	if a.needs.Model && with["sampling"] == nil {
		if with == nil {
			with = map[string]any{}
		}
		with["sampling"] = sampling(a.cfg.LLM)
	}
	return with
}

// Identity returns the values that must stay the same when a run directory is used again.
func (a *Agent) Identity(tools []schemas.ToolSchema) map[string]string {
	id := map[string]string{
		"agent":    a.cfg.Agent.Kind,
		"settings": string(mustCanonicalJSON(a.settings())),
		"prompts":  a.prompts.Version(),
		"tools":    schemas.ShortHash(slices.Concat(tools, a.needs.Tools)),
		"sandbox":  strings.Join(strings.Fields(cmp.Or(a.cfg.Sandbox.Kind, "default")+" "+a.cfg.Sandbox.Image+" "+a.cfg.Sandbox.Python), " "),
	}
	if len(a.cfg.MCP) > 0 {
		id["mcp"] = mcpIdentity(a.cfg.MCP)
	}
	if a.needs.Model {
		id["model"] = a.cfg.LLM.Provider + " " + a.cfg.LLM.Model
		if t := traits(a.cfg.LLM); t != (llms.Traits{}) {
			id["traits"] = string(mustCanonicalJSON(t))
		}
	}
	for instance, list := range a.recordings {
		id["recording "+instance] = recordingsHash(list)
	}
	for name, m := range a.models {
		id["model "+name] = m.Client.Provider() + " " + m.Client.Model() + " " + string(mustCanonicalJSON(m.Sampling))
		if t := llms.TraitsOf(m.Client); t != (llms.Traits{}) {
			id["traits "+name] = string(mustCanonicalJSON(t))
		}
	}
	return id
}

// Secrets returns the secret values of the configuration, which redaction removes from all
// records.
func (a *Agent) Secrets(getenv func(string) string) []string {
	secrets := mcpSecrets(a.cfg.MCP, getenv)
	for _, l := range append(slices.Collect(maps.Values(a.cfg.Models)), a.cfg.LLM) {
		texts := slices.Collect(maps.Values(l.Headers))
		for _, e := range l.AllEndpoints() {
			texts = append(texts, e.APIKey)
		}
		for _, value := range l.With {
			if text, ok := value.(string); ok {
				texts = append(texts, text)
			}
		}
		for _, text := range texts {
			if secret, err := llms.Secret(text, getenv); err == nil && llms.IsSecretRef(text) {
				secrets = append(secrets, secret)
			}
		}
	}
	return secrets
}

func mustCanonicalJSON(v any) []byte {
	b, err := schemas.CanonicalJSON(v)
	if err != nil {
		panic(errors.Join(errors.New("configuration is not JSON"), err))
	}
	return b
}
