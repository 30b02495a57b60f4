package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/internal/settings"
	"github.com/tracesmith/tracesmith/configs"
)

// newConfig returns the command config, whose help is the page about configurations.
func newConfig(s *State) *cobra.Command {
	c := Group("config", "Show, describe or begin a configuration", newConfigShow(s), newConfigSchema(s), newConfigInit(s))
	c.Long = strings.TrimRight(configTopic(), "\n")
	c.Example = "  tracesmith run -c quickstart\n  tracesmith run -c openai -c my.yaml -p llm.model=my-model -n 8"
	return c
}

func newConfigShow(s *State) *cobra.Command {
	var f ConfigFlags
	var profile string
	var changed, asJSON bool
	c := &cobra.Command{
		Use: "show", Short: "Print the value of every setting and where it comes from",
		Long: `Print the value of every setting that applies, and where it comes from: a file
with its line, an environment variable, -p, or the default. Passwords are
hidden. With --profile, print the file of a profile that is built in.`,
		Example: "  tracesmith config show -c my.yaml -p run.workers=8\n  tracesmith config show -c my.yaml --changed\n  tracesmith config show --profile openai > my.yaml",
		Args:    RangeArgs(0, 0),
		RunE: func(*cobra.Command, []string) error {
			if profile != "" {
				return showProfile(s, profile, asJSON)
			}
			cfg, err := f.Load(s)
			if err != nil {
				return err
			}
			values, err := settings.Effective(cfg)
			if err != nil {
				return Usage(err)
			}
			if changed {
				values = withoutDefaults(values)
			}
			if asJSON {
				return PrintJSON(s, map[string]any{"schema": "tracesmith.config/1", "settings": values})
			}
			w := newTable(s.Stdout, "SETTING\tORIGIN\tVALUE")
			for _, v := range values {
				fmt.Fprintf(w, "%s\t%s\t%s\n", v.Key, v.Origin, v.Text())
			}
			return w.Flush()
		},
	}
	f.Add(c)
	c.Flags().StringVar(&profile, "profile", "", "print this profile: "+strings.Join(configs.Profiles(), ", "))
	c.Flags().BoolVar(&changed, "changed", false, "leave out settings that have their default")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	Must(c.RegisterFlagCompletionFunc("profile", OneOf(configs.Profiles()...)))
	return c
}

// showProfile prints the file of a built-in profile.
func showProfile(s *State, name string, asJSON bool) error {
	data, ok := configs.Profile(name)
	if !ok {
		return Usage(fmt.Errorf("no profile %q: choose one of %s", name, strings.Join(configs.Profiles(), ", ")))
	}
	if asJSON {
		return PrintJSON(s, map[string]any{"schema": "tracesmith.profile/1", "name": name, "text": string(data)})
	}
	_, err := s.Stdout.Write(data)
	return err
}

func withoutDefaults(values []settings.Value) []settings.Value {
	out := []settings.Value{}
	for _, v := range values {
		if v.Origin != settings.OriginDefault {
			out = append(out, v)
		}
	}
	return out
}

func newConfigSchema(s *State) *cobra.Command {
	var task bool
	c := &cobra.Command{
		Use: "schema", Short: "Print a JSON Schema of configurations or task.yaml for editors",
		Example: "  tracesmith config schema > tracesmith.schema.json\n  # then begin a configuration with:\n  # yaml-language-server: $schema=tracesmith.schema.json",
		Args:    RangeArgs(0, 0),
		RunE: func(*cobra.Command, []string) error {
			if task {
				return PrintJSON(s, settings.TaskSchema())
			}
			return PrintJSON(s, settings.Schema())
		},
	}
	c.Flags().BoolVar(&task, "task", false, "print the schema of task.yaml")
	return c
}

// defaultConfigFile is the file that config init writes unless another one is named.
const defaultConfigFile = "tracesmith.yaml"

func newConfigInit(s *State) *cobra.Command {
	return &cobra.Command{
		Use: "init [FILE]", Short: "Write a configuration file with every setting and its meaning",
		Long: `Write a configuration file, ` + defaultConfigFile + ` by default, with every setting, its
meaning and its default. It runs as it is, without a model. An existing file is
not overwritten.`,
		Args: RangeArgs(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			file := defaultConfigFile
			if len(args) > 0 {
				file = args[0]
			}
			out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
			if errors.Is(err, fs.ErrExist) {
				return Usage(fmt.Errorf("%s exists: name another file, or remove it", file))
			}
			if err == nil {
				_, err = out.WriteString(settings.Template(columns))
				err = errors.Join(err, out.Close())
			}
			if err != nil {
				return Usage(fmt.Errorf("writing the configuration: %w", err))
			}
			fmt.Fprintf(s.Stderr, "wrote %s; next: %s\n", file, shell("tracesmith", "run", "-c", file, "--dry-run"))
			return nil
		},
	}
}
