package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/probe"
)

type modelFlags struct {
	configFlags
	provider, baseURL, model, apiKey string
	asJSON                           bool
}

func (f *modelFlags) add(c *cobra.Command) {
	f.configFlags.add(c)
	c.Flags().StringVar(&f.baseURL, "base-url", "", "a server that stands in no configuration")
	c.Flags().StringVar(&f.provider, "provider", "openai", "with --base-url: "+strings.Join(llms.Providers.Kinds(), ", "))
	c.Flags().StringVar(&f.apiKey, "api-key", "", "with --base-url: env:NAME or file:PATH")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
}

func newModels(s *State) *cobra.Command {
	return group("models", "List models and find out how they want to be spoken to", newModelsList(s), newModelsProbe(s))
}

// named is a model and the section it stands in.
type named struct {
	section string
	configs.LLM
}

// choose finds the model that is meant: a name of section models, section llm, or
// the server on the command line.
func (f *modelFlags) choose(cfg configs.Config, args []string) (named, error) {
	if f.baseURL != "" {
		l := configs.Default().LLM
		l.Provider, l.BaseURL, l.Model, l.APIKey = f.provider, f.baseURL, f.model, f.apiKey
		return named{"--base-url", l}, nil
	}
	if len(args) == 0 {
		if cfg.LLM.Model == "" {
			return named{}, &Error{Code: ExitUsage, Try: "tracesmith models probe --base-url http://127.0.0.1:8000/v1 --model NAME", Err: fmt.Errorf("no model is configured: give a configuration with -c, or a server with --base-url and --model")}
		}
		return named{"llm", cfg.LLM}, nil
	}
	l, ok := cfg.Models[args[0]]
	if !ok {
		return named{}, &Error{Code: ExitUsage, Err: fmt.Errorf("no model %q in section models: it has [%s]", args[0], strings.Join(slices.Sorted(maps.Keys(cfg.Models)), ", "))}
	}
	return named{"models." + args[0], l}, nil
}

func newModelsProbe(s *State) *cobra.Command {
	var f modelFlags
	c := &cobra.Command{
		Use: "probe [NAME] | --base-url URL --model M", Short: "Find out what a model takes and refuses, and keep it for later runs",
		Long: "Ask a model about twenty short questions: sampling parameters, tools, calls at once, how calls are\n" +
			"sent back, reasoning, token counts. What is found is kept in the user's cache directory; run refuses\n" +
			"a configuration that is known to fail, and says what to set.",
		Example: "  tracesmith models probe -c run.yaml\n  tracesmith models probe --base-url http://127.0.0.1:8000/v1 --model qwen",
		Args:    exactArgs(0, 1),
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := f.load(s)
			if err != nil {
				return err
			}
			m, err := f.choose(cfg, args)
			if err != nil {
				return err
			}
			if m.Model == "" {
				return Usage(fmt.Errorf("--base-url needs --model: name the model as the server calls it"))
			}
			profiles, err := wire.ProbeModel(c.Context(), m.section, m.LLM, s.Getenv, s.Now)
			if err != nil {
				if llms.ClassOf(err) != "" && codeOf(err) == ExitBug { // too busy, broken: nothing can be found out
					return &Error{Code: ExitPreflight, Err: err}
				}
				return Usage(wire.Placed(cfg, m.section+".with", err))
			}
			for i, p := range profiles {
				if dir := probe.Dir(s.Getenv); dir != "" {
					if err := probe.Save(dir, p); err != nil {
						return err
					}
				}
				if err := f.printProfile(s, p, i, len(profiles)); err != nil {
					return err
				}
			}
			return nil
		},
	}
	f.add(c)
	c.ValidArgsFunction = firstArg(f.models())
	c.Flags().StringVar(&f.model, "model", "", "with --base-url: the model's name")
	return c
}

// printProfile prints profile i of n: as one JSON document, or as a table.
func (f *modelFlags) printProfile(s *State, p probe.Profile, i, n int) error {
	if f.asJSON {
		return printJSON(s, p)
	}
	if n > 1 {
		fmt.Fprintf(s.Stdout, "%s%s at %s\n", strings.Repeat("\n", min(i, 1)), p.Model, p.BaseURL)
	}
	w := tabwriter.NewWriter(s.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "QUESTION\tANSWER\tMS\tDETAIL")
	for _, q := range p.Findings {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\n", q.Name, q.Verdict, q.Millis, q.Detail)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if p.ContextLimit > 0 {
		fmt.Fprintf(s.Stdout, "\ncontext limit: %d tokens\n", p.ContextLimit)
	}
	if len(p.Settings) == 0 {
		fmt.Fprintf(s.Stdout, "\n%s needs no settings of its own.\n", p.Model)
		return nil
	}
	settings, err := json.Marshal(p.Settings)
	if err != nil {
		return fmt.Errorf("writing settings: %w", err)
	}
	fmt.Fprintf(s.Stdout, "\nset for %s:  with: %s\n", p.Model, settings)
	return nil
}

func newModelsList(s *State) *cobra.Command {
	var f modelFlags
	c := &cobra.Command{
		Use: "list", Short: "Models of a configuration, or of the server at --base-url", Args: exactArgs(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := f.load(s)
			if err != nil {
				return err
			}
			if f.baseURL != "" {
				f.model = "any" // a list is of no model
				m, err := f.choose(cfg, nil)
				if err != nil {
					return err
				}
				return f.served(c, s, m)
			}
			return f.configured(s, cfg)
		},
	}
	f.add(c)
	return c
}

func (f *modelFlags) served(c *cobra.Command, s *State, m named) error {
	models, err := wire.ServedModels(c.Context(), m.section, m.LLM, s.Getenv)
	if err != nil {
		return Usage(err)
	}
	if f.asJSON {
		return printJSON(s, map[string]any{"schema": "tracesmith.served_models/1", "base_url": f.baseURL, "models": append([]llms.ModelInfo{}, models...)})
	}
	w := tabwriter.NewWriter(s.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "MODEL\tCONTEXT")
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
	Probed   string `json:"probed,omitempty"` // the day
}

func (f *modelFlags) configured(s *State, cfg configs.Config) error {
	var all []named
	for _, name := range slices.Sorted(maps.Keys(cfg.Models)) {
		all = append(all, named{name, cfg.Models[name]})
	}
	if cfg.LLM.Model != "" && cfg.LLM.Named == "" {
		all = append(all, named{"llm", cfg.LLM})
	}
	rows := []modelRow{}
	for _, m := range all {
		priced := m.Price != nil || slices.ContainsFunc(cfg.Prices, func(p configs.Price) bool { return p.Model == m.Model })
		for _, e := range m.All() {
			row := modelRow{Name: m.section, Provider: m.Provider, Model: m.Model, BaseURL: e.BaseURL, Priced: priced}
			if p, ok := probe.Load(probe.Dir(s.Getenv), m.Provider, e.BaseURL, m.Model); ok {
				row.Probed = p.At.Format("2006-01-02")
			}
			rows = append(rows, row)
		}
	}
	if f.asJSON {
		return printJSON(s, map[string]any{"schema": "tracesmith.models/1", "models": rows})
	}
	if len(rows) == 0 {
		fmt.Fprintln(s.Stderr, "no model is configured: give a configuration with -c, or a server with --base-url")
		return nil
	}
	w := tabwriter.NewWriter(s.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tPROVIDER\tMODEL\tBASE URL\tPRICED\tPROBED")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%v\t%s\n", r.Name, r.Provider, r.Model, r.BaseURL, r.Priced, r.Probed)
	}
	return w.Flush()
}
