package policies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/agents/history"
	"github.com/tracesmith/tracesmith/agents/prompts"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

func init() {
	agents.Registry.Register(agents.Spec{
		Kind:    "react",
		Aliases: []string{"froggy", "froggy_agent"},
		Summary: "a model with native tool calls: think, call, observe",
		Default: func() any { return &ReactConfig{} },
		New: func(cfg any, deps agents.Deps) (agents.Policy, error) {
			return newReact(*cfg.(*ReactConfig), deps)
		},
	})
}

// ReactConfig holds the settings of the react policy.
type ReactConfig struct {
	Sampling llms.Sampling  `json:"sampling"`
	History  history.Config `json:"history"`
	// Send the episode's seed if sampling does not set one; several servers reject the field.
	Seeded bool `json:"seeded"`
}

// Needs implements agents.ConfigWithNeeds.
func (*ReactConfig) Needs() agents.Needs { return agents.Needs{Model: true} }

// react asks a model for every turn.
type react struct {
	cfg     ReactConfig
	client  llms.Client
	history *history.Builder
	prompts *prompts.Set
	opening string // name of the agent whose templates open the episode
	info    schemas.AgentInfo
	session string // id of the episode for the server's prefix cache
}

func newReact(cfg ReactConfig, deps agents.Deps) (*react, error) {
	if deps.Client == nil {
		return nil, errors.New("no model is configured: set the model's provider, base_url and name")
	}
	if cfg.Seeded && cfg.Sampling.Seed == nil {
		seed := deps.Seed & (1<<31 - 1) // the range that every server accepts
		cfg.Sampling.Seed = &seed
	}
	sampling, err := json.Marshal(cfg.Sampling)
	if err != nil {
		return nil, fmt.Errorf("sampling: %w", err)
	}
	config, err := json.Marshal(cfg)
	if err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	builder, err := history.New(cfg.History, "", deps.Client, cfg.Sampling)
	if err != nil {
		return nil, err
	}
	return &react{cfg: cfg, client: deps.Client, history: builder, prompts: deps.Templates(), opening: "react",
		info: schemas.AgentInfo{
			Name: "react", Version: deps.Templates().Version(), Policy: "model",
			Model: deps.Client.Model(), Provider: deps.Client.Provider(),
			SamplingJSON: string(sampling), ConfigJSON: string(config), ToolCallStyle: "native",
		},
		session: schemas.ShortHash([]any{deps.Task.ID, deps.Seed}),
	}, nil
}

func (r *react) Info() schemas.AgentInfo { return r.info }

func (r *react) Prompts(t *agents.Transcript) (system, problem string, err error) {
	return r.prompts.Opening(r.opening, r.model(), t.Task, t.Tools)
}

func (r *react) model() prompts.Model {
	return prompts.Model{Name: r.client.Model(), ContextLimit: llms.TraitsOf(r.client).ContextLimit}
}

func (r *react) Next(ctx context.Context, t *agents.Transcript) (schemas.Reply, error) {
	return r.history.Ask(ctx, r.client, t.Conversation(), llms.Request{Tools: t.Tools, Sampling: r.cfg.Sampling, SessionID: r.session})
}
