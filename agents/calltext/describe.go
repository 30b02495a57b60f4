package calltext

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// Describe lists tools for a model that gets no other description of them.
func Describe(tools []schemas.ToolSchema) string {
	var out []string
	for _, t := range tools {
		p := find(tools, t.Name)
		text := "## " + t.Name + "\n\n" + strings.TrimSpace(t.Description) + "\n\n"
		if len(p.Properties.names) == 0 {
			out = append(out, text+"No parameters.")
			continue
		}
		text += "Parameters:"
		for _, name := range p.Properties.names {
			text += "\n- " + describe(name, p.Properties.byName[name], slices.Contains(p.Required, name))
		}
		out = append(out, text)
	}
	return strings.Join(out, "\n\n")
}

func describe(name string, p property, required bool) string {
	kind := strings.Join(p.Type, " or ")
	if len(p.Items) > 0 {
		kind += " of " + string(p.Items)
	}
	if kind == "" {
		kind = "any"
	}
	if !required {
		kind += ", optional"
	}
	text := fmt.Sprintf("%s (%s)", name, kind)
	if d := strings.TrimSpace(p.Description); d != "" {
		text += ": " + d
	}
	if len(p.Enum) > 0 {
		var values []string
		for _, v := range p.Enum {
			values = append(values, fmt.Sprint(v))
		}
		text += " One of: " + strings.Join(values, ", ") + "."
	}
	return text
}

// Example is a call of a tool with its required parameters, to be filled in.
func Example(tool string, tools []schemas.ToolSchema) string {
	p := find(tools, tool)
	text := "<function=" + tool + ">\n"
	for _, name := range p.Properties.names {
		if slices.Contains(p.Required, name) {
			text += "<parameter=" + name + ">" + strings.Join(p.Properties.byName[name].Type, " or ") + endParameter + "\n"
		}
	}
	return text + endFunction
}

// Format writes a call as Parse reads it. Values of several lines stand on lines
// of their own.
func Format(call schemas.ToolCall) string {
	var args map[string]json.RawMessage
	text := "<function=" + call.Name + ">\n"
	if json.Unmarshal(call.Arguments, &args) == nil {
		for _, name := range slices.Sorted(maps.Keys(args)) {
			text += "<parameter=" + name + ">" + plain(args[name]) + endParameter + "\n"
		}
	}
	return text + endFunction
}

// plain is a value as it is written between tags.
func plain(value json.RawMessage) string {
	var s string
	if json.Unmarshal(value, &s) != nil {
		return string(value)
	}
	if strings.ContainsAny(s, "\n<") || s == "" {
		return "\n" + s + "\n"
	}
	return s
}
