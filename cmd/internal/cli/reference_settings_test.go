package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/cmd/internal/settings"
	"github.com/tracesmith/tracesmith/configs"
)

const settingHead = "| Setting | Type | Default | Meaning |\n| --- | --- | --- | --- |\n"

// settingTable renders settings as a Markdown table.
func settingTable(list []settings.Setting) string {
	b := strings.Builder{}
	b.WriteString(settingHead)
	for _, s := range list {
		value := s.Default
		if value != "" {
			value = "`" + value + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.Key, s.Type, value, strings.ReplaceAll(s.Meaning, "|", "\\|"))
	}
	return b.String()
}

// settingPage returns the page about settings: first the sections of a configuration, then the
// settings of components.
func settingPage(*testing.T) string {
	var b strings.Builder
	b.WriteString("# Settings\n\nA configuration is YAML: sections with settings. " +
		"`tracesmith help config` says where settings come from, and which value wins. `tracesmith config show` prints the values that apply, " +
		"`config init` writes a file with all settings, and `config schema` prints a JSON Schema for editors.\n\n" +
		"A duration is a number with a unit, such as `90s`, `5m` or `1h30m`. A size is a number of bytes, or a number with a unit, such as `512MB` or `2GiB`. " +
		"Units of sizes are powers of 1024. A setting without a default is unset.\n\n")
	for _, s := range settings.Sections(configs.Default()) {
		about := ""
		if s.Name == "mcp.ID" {
			about = "Each block of section `mcp` is an MCP server. You choose its id.\n\n"
		}
		fmt.Fprintf(&b, "## %s\n\n%s%s\n", s.Name, about, settingTable(s.Settings))
		if s.Name == "llm" {
			b.WriteString("## models.NAME\n\nEach block of section `models` is one more model, with the settings of section `llm`. Its name can be used in `llm.model` and in the settings of agents.\n\n")
		}
	}
	for _, f := range settings.Families() {
		fmt.Fprintf(&b, "## %s\n\n%s\n\n", f.Block, f.About)
		for _, c := range f.Components {
			fmt.Fprintf(&b, "### %s\n\n%s.\n\n", c.Kind, capital(c.Summary))
			if len(c.Settings) > 0 {
				b.WriteString(settingTable(c.Settings) + "\n")
			}
		}
	}
	b.WriteString("Settings of views are in [views](views.md).\n")
	return b.String()
}

// capital returns s with its first letter in upper case.
func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
