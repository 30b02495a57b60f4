// Package wire builds the components that a command needs from a configuration. It is
// the only package that imports implementations, such as sandbox drivers and views.
package wire

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/configs/nearest"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"

	_ "github.com/tracesmith/tracesmith/agents/oracle"
	_ "github.com/tracesmith/tracesmith/agents/oracle/baseline"
	_ "github.com/tracesmith/tracesmith/agents/policies"
	_ "github.com/tracesmith/tracesmith/env/drivers/bubblewrap"
	_ "github.com/tracesmith/tracesmith/env/drivers/docker"
	_ "github.com/tracesmith/tracesmith/env/drivers/kubernetes"
	_ "github.com/tracesmith/tracesmith/env/drivers/local"
	_ "github.com/tracesmith/tracesmith/env/tasks/sources"
	_ "github.com/tracesmith/tracesmith/llms/providers"
	_ "github.com/tracesmith/tracesmith/sinks/views"
	_ "github.com/tracesmith/tracesmith/tools/builtin"
)

// Source builds the task source of a configuration.
func Source(cfg configs.Tasks) (env.Source, error) {
	return env.Sources.Build(cfg.Source, cfg.With, struct{}{})
}

// SelectTasks applies ids, filter and slice, in this order, to a source's tasks.
func SelectTasks(ctx context.Context, src env.Source, cfg configs.Tasks) ([]schemas.Task, error) {
	all, err := src.Tasks(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading tasks: %w", err)
	}
	selected := all
	if len(cfg.IDs) > 0 {
		selected = nil
		for _, id := range cfg.IDs {
			t, err := FindTask(all, id)
			if err != nil {
				return nil, fmt.Errorf("tasks.ids: %w", err)
			}
			selected = append(selected, t)
		}
	}
	if cfg.Filter != "" {
		re, err := regexp.Compile(cfg.Filter)
		if err != nil {
			return nil, fmt.Errorf("tasks.filter: %w", err)
		}
		selected = slices.DeleteFunc(slices.Clone(selected), func(t schemas.Task) bool { return !re.MatchString(t.InstanceID) })
	}
	for _, level := range slices.Concat(cfg.Difficulty, cfg.GoldDifficulty) {
		if !slices.Contains(schemas.DifficultyLevels, level) {
			return nil, fmt.Errorf("unknown difficulty %q: choose from %s", level, strings.Join(schemas.DifficultyLevels, ", "))
		}
	}
	selected = slices.DeleteFunc(slices.Clone(selected), func(t schemas.Task) bool { return !hasSelectedLevel(t, cfg) })
	from, to, err := configs.ParseSlice(cfg.Slice)
	if err != nil {
		return nil, fmt.Errorf("tasks.slice: %w", err)
	}
	if to < 0 || to > len(selected) {
		to = len(selected)
	}
	selected = selected[min(from, to):to]
	if len(selected) == 0 {
		return nil, fmt.Errorf("none of the %d tasks of source %q is selected: loosen tasks.ids, tasks.filter, tasks.difficulty, tasks.gold_difficulty or tasks.slice", len(all), src.Name())
	}
	return selected, nil
}

// hasSelectedLevel reports whether a task has one of the selected levels of difficulty. The level
// of a task whose difficulty was not measured is "".
func hasSelectedLevel(t schemas.Task, cfg configs.Tasks) bool {
	d := schemas.Value(t.Difficulty)
	return (len(cfg.Difficulty) == 0 || slices.Contains(cfg.Difficulty, d.Level)) &&
		(len(cfg.GoldDifficulty) == 0 || slices.Contains(cfg.GoldDifficulty, d.GoldLevel))
}

// FindTask finds a task by its instance id, its source/instance, or a prefix of its id
// with at least 8 characters.
func FindTask(tasks []schemas.Task, ref string) (schemas.Task, error) {
	var names []string
	for _, t := range tasks {
		if ref == t.InstanceID || ref == t.Source+"/"+t.InstanceID || len(ref) >= 8 && strings.HasPrefix(t.ID, ref) {
			return t, nil
		}
		names = append(names, t.InstanceID)
	}
	if suggestion := nearest.Name(ref, names, max(len(ref)/4, 1)); suggestion != "" {
		return schemas.Task{}, fmt.Errorf("no task %q: did you mean %q?", ref, suggestion)
	}
	more := ""
	if len(names) > 20 {
		names, more = names[:20], fmt.Sprintf(" and %d more", len(tasks)-20)
	}
	if len(tasks) > 0 {
		more += " (source " + tasks[0].Source + "; --dir or --source name another one)"
	}
	return schemas.Task{}, fmt.Errorf("no task %q; there are %s%s", ref, strings.Join(names, ", "), more)
}
