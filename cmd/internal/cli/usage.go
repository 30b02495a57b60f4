package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// usage prints cobra's usage text with the descriptions of flags wrapped. It edits the text
// instead of setting cobra's template, because the linker keeps all methods of all types in a
// program that executes text/template, which adds 19 MB.
func usage(c *cobra.Command) error {
	out := c.OutOrStderr()
	var text strings.Builder
	c.SetOut(&text)
	err := new(cobra.Command).UsageFunc()(c)
	c.SetOut(out)
	if err != nil {
		return err
	}
	own, inherited := c.LocalFlags(), c.InheritedFlags()
	help := strings.Replace(text.String(), trimRight(own.FlagUsages()), trimRight(own.FlagUsagesWrapped(columns)), 1)
	help = strings.Replace(help, trimRight(inherited.FlagUsages()), trimRight(inherited.FlagUsagesWrapped(columns)), 1)
	_, err = io.WriteString(out, strings.Replace(help, " for more information about a command.", " for more about a command.", 1))
	return err
}

// trimRight removes spaces and newlines at the end of s.
func trimRight(s string) string { return strings.TrimRight(s, " \n") }

// addVersion adds --version to the root command. Like --help, it ignores arguments.
func addVersion(root *cobra.Command) {
	showVersion := root.Flags().BoolP("version", "v", false, "version for "+root.Name())
	check, run := root.Args, root.RunE
	root.Args = func(c *cobra.Command, args []string) error {
		if *showVersion {
			return nil
		}
		return check(c, args)
	}
	root.RunE = func(c *cobra.Command, args []string) error {
		if *showVersion {
			_, err := fmt.Fprint(c.OutOrStdout(), versionLine())
			return err
		}
		return run(c, args)
	}
}
