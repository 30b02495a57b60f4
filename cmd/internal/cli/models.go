package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/llms"
)

type modelFlags struct {
	ConfigFlags
	provider, baseURL, apiKey string
	asJSON                    bool
}

func newModels(s *State) *cobra.Command {
	return Group("models", "List models", newModelsList(s))
}

func newModelsList(s *State) *cobra.Command {
	var f modelFlags
	c := &cobra.Command{
		Use: "list", Short: "List the models of a configuration, or of the server at --base-url", Args: RangeArgs(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := f.Load(s)
			if err != nil {
				return err
			}
			if f.baseURL != "" {
				return f.listServed(c, s)
			}
			return f.listConfigured(s, cfg)
		},
	}
	f.Add(c)
	c.Flags().StringVar(&f.baseURL, "base-url", "", "list the models of the server at this address")
	c.Flags().StringVar(&f.provider, "provider", "openai", "with --base-url: "+strings.Join(llms.Providers.Kinds(), ", "))
	c.Flags().StringVar(&f.apiKey, "api-key", "", "with --base-url: env:NAME or file:PATH")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	return c
}

// listServed lists the models of the server at --base-url.
func (f *modelFlags) listServed(c *cobra.Command, s *State) error {
	l := configs.Default().LLM
	l.Provider, l.BaseURL, l.APIKey = f.provider, f.baseURL, f.apiKey
	l.Model = "any" // a client needs a model name; the list does not depend on it
	models, err := wire.ServedModels(c.Context(), "--base-url", l, s.Getenv)
	if err != nil {
		return Usage(err)
	}
	if f.asJSON {
		return PrintJSON(s, map[string]any{"schema": "tracesmith.served_models/1", "base_url": f.baseURL, "models": append([]llms.ModelInfo{}, models...)})
	}
	w := newTable(s.Stdout, "MODEL\tCONTEXT")
	for _, m := range models {
		limit := "-"
		if m.ContextLimit > 0 {
			limit = fmt.Sprint(m.ContextLimit)
		}
		fmt.Fprintf(w, "%s\t%s\n", m.ID, limit)
	}
	return w.Flush()
}

// modelRow is one endpoint of a configured model.
type modelRow struct {
	Name     string `json:"name"`
	Provider string `json:"provider"`
	Model    string `json:"model"`
	BaseURL  string `json:"base_url"`
	Priced   bool   `json:"priced"`
}

func (f *modelFlags) listConfigured(s *State, cfg configs.Config) error {
	rows := []modelRow{}
	add := func(name string, l configs.LLM) {
		priced := l.Price != nil || slices.ContainsFunc(cfg.Prices, func(p configs.Price) bool { return p.Model == l.Model })
		for _, e := range l.AllEndpoints() {
			rows = append(rows, modelRow{Name: name, Provider: l.Provider, Model: l.Model, BaseURL: e.BaseURL, Priced: priced})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Models)) {
		add(name, cfg.Models[name])
	}
	if cfg.LLM.Model != "" && cfg.LLM.ModelsEntry == "" {
		add("llm", cfg.LLM)
	}
	if f.asJSON {
		return PrintJSON(s, map[string]any{"schema": "tracesmith.models/1", "models": rows})
	}
	if len(rows) == 0 {
		return Usage(errors.New("no model is configured: give a configuration with -c, or a server with --base-url"))
	}
	w := newTable(s.Stdout, "NAME\tPROVIDER\tMODEL\tBASE URL\tPRICED")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%v\n", r.Name, r.Provider, r.Model, r.BaseURL, r.Priced)
	}
	return w.Flush()
}
