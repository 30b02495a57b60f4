package jsonschema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/tracesmith/tracesmith/configs/nearest"
	"github.com/tracesmith/tracesmith/schemas"
)

// Check converts the arguments that a model sent to canonical JSON that satisfies the
// schema, or returns every problem together with the expected value. It converts values
// that can have only one meaning: "12" or 12.0 for the integer 12, "true" for a boolean,
// null for an optional argument, a number for a string.
func (t *Tool) Check(raw []byte) (args []byte, problems []string) {
	given, err := decodeObject(raw)
	if err != nil {
		return nil, []string{err.Error()}
	}
	out := map[string]any{}
	for _, name := range sortedKeys(given) {
		prop, known := t.schema.Properties[name]
		if !known {
			if extra := t.schema.AdditionalProperties; extra != nil && extra.Not != nil { // {"not": {}} allows nothing
				problems = append(problems, t.unknownArgument(name))
			} else {
				out[name] = given[name]
			}
			continue
		}
		value, keep, ok := coerce(prop, given[name])
		switch {
		case ok && !keep && !slices.Contains(t.schema.Required, name):
			// Omit the argument.
		case given[name] == nil && admitsNull(prop):
			out[name] = nil // a required argument may be null
		case !ok || !keep:
			problems = append(problems, fmt.Sprintf("argument %q must be %s, but it was %s",
				name, typeName(prop), describeValue(given[name])))
		case hasNUL(value):
			problems = append(problems, fmt.Sprintf("argument %q must not contain NUL characters", name))
		default:
			out[name] = plainNumbers(value)
		}
	}
	for _, name := range t.schema.Required {
		if _, ok := given[name]; !ok {
			problems = append(problems, fmt.Sprintf("argument %q (%s) is missing", name, typeName(t.schema.Properties[name])))
		}
	}
	if len(problems) == 0 {
		if err := t.resolved.Validate(out); err != nil {
			problems = append(problems, strings.TrimPrefix(err.Error(), "validating root: "))
		}
	}
	if len(problems) > 0 {
		return nil, problems
	}
	args, err = schemas.CanonicalJSON(out)
	if err != nil {
		return nil, []string{err.Error()}
	}
	return args, nil
}

// unknownArgument returns the problem with an argument that the tool does not have.
func (t *Tool) unknownArgument(name string) string {
	var takes []string // required arguments in the order of the schema, then the others by name
	for _, known := range append(slices.Clone(t.schema.Required), sortedKeys(t.schema.Properties)...) {
		optional := known + " (optional)"
		switch {
		case slices.Contains(takes, known):
		case slices.Contains(t.schema.Required, known):
			takes = append(takes, known)
		default:
			takes = append(takes, optional)
		}
	}
	if len(takes) == 0 {
		return fmt.Sprintf("unknown argument %q: %s takes no arguments", name, t.Name)
	}
	hint := ""
	if near := nearest.Name(name, sortedKeys(t.schema.Properties), max(len(name)/2, 2)); near != "" {
		hint = fmt.Sprintf(" (did you mean %q?)", near)
	}
	return fmt.Sprintf("unknown argument %q%s: %s takes %s", name, hint, t.Name, strings.Join(takes, ", "))
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// decodeObject decodes one JSON object. Numbers keep their text. An empty text and null count as
// an empty object, because models send them to tools without arguments.
func decodeObject(raw []byte) (map[string]any, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return map[string]any{}, nil
	}
	v, err := decode(raw)
	if err != nil {
		return nil, fmt.Errorf("the arguments are not valid JSON (%w)", err)
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the arguments must be one JSON object, but they were %s", describeValue(v))
	}
	return m, nil
}

// decode decodes one JSON value. Numbers keep their text.
func decode(raw []byte) (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	err = dec.Decode(&v)
	return v, err
}

