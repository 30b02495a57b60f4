package settings

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/tracesmith/tracesmith/configs"
)

// draft is the version of JSON Schema that the schemas use.
const draft = "https://json-schema.org/draft/2020-12/schema"

// Patterns of texts that are not plain texts.
const (
	durationPattern = `^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`
	sizePattern     = `^([0-9.]+ *([kKmMgG][iI]?)?[bB]?|-1)$`
)

// Schema returns the JSON Schema of a configuration file.
func Schema() *jsonschema.Schema {
	root := object(configTag, reflect.ValueOf(configs.Default()))
	root.Schema, root.Title = draft, "tracesmith configuration"
	for _, f := range Families() {
		section, _, _ := strings.Cut(f.Block, ".")
		s := root.Properties[section]
		if f.Block == "agent.tools" {
			s.Properties["tools"].Items = toolItem(f)
			continue
		}
		chooseComponent(s, f)
	}
	root.Properties["mcp"].AdditionalProperties = object(configTag, reflect.ValueOf(configs.DefaultMCPServer()))
	root.Properties["models"] = &jsonschema.Schema{
		Types: []string{"object", "null"}, Description: "More models, with the settings of section llm. You choose their names.",
		AdditionalProperties: root.Properties["llm"],
	}
	return root
}

// chooseComponent restricts the setting that chooses a component to the kinds that exist, and the
// component's own settings to those of the kind.
func chooseComponent(section *jsonschema.Schema, f Family) {
	chooser := f.Chooser[strings.Index(f.Chooser, ".")+1:]
	kinds := []any{""} // unset
	if section.Properties[chooser].Default != nil {
		kinds = nil
	}
	for _, c := range f.Components {
		var names []any
		for _, name := range c.Names {
			names = append(names, name)
		}
		kinds = append(kinds, names...)
		section.AllOf = append(section.AllOf, &jsonschema.Schema{
			If:   &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{chooser: {Enum: names}}, Required: []string{chooser}},
			Then: &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{"with": c.schema()}},
		})
	}
	section.Properties[chooser].Enum = kinds
}

// schema returns the schema of a component's own settings.
func (c Component) schema() *jsonschema.Schema {
	if !c.fields.IsValid() {
		return &jsonschema.Schema{Types: []string{"object", "null"}, Description: c.Summary, AdditionalProperties: nothing()}
	}
	s := object(componentTag, c.fields)
	s.Description = c.Summary
	return s
}

// toolItem returns the schema of an item of agent.tools: a name, or one name with settings.
func toolItem(f Family) *jsonschema.Schema {
	one := 1
	withSettings := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}, AdditionalProperties: nothing(), MinProperties: &one, MaxProperties: &one}
	name := &jsonschema.Schema{Type: "string"}
	for _, c := range f.Components {
		for _, n := range c.Names {
			name.Enum = append(name.Enum, n)
			withSettings.Properties[n] = c.schema()
		}
	}
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{name, withSettings}}
}

// nothing returns a schema that no value satisfies.
func nothing() *jsonschema.Schema { return &jsonschema.Schema{Not: &jsonschema.Schema{}} }

// object returns the schema of a struct, whose values are the defaults.
func object(tag string, v reflect.Value) *jsonschema.Schema {
	s := &jsonschema.Schema{Types: []string{"object", "null"}, Properties: map[string]*jsonschema.Schema{}, AdditionalProperties: nothing()}
	addProperties(s, tag, v)
	return s
}

func addProperties(s *jsonschema.Schema, tag string, v reflect.Value) {
	for f, value := range v.Fields() {
		name := keyOf(tag, f)
		switch {
		case filledByLLM(f):
		case f.Anonymous:
			addProperties(s, tag, value)
		case name != "":
			property := valueSchema(tag, f.Type, value)
			property.Description = Meaning(v.Type(), f.Name)
			if value.Kind() != reflect.Struct {
				property.Default = defaultJSON(value)
			}
			s.Properties[name] = property
			s.PropertyOrder = append(s.PropertyOrder, name)
		}
	}
}

// valueSchema returns the schema of a value of type t. If t is a struct, v has its defaults.
func valueSchema(tag string, t reflect.Type, v reflect.Value) *jsonschema.Schema {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
		v = reflect.Zero(t)
	}
	switch {
	case isDuration(t):
		return &jsonschema.Schema{Type: "string", Pattern: durationPattern}
	case t == reflect.TypeFor[configs.ByteSize]():
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "integer"}, {Type: "string", Pattern: sizePattern}}}
	case isBlock(t):
		return &jsonschema.Schema{Types: []string{"object", "null"}}
	case decodesItself(t):
		return &jsonschema.Schema{} // it has several forms
	}
	switch t.Kind() {
	case reflect.Struct:
		return object(tag, v)
	case reflect.Slice:
		return &jsonschema.Schema{Types: []string{"array", "null"}, Items: valueSchema(tag, t.Elem(), reflect.Zero(t.Elem()))}
	case reflect.Map:
		return &jsonschema.Schema{Types: []string{"object", "null"}, AdditionalProperties: valueSchema(tag, t.Elem(), reflect.Zero(t.Elem()))}
	case reflect.Bool:
		return &jsonschema.Schema{Type: "boolean"}
	case reflect.Float64:
		return &jsonschema.Schema{Type: "number"}
	case reflect.Int, reflect.Int64:
		return &jsonschema.Schema{Type: "integer"}
	}
	return &jsonschema.Schema{Type: "string"}
}

// defaultJSON returns a default as JSON; nil if the setting is unset.
func defaultJSON(v reflect.Value) json.RawMessage {
	plain := plainValue(v)
	if plain == nil || plain == "" {
		return nil
	}
	raw, err := json.Marshal(plain)
	if err != nil {
		panic(err) // cannot happen: defaults are plain data
	}
	return raw
}

// plainValue returns a value as YAML and JSON can hold it; nil if it is unset.
func plainValue(v reflect.Value) any {
	switch {
	case v.Kind() == reflect.Pointer || v.Kind() == reflect.Slice || v.Kind() == reflect.Map:
		if v.IsNil() {
			return nil
		}
	case isDuration(v.Type()):
		return shortDuration(time.Duration(v.Int()))
	}
	if v.Type() == reflect.TypeFor[configs.ByteSize]() && text(v) != "" {
		return text(v)
	}
	return v.Interface()
}
