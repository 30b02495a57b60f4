package cli

// This file holds the help topics: pages of help that do not belong to a single command.

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/configs"
)

// columns is the maximum width of help texts.
const columns = 80

// newTopics returns the additional help topics; cobra lists them at the end of --help.
func newTopics() []*cobra.Command {
	return []*cobra.Command{
		{Use: "environment", Short: "The environment variables that tracesmith reads", Long: environmentTopic()},
		{Use: "exit-codes", Short: "What each exit code means", Long: exitCodesTopic()},
	}
}

// newHelp is cobra's help command, which also completes topics and refuses unknown ones.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use: "help [command or topic]", Short: "Explain a command or a topic", GroupID: "tool",
		Long: "Help explains a command, such as \"tracesmith help tasks verify\", or a topic, such as\n" +
			"\"tracesmith help exit-codes\". \"tracesmith --help\" lists both.",
		ValidArgsFunction: func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
			target, rest, err := c.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return withPrefix(prefix, helpNames(target)), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			target, rest, err := c.Root().Find(args)
			if err != nil {
				return Usage(err)
			}
			if len(rest) > 0 {
				return unknownTopic(target, rest[0])
			}
			target.InitDefaultHelpFlag()
			target.InitDefaultVersionFlag()
			return target.Help()
		},
	}
}

// helpNames returns the names of the subcommands and topics of c that help explains.
func helpNames(c *cobra.Command) (names []string) {
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
			names = append(names, sub.Name())
		}
	}
	return names
}

// unknownTopic returns the error for a name below c that help does not explain.
func unknownTopic(c *cobra.Command, wrong string) error {
	parents := strings.TrimPrefix(strings.TrimPrefix(c.CommandPath(), c.Root().Name())+" ", " ")
	message := fmt.Sprintf("unknown help topic %q", parents+wrong)
	if suggestion := similar(wrong, helpNames(c)); suggestion != "" {
		message += fmt.Sprintf(": did you mean %q?", parents+suggestion)
	}
	return &Error{Code: ExitUsage, Try: c.CommandPath() + " --help", Err: errors.New(message)}
}

// checkTopic refuses arguments of a help topic that is called as a command. cobra would ignore
// them and print the topic, so a script that runs "config validate" would seem to succeed.
func checkTopic(c *cobra.Command, args []string) error {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") || !c.IsAdditionalHelpTopicCommand() {
		return nil
	}
	return &Error{
		Code: ExitUsage, Try: c.Root().Name() + " help " + c.Name(),
		Err: fmt.Errorf("unknown command %q: %s is a help topic", c.Name()+" "+args[0], c.Name()),
	}
}

func exitCodesTopic() string {
	var rows [][2]string
	for _, row := range exitCodes {
		rows = append(rows, [2]string{strconv.Itoa(row.code), row.meaning})
	}
	return "Scripts can rely on these exit codes:\n\n" + table(rows) + "\n" + wrap(resumingCodes, 0)
}

func configTopic() string {
	places := [][2]string{
		{"1.", "the built-in defaults"},
		{"2.", "files and profiles that -c names, in the order given"},
		{"3.", "environment variables, such as TRACESMITH_RUN__WORKERS=8"},
		{"4.", "-p section.key=value, in the order given"},
		{"5.", "flags that stand for a setting, such as --workers and --sandbox"},
	}
	files := [][2]string{
		{"-c FILE", "reads a YAML file. -c may be repeated: blocks are merged, and a list or a value replaces the earlier one."},
		{"-c NAME", "reads a profile that is built in, if there is no file of that name. The profiles are " + strings.Join(configs.Profiles(), ", ") + "."},
		{"-p KEY=VALUE", "sets one setting and may be repeated. The value is YAML, such as -p 'tasks.ids=[stockroom, agenda]'. Shell completion completes the keys."},
	}
	values := [][2]string{
		{"config show", "prints the value of each setting, and where it comes from."},
		{"run --dry-run", "checks the configuration and every part of the run, estimates its cost, and runs nothing."},
		{"RUN/run.json", "is in the run directory. Its \"config\" holds the value of each setting when the run was created, defaults included, without secrets and without the section nats."},
	}
	return wrap("Settings come from five places. If several of them have a setting, the last one wins:", 0) + "\n" +
		table(places) + "\nFiles, profiles and single settings:\n\n" + table(files) + "\n" +
		wrap("A setting that does not exist or has the wrong type is an error with exit code 2, which names the file, the line and the nearest name.", 0) + "\n" +
		wrap("A configuration never holds a secret. Write env:NAME to read it from an environment variable, or file:PATH to read the first line of a file.", 0) + "\n" +
		"To see which values a run uses:\n\n" + table(values)
}

// table formats names and their meanings in two columns, indented by two spaces and wrapped.
func table(rows [][2]string) string {
	width := 0
	for _, row := range rows {
		width = max(width, len(row[0]))
	}
	var b strings.Builder
	for _, row := range rows {
		meaning := wrap(row[1], width+4)
		fmt.Fprintf(&b, "  %-*s%s", width+2, row[0], strings.TrimLeft(meaning, " "))
	}
	return b.String()
}

// wrap formats Markdown text as plain lines of at most columns characters, each indented by
// indent spaces.
func wrap(text string, indent int) string {
	var b strings.Builder
	column := columns
	for _, word := range strings.Fields(strings.ReplaceAll(text, "`", "")) {
		switch {
		case column+1+len(word) <= columns:
			b.WriteString(" ")
			column++
		default:
			if b.Len() > 0 {
				b.WriteString("\n")
			}
			b.WriteString(strings.Repeat(" ", indent))
			column = indent
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String() + "\n"
}
