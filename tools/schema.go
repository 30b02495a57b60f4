package tools

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Small readings of a JSON Schema: the types it admits, its arguments in order,
// and how a type or a value is named to a model.

func typesOf(s *jsonschema.Schema) []string {
	if s == nil {
		return nil
	}
	if s.Type != "" {
		return []string{s.Type}
	}
	return slices.DeleteFunc(slices.Clone(s.Types), func(t string) bool { return t == "null" })
}

// admitsNull: null is a type of s, or s names no type.
func admitsNull(s *jsonschema.Schema) bool {
	return s != nil && (s.Type == "" && len(s.Types) == 0 || s.Type == "null" || slices.Contains(s.Types, "null"))
}

func typeName(s *jsonschema.Schema) string {
	var names []string
	for _, t := range typesOf(s) {
		switch t {
		case "integer":
			t = "an integer"
		case "number":
			t = "a number"
		case "boolean":
			t = "true or false"
		case "string":
			t = "a text"
		case "array":
			t = "a list"
		case "object":
			t = "an object"
		}
		names = append(names, t)
	}
	if len(names) == 0 {
		return "any value"
	}
	return strings.Join(names, " or ")
}

// show names a value in at most about a line.
func show(v any) string {
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
		return "the text " + s
	case []any:
		return "the list " + s
	case map[string]any:
		return "the object " + s
	}
	return s
}

// propertyOrder lists the arguments: required ones first as declared, then the
// rest by name.
func propertyOrder(s *jsonschema.Schema) []string {
	out := slices.Clone(s.Required)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
