package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/tracesmith/tracesmith/configs/nearest"
	"github.com/tracesmith/tracesmith/schemas"
)

// checker turns what a model sent into arguments that satisfy a tool's schema,
// or into one text that names every problem, what was expected, and a correct
// call. It forgives what is harmless and has one meaning only: "12" or 12.0 for
// the integer 12, "true" for a boolean, null for an argument that may be left
// out, a bare number for a text.
type checker struct {
	tool     string
	schema   *jsonschema.Schema
	resolved *jsonschema.Resolved
	example  string
}

func newChecker(s schemas.ToolSchema, example string) (*checker, error) {
	var schema jsonschema.Schema
	if err := json.Unmarshal(s.Parameters, &schema); err != nil {
		return nil, fmt.Errorf("tool %q: reading its schema: %w", s.Name, err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("tool %q: resolving its schema: %w", s.Name, err)
	}
	return &checker{tool: s.Name, schema: &schema, resolved: resolved, example: example}, nil
}

// check returns canonical arguments, or why they cannot be used.
func (c *checker) check(raw []byte) (args []byte, problem string) {
	given, err := object(raw)
	if err != nil {
		return nil, c.explain([]string{err.Error()})
	}
	var problems []string
	out := map[string]any{}
	for _, name := range sortedKeys(given) {
		prop, known := c.schema.Properties[name]
		if !known {
			if c.closed() {
				problems = append(problems, c.unknown(name))
			} else {
				out[name] = given[name]
			}
			continue
		}
		value, keep, ok := coerce(prop, given[name])
		optional := !slices.Contains(c.schema.Required, name)
		switch {
		case !ok && given[name] == nil && optional, ok && !keep && optional:
			// left out
		case given[name] == nil && admitsNull(prop):
			out[name] = nil // required, and may be null: validation has the last word
		case !ok || !keep:
			problems = append(problems, fmt.Sprintf("argument %q must be %s, but it was %s",
				name, typeName(prop), show(given[name])))
		case hasNUL(value):
			problems = append(problems, fmt.Sprintf("argument %q must not contain NUL characters", name))
		default:
			out[name] = value
		}
	}
	for _, name := range c.schema.Required {
		if _, there := given[name]; !there {
			problems = append(problems, fmt.Sprintf("argument %q (%s) is missing", name, typeName(c.schema.Properties[name])))
		}
	}
	if len(problems) == 0 {
		if err := c.resolved.Validate(out); err != nil {
			problems = append(problems, strings.TrimPrefix(err.Error(), "validating root: "))
		}
	}
	if len(problems) > 0 {
		return nil, c.explain(problems)
	}
	args, err = schemas.CanonicalJSON(out)
	if err != nil {
		return nil, c.explain([]string{err.Error()})
	}
	return args, ""
}

func (c *checker) closed() bool {
	more := c.schema.AdditionalProperties
	return more != nil && more.Not != nil
}

func (c *checker) unknown(name string) string {
	names := c.names()
	if len(names) == 0 {
		return fmt.Sprintf("unknown argument %q: %s takes no arguments", name, c.tool)
	}
	hint := ""
	if near := nearest.Name(name, sortedKeys(c.schema.Properties), max(len(name)/2, 2)); near != "" {
		hint = fmt.Sprintf(" (did you mean %q?)", near)
	}
	return fmt.Sprintf("unknown argument %q%s: %s takes %s", name, hint, c.tool, strings.Join(names, ", "))
}

// names lists the arguments in declaration order, optional ones marked.
func (c *checker) names() []string {
	var out []string
	for _, name := range propertyOrder(c.schema) {
		if !slices.Contains(c.schema.Required, name) {
			name += " (optional)"
		}
		out = append(out, name)
	}
	return out
}

func (c *checker) explain(problems []string) string {
	return fmt.Sprintf("The call to %s was not run: %s.\nA correct call has arguments like: %s",
		c.tool, strings.Join(problems, "; "), c.example)
}

// malformed explains arguments that are not JSON at all.
func (c *checker) malformed(why string) string {
	return fmt.Sprintf("The call to %s was not run: its arguments are not valid JSON (%s). "+
		"Send one JSON object, with newlines and quotes inside texts escaped as \\n and \\\".\n"+
		"A correct call has arguments like: %s", c.tool, why, c.example)
}

// object decodes one JSON object; numbers keep their text. Nothing at all is an
// empty object, because models call tools without arguments that way.
func object(raw []byte) (map[string]any, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return map[string]any{}, nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("the arguments are not valid JSON (%w)", err)
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the arguments must be one JSON object, but they were %s", show(v))
	}
	return m, nil
}