// coerce converts v to the type of prop. keep is false if v means that the argument is
// not given. ok is false if v cannot be converted.
func coerce(prop *jsonschema.Schema, v any) (out any, keep, ok bool) {
	if v == nil {
		return nil, false, true
	}
	types := typesOf(prop)
	if len(types) == 0 {
		return v, true, true
	}
	for _, t := range types {
		switch t {
		case "integer", "number", "boolean":
			if meansNoValue(v) {
				return nil, false, true
			}
			out, ok = toScalar(t, v)
		case "string":
			out, ok = toText(v)
		case "array":
			out, ok = coerceItems(prop, v)
		case "object":
			out, ok = coerceProperties(prop, v)
		}
		if ok {
			return out, true, true
		}
	}
	return nil, false, false
}

// unpack returns the value that a string contains as JSON, and any other v unchanged. Models
// send such strings in place of lists and objects.
func unpack(v any) any {
	if s, ok := v.(string); ok && json.Valid([]byte(s)) {
		if inner, err := decode([]byte(s)); err == nil {
			return inner
		}
	}
	return v
}

// coerceItems coerces the items of a list. It keeps items that cannot be converted, so that
// validation reports them.
func coerceItems(prop *jsonschema.Schema, v any) (any, bool) {
	items, ok := unpack(v).([]any)
	if !ok {
		return nil, false
	}
	out := []any{}
	for _, item := range items {
		if value, keep, ok := coerce(prop.Items, item); ok && keep {
			item = value
		}
		out = append(out, item)
	}
	return out, true
}

// coerceProperties coerces the properties of an object. It drops optional ones whose value means
// that they are not given, and keeps others that cannot be converted, so that validation reports
// them.
func coerceProperties(prop *jsonschema.Schema, v any) (any, bool) {
	fields, ok := unpack(v).(map[string]any)
	if !ok {
		return nil, false
	}
	out := map[string]any{}
	for name, field := range fields {
		sub, known := prop.Properties[name]
		value, keep, ok := field, true, true
		if known {
			value, keep, ok = coerce(sub, field)
		}
		switch {
		case ok && keep:
			out[name] = value
		case !ok, field == nil && admitsNull(sub), slices.Contains(prop.Required, name):
			out[name] = field
		}
	}
	return out, true
}

// meansNoValue reports whether v is a string with which models mean "no value" for a number
// or a boolean.
func meansNoValue(v any) bool {
	s, ok := v.(string)
	return ok && slices.Contains([]string{"", "null", "none", "None"}, strings.TrimSpace(s))
}

func toScalar(kind string, v any) (any, bool) {
	if kind == "boolean" {
		return toBool(v)
	}
	f, ok := toNumber(v)
	if !ok || kind == "number" {
		return f, ok
	}
	return int64(f), f == math.Trunc(f) && math.Abs(f) <= 1<<53
}

func toNumber(v any) (float64, bool) {
	var s string
	switch v := v.(type) {
	case json.Number:
		s = v.String()
	case string:
		s = strings.TrimSpace(v)
	default:
		return 0, false
	}
	if strings.ContainsAny(s, "xXpP_iInN") { // hexadecimal numbers, infinities and NaN
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil
}

func toBool(v any) (any, bool) {
	switch v := v.(type) {
	case bool:
		return v, true
	case string:
		switch strings.ToLower(strings.TrimSpace(v)) {
		case "true":
			return true, true
		case "false":
			return false, true
		}
	}
	return nil, false
}

func toText(v any) (any, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	}
	return nil, false
}

// hasNUL reports whether v is a string with a NUL, which no path or command can contain.
func hasNUL(v any) bool {
	s, ok := v.(string)
	return ok && strings.ContainsRune(s, 0)
}

// plainNumbers replaces each json.Number by a float64, which validation supports.
func plainNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		f, _ := v.Float64()
		return f
	case []any:
		for i := range v {
			v[i] = plainNumbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = plainNumbers(v[k])
		}
	}
	return v
}
