package calltext

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/tools/jsonschema"
)

// findTool returns the parameters of a tool. For a tool that is unknown or whose schema is invalid,
// it returns no parameters, because the call itself reports these errors.
func findTool(tools []schemas.ToolSchema, name string) *jsonschema.Tool {
	for _, t := range tools {
		if t.Name == name {
			if tool, err := jsonschema.Read(t); err == nil {
				return tool
			}
		}
	}
	return &jsonschema.Tool{}
}

// Describe describes tools as text, for models that do not get a native description of them.
func Describe(tools []schemas.ToolSchema) string {
	var out []string
	for _, t := range tools {
		p := findTool(tools, t.Name)
		text := "## " + t.Name + "\n\n" + strings.TrimSpace(t.Description) + "\n\n"
		if len(p.Arguments) == 0 {
			out = append(out, text+"No parameters.")
			continue
		}
		text += "Parameters:"
		for _, a := range p.Arguments {
			text += "\n- " + describe(a)
		}
		out = append(out, text)
	}
	return strings.Join(out, "\n\n")
}

func describe(a jsonschema.Argument) string {
	kind := strings.Join(a.Types, " or ")
	if a.Items != "" {
		kind += " of " + a.Items
	}
	kind = cmp.Or(kind, "any")
	if !a.Required {
		kind += ", optional"
	}
	text := fmt.Sprintf("%s (%s)", a.Name, kind)
	if d := strings.TrimSpace(a.Description); d != "" {
		text += ": " + d
	}
	if len(a.Enum) > 0 {
		var values []string
		for _, v := range a.Enum {
			values = append(values, fmt.Sprint(v))
		}
		text += " One of: " + strings.Join(values, ", ") + "."
	}
	return text
}

// Example returns a sample call of a tool with its required parameters and their types.
func Example(tool string, tools []schemas.ToolSchema) string {
	text := "<function=" + tool + ">\n"
	for _, a := range findTool(tools, tool).Arguments {
		if a.Required {
			text += "<parameter=" + a.Name + ">" + strings.Join(a.Types, " or ") + endParameter + "\n"
		}
	}
	return text + endFunction
}
