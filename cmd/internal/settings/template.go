package settings

import (
	"fmt"
	"strings"

	"github.com/tracesmith/tracesmith/configs"
)

// active are the settings that a new configuration sets, with their values.
var active = map[string]string{
	"version": "1", "run.name": "my-run", "run.dir": "runs/my-run", "run.workers": "2", "tasks.source": "builtin", "agent.kind": "oracle",
}

// Template returns a configuration file with every setting and its meaning, wrapped at width columns.
// All but the most important ones are commented out and show their defaults.
func Template(width int) string {
	var b strings.Builder
	comment := func(indent, text string) {
		for line := range strings.SplitSeq(wrapText(text, width-len(indent)-2), "\n") {
			fmt.Fprintf(&b, "%s# %s\n", indent, line)
		}
	}
	comment("", "A configuration of tracesmith. A line that begins with # and no space is a setting with its default, if it has one: remove the #, also from its section, to change it. "+
		"tracesmith config show -c FILE prints the values that apply. The settings of components (tasks.with, sandbox.with, agent.with, llm.with) are in docs/reference/settings.md.")
	for _, s := range Sections(configs.Default()) {
		b.WriteString("\n")
		switch s.Name {
		case "version":
			b.WriteString("version: 1\n")
			continue
		case "mcp.ID":
			comment("", "Servers of the Model Context Protocol whose tools agents get. You choose their ids.")
			b.WriteString("#mcp:\n  #docs:\n")
		default:
			b.WriteString(sectionHead(s))
		}
		for _, x := range s.Settings {
			writeSetting(&b, comment, s.Name, x)
		}
	}
	return b.String()
}

// sectionHead returns the line of a section, commented out if nothing in it is set.
func sectionHead(s Section) string {
	for _, x := range s.Settings {
		if active[x.Key] != "" {
			return s.Name + ":\n"
		}
	}
	return "#" + s.Name + ":\n"
}

// writeSetting writes the meaning of a setting and, below it, the setting.
func writeSetting(b *strings.Builder, comment func(indent, text string), section string, x Setting) {
	key := strings.TrimPrefix(strings.TrimPrefix(x.Key, section), ".")
	depth := 1 + strings.Count(section, ".")
	if strings.Contains(key, "[]") || strings.Contains(key, ".") {
		comment(strings.Repeat("  ", depth), fmt.Sprintf("%s (%s): %s", strings.TrimPrefix(key, "[]."), x.Type, x.Meaning))
		return
	}
	indent := strings.Repeat("  ", depth)
	comment(indent, fmt.Sprintf("%s (%s)", x.Meaning, x.Type))
	if value := active[x.Key]; value != "" {
		fmt.Fprintf(b, "%s%s: %s\n", indent, key, value)
		return
	}
	fmt.Fprintf(b, "%s#%s:%s\n", indent, key, strings.TrimRight(" "+x.Default, " "))
}

// wrapText breaks a text into lines of at most width characters.
func wrapText(text string, width int) string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return strings.Join(append(lines, line), "\n")
}
