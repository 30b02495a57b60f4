// Package settings describes the settings of a configuration and of its components: their types,
// defaults and meanings. The reference, the JSON Schema, the file that "config init" writes and
// "config show" all come from it. It derives everything from the config structs; the meanings are the
// comments of their fields.
package settings

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/sinks"
	"github.com/tracesmith/tracesmith/tools"
)

// Setting describes one setting.
type Setting struct {
	Key     string // path, such as run.workers
	Type    string // name of its type in the reference
	Default string // as YAML; "" = unset
	Meaning string // one sentence

	value reflect.Value
}

// Section is a section of a configuration.
type Section struct {
	Name     string
	Settings []Setting
}

// Sections returns the sections of a configuration in the order of the reference, with the values of
// cfg as defaults. Section models is left out because its blocks have the settings of llm. Section mcp
// has those of one server with the id ID.
func Sections(cfg configs.Config) []Section {
	var out []Section
	for f, v := range reflect.ValueOf(cfg).Fields() {
		name := f.Tag.Get(configTag)
		switch name {
		case "-", "models":
		case "mcp":
			out = append(out, Section{"mcp.ID", settingsOf(configTag, reflect.ValueOf(configs.DefaultMCPServer()), "mcp.ID")})
		default:
			out = append(out, Section{name, field(configTag, reflect.TypeFor[configs.Config](), f, v, name)})
		}
	}
	return out
}

// Family is the set of components among which one setting chooses.
type Family struct {
	Block, Chooser string // for example agent.with and agent.kind
	About          string
	Components     []Component
}

// Component is one component and its own settings.
type Component struct {
	Kind     string
	Names    []string // Kind and its aliases
	Summary  string
	Settings []Setting

	fields reflect.Value // the struct of its settings; invalid if it has none
}

// Families returns all components that a configuration can choose.
func Families() []Family {
	return []Family{
		{"tasks.with", "tasks.source", "`tasks.source` chooses a task source, and `tasks.with` holds its settings.", components(env.Sources)},
		{"sandbox.with", "sandbox.kind", "`sandbox.kind` chooses a sandbox, and `sandbox.with` holds its settings.", components(env.Drivers)},
		{"agent.with", "agent.kind", "`agent.kind` chooses an agent, and `agent.with` holds its settings.", components(agents.Registry)},
		{"agent.tools", "", "Each item of `agent.tools` is the name of a tool, or a name with settings: `{bash: {timeout: 120}}`.", components(tools.Registry)},
		{"llm.with", "llm.provider", "`llm.provider` chooses an API, and `llm.with` holds its settings. The settings of section `llm` are not repeated here.", components(llms.Providers)},
	}
}

// Views returns the views of "export" and their own options.
func Views() []Component { return components(sinks.Views) }

func components[C, D any](registry *plugin.Registry[C, D]) []Component {
	var out []Component
	for _, kind := range registry.Kinds() {
		spec, _ := registry.Lookup(kind)
		c := Component{Kind: kind, Names: append([]string{kind}, spec.Aliases...), Summary: spec.Summary}
		if spec.Default != nil {
			c.fields = reflect.ValueOf(spec.Default()).Elem()
			c.Settings = settingsOf(componentTag, c.fields, "")
		}
		out = append(out, c)
	}
	return out
}

// Tags of the fields of a configuration and of components that hold the key.
const configTag, componentTag = "mapstructure", "json"

// keyOf returns the key of a field, "" if it has none. Fields of embedded structs belong to the outer one.
func keyOf(tag string, f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get(tag), ",")
	if name == "-" {
		return ""
	}
	return name
}

// filledByLLM reports whether a field is an embedded struct that section llm fills.
func filledByLLM(f reflect.StructField) bool { return f.Anonymous && f.Name == "Endpoint" }

// settingsOf returns the settings of a struct, including those of embedded structs.
func settingsOf(tag string, v reflect.Value, path string) (list []Setting) {
	for f, value := range v.Fields() {
		name := keyOf(tag, f)
		switch {
		case filledByLLM(f):
		case f.Anonymous:
			list = append(list, settingsOf(tag, value, path)...)
		case name != "":
			list = append(list, field(tag, v.Type(), f, value, strings.TrimPrefix(path+"."+name, "."))...)
		}
	}
	return list
}

// field returns the setting of a field, or the settings of the struct that the field holds.
func field(tag string, owner reflect.Type, f reflect.StructField, v reflect.Value, key string) []Setting {
	inner := f.Type
	switch {
	case inner.Kind() == reflect.Pointer && inner.Elem().Kind() == reflect.Struct:
		return settingsOf(tag, reflect.Zero(inner.Elem()), key)
	case inner.Kind() == reflect.Struct && !decodesItself(inner):
		return settingsOf(tag, v, key)
	case inner.Kind() == reflect.Slice && inner.Elem().Kind() == reflect.Struct && !decodesItself(inner.Elem()):
		return settingsOf(tag, reflect.Zero(inner.Elem()), key+"[]")
	}
	return []Setting{{key, typeName(inner), text(v), Meaning(owner, f.Name), v}}
}

// decodesItself reports whether a type decodes itself from text or JSON.
func decodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

func isDuration(t reflect.Type) bool {
	return t == reflect.TypeFor[time.Duration]() || t.Name() == "seconds"
}

func isBlock(t reflect.Type) bool {
	return t == reflect.TypeFor[json.RawMessage]() || t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Interface
}

// typeName returns the name of a Go type in the reference.
func typeName(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case isDuration(t):
		return "duration"
	case t == reflect.TypeFor[configs.ByteSize]():
		return "size"
	case t == reflect.TypeFor[[]configs.Tool]():
		return "list of tools"
	case isBlock(t):
		return "block"
	case decodesItself(t):
		return "text or list"
	}
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "bool"
	case reflect.Float64:
		return "number"
	case reflect.Int, reflect.Int64:
		return "integer"
	case reflect.Slice:
		return "list of " + typeName(t.Elem())
	case reflect.Map:
		return "block of " + typeName(t.Elem())
	}
	return t.String()
}

// text returns a value as YAML; "" if it is unset.
func text(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case configs.ByteSize:
		if x > 0 && x%(1<<30) == 0 {
			return strconv.Itoa(int(x>>30)) + "GiB"
		}
	case []configs.Tool:
		var names []string
		for _, tool := range x {
			names = append(names, tool.Name)
		}
		return "[" + strings.Join(names, ", ") + "]"
	case []string:
		if len(x) > 0 {
			return "[" + strings.Join(x, ", ") + "]"
		}
		return ""
	}
	if isDuration(v.Type()) {
		return shortDuration(time.Duration(v.Int()))
	}
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64:
		return fmt.Sprint(v.Interface())
	case reflect.Pointer:
		if !v.IsNil() {
			return text(v.Elem())
		}
	}
	return ""
}

// shortDuration formats a duration without trailing zeros: 5m, not 5m0s.
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
