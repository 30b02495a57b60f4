package cli

// This file holds the shell completion of names that the program or a configuration knows.

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/cmd/internal/settings"
	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/pipeline/selection"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

type completer = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// OneOf completes names but not files.
func OneOf(names ...string) completer {
	return func(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return withPrefix(prefix, names), cobra.ShellCompDirectiveNoFileComp
	}
}

func orFile(names ...string) completer {
	return func(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return withPrefix(prefix, names), cobra.ShellCompDirectiveDefault
	}
}

// firstArg completes the first argument with names and later arguments with files.
func firstArg(names completer) completer {
	return func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return names(c, args, prefix)
		}
		return nil, cobra.ShellCompDirectiveDefault
	}
}

func withPrefix(prefix string, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !strings.HasPrefix(n, prefix) })
}

// models completes the names in section models of the configuration. It sees only the -c
// files that are already on the command line.
func (f *ConfigFlags) models() completer {
	return func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		cfg, err := f.Load(&State{})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return OneOf(slices.Sorted(maps.Keys(cfg.Models))...)(c, args, prefix)
	}
}

// completeTasks completes the names of the tasks that the flags select.
func (f *taskFlags) completeTasks(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	tasks, _ := f.tasks(c, &State{})
	var names []string
	for _, t := range tasks {
		names = append(names, t.InstanceID+"\t"+summaryLine(t.Instructions))
	}
	return OneOf(names...)(c, args, prefix)
}

// completeEpisode completes a place, which is a directory, and then the name of an episode there.
func (f *dataFlags) completeEpisode(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	data, err := f.open(c, &State{}, args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer func() { _ = data.Close() }()
	data.SkipDamaged()
	var names []string
	for e, err := range data.Episodes(c.Context(), false) {
		if err != nil {
			break
		}
		names = append(names, taskText(&e.Row))
	}
	slices.Sort(names)
	return OneOf(names...)(c, args, prefix)
}

// override completes section.key=value: first the key, then values that are known names.
func (f *ConfigFlags) override() completer {
	return func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		key, value, hasValue := strings.Cut(prefix, "=")
		if !hasValue {
			var keys []string
			meanings := map[string]string{}
			for _, section := range settings.Sections(configs.Default()) {
				for _, x := range section.Settings {
					meanings[x.Key] = strings.ReplaceAll(x.Meaning, "`", "")
				}
			}
			for _, k := range configs.Keys() {
				keys = append(keys, k+"=\t"+meanings[k])
			}
			return withPrefix(prefix, keys), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		var names completer
		switch key {
		case "agent.kind":
			names = OneOf(agents.Registry.Kinds()...)
		case "sandbox.kind":
			names = OneOf(env.Drivers.Kinds()...)
		case "llm.model", "agent.with.solver_model":
			names = f.models()
		default:
			return nil, cobra.ShellCompDirectiveDefault
		}
		list, directive := names(c, args, value)
		for i := range list {
			list[i] = key + "=" + list[i]
		}
		return list, directive
	}
}

// addExportCompletions adds completion to the view and the flags of export.
func addExportCompletions(c *cobra.Command) {
	c.ValidArgsFunction = firstArg(OneOf(sinks.Views.Kinds()...))
	for flag, names := range map[string]completer{
		"mask": OneOf(sinks.Masks...), "phase": OneOf("seek", "solve"),
		"content-null": OneOf(sinks.ContentEmpty, sinks.ContentOmit),
		"split":        OneOf(append(slices.Clone(schemas.Splits), allSplits)...),
		"selection":    orFile(selection.Builtin()...), "container": OneOf(sinks.Containers...),
	} {
		Must(c.RegisterFlagCompletionFunc(flag, names))
	}
}

// Must panics if err is not nil. It is for errors that only a programming mistake causes,
// such as a misspelled flag.
func Must(err error) {
	if err != nil {
		panic(err)
	}
}
