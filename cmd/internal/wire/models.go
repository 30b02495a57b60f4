package wire

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/middle"
	"github.com/tracesmith/tracesmith/llms/probe"
)

// ProbeModel asks a model, at each of its endpoints, how it wants to be spoken to:
// one name may well be served by two programs. Retries are the run's own.
func ProbeModel(ctx context.Context, section string, l configs.LLM, getenv func(string) string, now func() time.Time) ([]probe.Profile, error) {
	var out []probe.Profile
	for _, e := range l.All() {
		p, err := probeEndpoint(ctx, section, l, e, getenv, now)
		if err != nil {
			return out, err
		}
		out = append(out, p)
	}
	return out, nil
}

func probeEndpoint(ctx context.Context, section string, l configs.LLM, e configs.LLMEndpoint, getenv func(string) string, now func() time.Time) (probe.Profile, error) {
	return probe.Run(ctx, probe.Target{Provider: l.Provider, BaseURL: e.BaseURL, Model: l.Model, Clock: now,
		Build: func(with map[string]any) (llms.Client, error) {
			m := l
			m.With = maps.Clone(l.With)
			if m.With == nil {
				m.With = configs.Block{}
			}
			maps.Copy(m.With, with)
			raw, err := provided(section, m, e, getenv)
			if err != nil {
				return nil, err
			}
			patient, err := middle.Wrap([]middle.Endpoint{{Client: raw, Name: e.BaseURL}}, middle.Config{Retry: middle.RetryConfig{MaxTries: uint(l.MaxRetries) + 1}})
			if err != nil {
				return nil, fmt.Errorf("%s: %w", section, err)
			}
			checker, _ := raw.(llms.Checker)
			if lister, ok := raw.(probe.Lister); ok {
				return struct {
					llms.Client
					llms.Checker
					probe.Lister
				}{patient, checker, lister}, nil
			}
			return struct {
				llms.Client
				llms.Checker
			}{patient, checker}, nil
		}})
}

// ServedModels lists what the first endpoint of a model serves.
func ServedModels(ctx context.Context, section string, l configs.LLM, getenv func(string) string) ([]llms.ModelInfo, error) {
	raw, err := provided(section, l, l.All()[0], getenv)
	if err != nil {
		return nil, err
	}
	lister, ok := raw.(probe.Lister)
	if !ok {
		return nil, fmt.Errorf("provider %s does not list models", l.Provider)
	}
	return lister.Models(ctx)
}

// Profiles are what is known of the agent's models, for the run's description.
func (a *Agent) Profiles() []json.RawMessage {
	var out []json.RawMessage
	for _, p := range a.profiles {
		out = append(out, mustCanonical(p))
	}
	return out
}

// known are the profiles of a model's endpoints that were probed.
func known(l configs.LLM, getenv func(string) string) []probe.Profile {
	var out []probe.Profile
	for _, e := range l.All() {
		if p, ok := probe.Load(probe.Dir(getenv), l.Provider, e.BaseURL, l.Model); ok {
			out = append(out, p)
		}
	}
	return out
}

// refusals are what a model is known to refuse of its own configuration.
func refusals(section string, l configs.LLM, tools bool, profiles []probe.Profile) []string {
	var out []string
	for _, p := range profiles {
		if why := p.Contradiction(sampling(l), l.With, tools); why != "" {
			out = append(out, section+": "+why)
		}
	}
	return out
}
