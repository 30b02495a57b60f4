// Package jsonschema reads the JSON Schema of a tool's parameters. It lists the
// arguments, and validates and coerces the arguments that a model sends.
package jsonschema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/tracesmith/tracesmith/schemas"
)

// Tool is a tool's name and the schema of its arguments.
type Tool struct {
	Name string
	// Arguments are in declaration order.
	Arguments []Argument

	schema   jsonschema.Schema
	resolved *jsonschema.Resolved
}

// Argument is one argument of a tool.
type Argument struct {
	Name        string
	Description string
	Required    bool
	Types       []string // without null; empty if the schema names no type
	Enum        []any
	Items       string // schema of a list's items as JSON; "" if the schema does not have one
}

// Read reads the schema of t. It returns an error if the schema is invalid or contains a reference
// that cannot be resolved.
func Read(t schemas.ToolSchema) (tool *Tool, err error) {
	defer func() {
		if p := recover(); p != nil {
			tool, err = nil, errors.New("the validator cannot read it")
		}
	}()
	tool = &Tool{Name: t.Name}
	if err := json.Unmarshal(t.Parameters, &tool.schema); err != nil {
		return nil, err
	}
	if tool.resolved, err = tool.schema.Resolve(nil); err != nil {
		return nil, err
	}
	return tool, tool.setArguments(t.Parameters)
}

// setArguments sets Arguments. It reads the order of properties and the JSON of items from the
// text, because jsonschema.Schema does not keep them.
func (t *Tool) setArguments(parameters []byte) error {
	var raw struct{ Properties json.RawMessage }
	if len(t.schema.Properties) == 0 {
		return nil
	}
	if err := json.Unmarshal(parameters, &raw); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(raw.Properties))
	if _, err := dec.Token(); err != nil {
		return err
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		var body json.RawMessage
		if err := dec.Decode(&body); err != nil {
			return err
		}
		var items struct{ Items json.RawMessage }
		_ = json.Unmarshal(body, &items) // fails for the schemas true and false, which have no items
		a := Argument{Name: name.(string), Items: string(items.Items)}
		a.Required = slices.Contains(t.schema.Required, a.Name)
		if s := t.schema.Properties[a.Name]; s != nil {
			a.Description, a.Types, a.Enum = s.Description, typesOf(s), s.Enum
		}
		t.Arguments = append(t.Arguments, a)
	}
	return nil
}

// Argument returns the argument with the name, or nil.
func (t *Tool) Argument(name string) *Argument {
	for i := range t.Arguments {
		if t.Arguments[i].Name == name {
			return &t.Arguments[i]
		}
	}
	return nil
}

// Names lists the arguments in declaration order.
func (t *Tool) Names() []string {
	var names []string
	for _, a := range t.Arguments {
		names = append(names, a.Name)
	}
	return names
}

// Required lists the required arguments in the order of the schema. It may contain names
// that the schema does not declare.
func (t *Tool) Required() []string { return t.schema.Required }

// typesOf returns the types that s names, without null.
func typesOf(s *jsonschema.Schema) []string {
	if s == nil {
		return nil
	}
	if s.Type != "" {
		return []string{s.Type}
	}
	return slices.DeleteFunc(slices.Clone(s.Types), func(t string) bool { return t == "null" })
}

// admitsNull reports whether null is one of the types that s names, or s does not name a type.
func admitsNull(s *jsonschema.Schema) bool {
	return s != nil && (s.Type == "" && len(s.Types) == 0 || s.Type == "null" || slices.Contains(s.Types, "null"))
}

// typeNames maps types to their names in messages for models.
var typeNames = map[string]string{
	"integer": "an integer", "number": "a number", "boolean": "true or false",
	"string": "a string", "array": "a list", "object": "an object",
}

func typeName(s *jsonschema.Schema) string {
	var names []string
	for _, t := range typesOf(s) {
		names = append(names, cmp.Or(typeNames[t], t))
	}
	if len(names) == 0 {
		return "any value"
	}
	return strings.Join(names, " or ")
}

// describeValue describes a value in about one line.
func describeValue(v any) string {
	if v == nil {
		return "null"
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("a %T", v)
	}
	s := string(b)
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "..."
	}
	switch v.(type) {
	case string:
		return "the string " + s
	case []any:
		return "the list " + s
	case map[string]any:
		return "the object " + s
	}
	return s
}
