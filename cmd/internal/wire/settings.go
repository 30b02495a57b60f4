package wire

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/configs/nearest"
	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// WithPlace adds the file and line of a setting to an error about it. block is the key of
// the component's settings in the configuration, such as llm.with.
func WithPlace(cfg configs.Config, block string, err error) error {
	fieldErr, ok := errors.AsType[*plugin.FieldError](err)
	if !ok {
		return err
	}
	if place := cfg.Place(block + "." + fieldErr.Path); place != "" {
		return fmt.Errorf("%s: %w", place, err)
	}
	return err
}

// checkModels checks the providers' settings of all models, used or not.
func checkModels(cfg configs.Config) error {
	var problems []error
	check := func(section string, l configs.LLM) {
		if _, err := llms.Providers.Config(l.Provider, l.With); err != nil {
			problems = append(problems, WithPlace(cfg, section+".with", fmt.Errorf("%s: %w", section, err)))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Models)) {
		check("models."+name, cfg.Models[name])
	}
	// If llm names an entry of models, the loop may have reported the problems of llm already.
	if cfg.LLM.ModelsEntry == "" || len(problems) == 0 {
		check("llm", cfg.LLM)
	}
	return errors.Join(problems...)
}

// checkToolChoice refuses a tool_choice that is neither auto, required or none nor the name of a
// tool in offered or of a tool that the policy adds.
func (a *Agent) checkToolChoice(offered []schemas.ToolSchema) error {
	choices := []string{"auto", "required", "none"}
	for _, t := range slices.Concat(offered, a.needs.Tools) {
		choices = append(choices, t.Name)
	}
	check := func(section, choice string) error {
		if choice == "" || slices.Contains(choices, choice) {
			return nil
		}
		guess := ""
		if suggestion := nearest.Name(choice, choices, 2); suggestion != "" {
			guess = fmt.Sprintf("did you mean %q? ", suggestion)
		}
		return WithPlace(a.cfg, section, fmt.Errorf("%s.%w", section, &plugin.FieldError{Path: "tool_choice",
			Message: fmt.Sprintf("tool_choice: unknown tool %q: %schoose one of %s", choice, guess, strings.Join(choices, ", "))}))
	}
	problems := []error{check("llm", a.cfg.LLM.ToolChoice)}
	for _, name := range slices.Sorted(maps.Keys(a.models)) {
		if name != a.cfg.LLM.ModelsEntry {
			problems = append(problems, check("models."+name, a.cfg.Models[name].ToolChoice))
		}
	}
	return errors.Join(problems...)
}
