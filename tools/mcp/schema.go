package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/tools"
	"github.com/tracesmith/tracesmith/tools/jsonschema"
)

// Limits of one tool's schema, which every prompt contains.
const (
	maxSchema      = 32 << 10 // bytes
	maxSchemaText  = 500      // characters of one description in it
	maxSchemaDepth = 64       // nested objects and lists
)

// convertSchema converts a server's input schema to function parameters that model providers
// accept, and makes an example call. It keeps enums, array types, references and
// combinations. It adds the type and the properties of the object if they are missing,
// allows null for optional arguments, and cleans and shortens texts. The error says why
// the schema cannot be used.
func convertSchema(foreign any) (params json.RawMessage, example string, err error) {
	b, err := json.Marshal(foreign)
	if err != nil {
		return nil, "", err
	}
	if len(b) > maxSchema {
		return nil, "", fmt.Errorf("it is longer than %d KiB", maxSchema>>10)
	}
	var root map[string]any
	if foreign != nil {
		if err := json.Unmarshal(b, &root); err != nil {
			return nil, "", errors.New("it is not an object")
		}
	}
	if root == nil {
		root = map[string]any{}
	}
	if root["type"] == nil {
		root["type"] = "object"
	}
	if root["type"] != "object" {
		return nil, "", fmt.Errorf("the arguments of a tool must be an object, not %s", quoteStart(fmt.Sprint(root["type"])))
	}
	delete(root, "$schema") // not useful to a model
	delete(root, "$id")
	if err := cleanSchema(root, 0); err != nil {
		return nil, "", err
	}
	props, _ := root["properties"].(map[string]any)
	if props == nil {
		props = map[string]any{}
		root["properties"] = props
	}
	required, _ := root["required"].([]any)
	for name, p := range props {
		if s, ok := p.(map[string]any); ok && !slices.Contains(required, any(name)) {
			props[name] = nullable(s)
		}
	}
	params, err = schemas.CanonicalJSON(root)
	if err != nil {
		return nil, "", err
	}
	tool, err := jsonschema.Read(schemas.ToolSchema{Parameters: params})
	if err != nil {
		return nil, "", err
	}
	example, err = exampleOf(props, tool.Required())
	return params, example, err
}

// validTypes lists the types of JSON Schema.
var validTypes = []string{"string", "integer", "number", "boolean", "object", "array", "null"}

// cleanSchema cleans and shortens the texts of a schema in place. It returns an error for deep
// nesting and unknown types, because model servers would reject every request that contains
// them.
func cleanSchema(v any, depth int) error {
	if depth > maxSchemaDepth {
		return errors.New("it is nested too deeply")
	}
	switch v := v.(type) {
	case map[string]any:
		for key, sub := range v {
			text, isText := sub.(string)
			switch {
			case slices.Contains([]string{"default", "const", "enum", "examples"}, key): // values, not schemas
			case isText && slices.Contains([]string{"description", "title", "$comment"}, key):
				v[key] = clip(strings.TrimSpace(tools.Clean(text)), maxSchemaText)
			case isText && key == "type" && !slices.Contains(validTypes, text):
				return fmt.Errorf("unknown type %s", quoteStart(text))
			default:
				if err := cleanSchema(sub, depth+1); err != nil {
					return err
				}
			}
		}
	case []any:
		for _, sub := range v {
			if err := cleanSchema(sub, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// nullable returns a schema that also admits null.
func nullable(s map[string]any) map[string]any {
	switch kind := s["type"].(type) {
	case string:
		if kind == "null" {
			return s
		}
		s["type"] = []any{kind, "null"}
	case []any:
		if !slices.Contains(kind, any("null")) {
			s["type"] = append(slices.Clone(kind), "null")
		}
	case nil:
		return nullableUntyped(s)
	}
	if enum, ok := s["enum"].([]any); ok && !slices.Contains(enum, nil) {
		s["enum"] = append(slices.Clone(enum), nil)
	}
	if _, fixed := s["const"]; fixed || hasCombinators(s) {
		return orNull(s)
	}
	return s
}

// nullableUntyped is nullable for a schema without a type, which admits null unless
// another keyword forbids it.
func nullableUntyped(s map[string]any) map[string]any {
	for _, key := range []string{"anyOf", "oneOf"} {
		if list, ok := s[key].([]any); ok && slices.ContainsFunc(list, isNull) {
			return s
		}
	}
	if list, ok := s["anyOf"].([]any); ok && s["$ref"] == nil && s["allOf"] == nil && s["oneOf"] == nil {
		s["anyOf"] = append(slices.Clone(list), map[string]any{"type": "null"})
		return s
	}
	if enum, ok := s["enum"].([]any); ok {
		if !slices.Contains(enum, nil) {
			s["enum"] = append(slices.Clone(enum), nil)
		}
		return s
	}
	if _, fixed := s["const"]; fixed || hasCombinators(s) {
		return orNull(s)
	}
	return s
}

// hasCombinators reports whether s has a keyword that refers to or combines other schemas.
func hasCombinators(s map[string]any) bool {
	for _, key := range []string{"$ref", "$dynamicRef", "anyOf", "oneOf", "allOf", "not", "if"} {
		if s[key] != nil {
			return true
		}
	}
	return false
}

func isNull(v any) bool {
	s, ok := v.(map[string]any)
	return ok && s["type"] == "null"
}

// orNull returns anyOf of the schema and null. The description stays at the top level,
// where models look for it.
func orNull(s map[string]any) map[string]any {
	out := map[string]any{}
	inner := maps.Clone(s)
	for _, key := range []string{"description", "title", "default"} {
		if v, ok := inner[key]; ok {
			out[key] = v
			delete(inner, key)
		}
	}
	out["anyOf"] = []any{inner, map[string]any{"type": "null"}}
	return out
}

// exampleOf returns the arguments of a call that gives only the required ones.
func exampleOf(props map[string]any, required []string) (string, error) {
	args := map[string]any{}
	for _, name := range required {
		p, _ := props[name].(map[string]any)
		args[name] = sample(p)
	}
	b, err := schemas.CanonicalJSON(args)
	return string(b), err
}

// sample returns a value that the schema p names, or else a simple value of its type.
func sample(p map[string]any) any {
	for _, key := range []string{"examples", "enum"} {
		if list, ok := p[key].([]any); ok && len(list) > 0 {
			return list[0]
		}
	}
	for _, key := range []string{"const", "default"} {
		if v, ok := p[key]; ok {
			return v
		}
	}
	kind, _ := p["type"].(string)
	if list, ok := p["type"].([]any); ok && len(list) > 0 {
		kind, _ = list[0].(string)
	}
	switch kind {
	case "integer", "number":
		return 1
	case "boolean":
		return true
	case "array":
		return []any{}
	case "object":
		return map[string]any{}
	}
	return "..."
}