// coerce brings v to the type prop asks for. keep is false for a value that
// means "not given". ok is false where v has no harmless reading.
func coerce(prop *jsonschema.Schema, v any) (out any, keep, ok bool) {
	if v == nil {
		return nil, false, true
	}
	types := typesOf(prop)
	if len(types) == 0 {
		return plainNumbers(v), true, true
	}
	for _, t := range types {
		switch t {
		case "integer":
			if isNothing(v) {
				return nil, false, true
			}
			out, ok = integer(v)
		case "number":
			if isNothing(v) {
				return nil, false, true
			}
			out, ok = number(v)
		case "boolean":
			if isNothing(v) {
				return nil, false, true
			}
			out, ok = boolean(v)
		case "string":
			out, ok = text(v)
		case "array":
			out, ok = list(prop, v)
		case "object":
			out, ok = block(prop, v)
		}
		if ok {
			return out, true, true
		}
	}
	return nil, false, false
}

// unpacked is what a text holds that is JSON in the place of a list or an object.
func unpacked(v any) any {
	s, ok := v.(string)
	if !ok || !json.Valid([]byte(s)) {
		return v
	}
	dec := json.NewDecoder(strings.NewReader(s))
	dec.UseNumber()
	var inner any
	if dec.Decode(&inner) != nil {
		return v
	}
	return inner
}

// list coerces the items of a list; one without a harmless reading stays as it
// is, for validation to name.
func list(prop *jsonschema.Schema, v any) (any, bool) {
	items, ok := unpacked(v).([]any)
	if !ok {
		return nil, false
	}
	out := []any{}
	for _, item := range items {
		if value, keep, ok := coerce(prop.Items, item); ok && keep {
			item = value
		}
		out = append(out, plainNumbers(item))
	}
	return out, true
}

// block does so for the properties of an object; those that are not given are
// left out.
func block(prop *jsonschema.Schema, v any) (any, bool) {
	fields, ok := unpacked(v).(map[string]any)
	if !ok {
		return nil, false
	}
	out := map[string]any{}
	for name, field := range fields {
		value, keep, ok := field, true, true
		if sub, known := prop.Properties[name]; known {
			value, keep, ok = coerce(sub, field)
		}
		switch {
		case !ok:
			out[name] = plainNumbers(field)
		case keep:
			out[name] = plainNumbers(value)
		case field == nil && admitsNull(prop.Properties[name]):
			out[name] = nil
		case slices.Contains(prop.Required, name):
			out[name] = plainNumbers(field)
		}
	}
	return out, true
}

// isNothing recognises the ways models write "no value" as a text; for a number
// or a boolean such a text can mean nothing else.
func isNothing(v any) bool {
	s, ok := v.(string)
	return ok && slices.Contains([]string{"", "null", "none", "None"}, strings.TrimSpace(s))
}

func integer(v any) (any, bool) {
	f, ok := number(v)
	if !ok {
		return nil, false
	}
	n := f.(float64)
	if n != math.Trunc(n) || math.Abs(n) > 1<<53 {
		return nil, false
	}
	return int64(n), true
}

func number(v any) (any, bool) {
	var s string
	switch v := v.(type) {
	case json.Number:
		s = v.String()
	case string:
		s = strings.TrimSpace(v)
	default:
		return nil, false
	}
	if strings.ContainsAny(s, "xXpP_iInN") { // no hexadecimal, no infinities
		return nil, false
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil
}

func boolean(v any) (any, bool) {
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

func text(v any) (any, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	}
	return nil, false
}

// hasNUL: no path, command or source text has a NUL, and no program takes one.
func hasNUL(v any) bool {
	s, ok := v.(string)
	return ok && strings.ContainsRune(s, 0)
}

// plainNumbers replaces json.Number by float64, which schema validation knows.
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
