// Package tooltest is the conformance suite for tools: the schema is valid and describes
// each argument, optional arguments are optional, and a tool answers every input that a
// model may send with an observation.
package tooltest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/tools"
)

// Conform runs the suite for each tool. session returns a session whose sandbox is alive
// and whose workspace may be changed; it is called once per tool.
func Conform(t *testing.T, list []tools.Tool, session func(t *testing.T) *env.Session) {
	set, err := tools.NewSet(list)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list {
		s := tool.Schema()
		t.Run(s.Name, func(t *testing.T) {
			var schema jsonschema.Schema
			if err := json.Unmarshal(s.Parameters, &schema); err != nil {
				t.Fatal(err)
			}
			t.Run("description", func(t *testing.T) { checkDescription(t, tool, s, schema) })
			t.Run("schema", func(t *testing.T) { checkSchema(t, schema) })
			sess := session(t)
			t.Run("calls", func(t *testing.T) { checkCalls(t, set, s.Name, schema, exampleOf(tool), sess) })
		})
	}
}

var categories = []string{"view", "listdir", "pdb", "edit", "eval", "grep", "bash", "submit", "other"}

// checkDescription checks what providers require of a function and what a model needs to
// know.
func checkDescription(t *testing.T, tool tools.Tool, s schemas.ToolSchema, schema jsonschema.Schema) {
	if !regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`).MatchString(s.Name) {
		t.Errorf("name %q is not a valid function name", s.Name)
	}
	if !slices.Contains(categories, tool.Category()) {
		t.Errorf("category %q is not one of the dataset's", tool.Category())
	}
	if len(s.Description) < 40 {
		t.Errorf("description %q is too short", s.Description)
	}
	if !strings.Contains(string(s.Parameters), `"properties"`) {
		t.Error("the schema has no properties, which providers refuse")
	}
	for name, p := range schema.Properties {
		if len(p.Description) < 10 {
			t.Errorf("argument %s has no description", name)
		}
	}
}

// checkSchema checks that the schema refuses unknown arguments, and that optional
// arguments may be omitted or null.
func checkSchema(t *testing.T, schema jsonschema.Schema) {
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	args := map[string]any{"no_such_argument": 1}
	for _, name := range schema.Required {
		args[name] = sample(schema.Properties[name])
	}
	if resolved.Validate(args) == nil {
		t.Error("an unknown argument is valid")
	}
	delete(args, "no_such_argument")
	if err := resolved.Validate(args); err != nil {
		t.Errorf("the required arguments alone are not valid: %v", err)
	}
	for name := range schema.Properties {
		if slices.Contains(schema.Required, name) {
			continue
		}
		args[name] = nil
		if err := resolved.Validate(args); err != nil {
			t.Errorf("optional argument %s may not be null: %v", name, err)
		}
	}
}

// checkCalls checks that the tool answers all kinds of invalid arguments with an
// observation.
func checkCalls(t *testing.T, set *tools.Set, tool string, schema jsonschema.Schema, example string, sess *env.Session) {
	for _, raw := range invalidInputs(schema) {
		o, err := set.Call(t.Context(), sess, schemas.ToolCall{Name: tool, Arguments: []byte(raw)})
		if len(raw) > 120 {
			raw = raw[:120] + "..."
		}
		switch {
		case err != nil:
			t.Fatalf("%s ended the step: %v", raw, err)
		case o.Text == "":
			t.Errorf("%s got an empty observation", raw)
		case o.ErrorClass == schemas.ErrToolException:
			t.Errorf("%s made the tool fail: %s", raw, o.Text)
		case o.IsError != (o.ErrorClass != ""):
			t.Errorf("%s: is_error %v with class %q", raw, o.IsError, o.ErrorClass)
		case o.Source != tool:
			t.Errorf("%s: source %q", raw, o.Source)
		case len(o.Text) > tools.MaxText:
			t.Errorf("%s: %d bytes", raw, len(o.Text))
		case strings.Contains(raw, "no_such_argument") && (o.ErrorClass != schemas.ErrBadArguments || !strings.Contains(o.Text, "no_such_argument")):
			t.Errorf("%s: unknown argument not named: %+v", raw, o)
		}
	}
	o, err := set.Call(t.Context(), sess, schemas.ToolCall{Name: tool, Arguments: []byte(example)})
	if err != nil || o.ErrorClass == schemas.ErrBadArguments {
		t.Errorf("the tool's own example %s gave %+v, %v", example, o, err)
	}
	o, err = set.Call(t.Context(), sess, schemas.ToolCall{Name: tool, Arguments: []byte("{}"), Raw: "{", Invalid: "unexpected end of JSON input"})
	if err != nil || o.ErrorClass != schemas.ErrBadArguments || !strings.Contains(o.Text, "unexpected end of JSON input") {
		t.Errorf("malformed JSON gave %+v, %v", o, err)
	}
}

// invalidInputs returns invalid arguments: texts that are not objects, and for every argument
// values of every type.
func invalidInputs(schema jsonschema.Schema) []string {
	out := []string{``, `null`, `[]`, `"x"`, `1`, `{`, `{"a":`, `{}{}`, "{\"\xff\":1}", `{"no_such_argument":1}`,
		strings.Repeat(`{"a":`, 2000) + "1" + strings.Repeat("}", 2000)}
	values := []string{`null`, `true`, `"true"`, `-1`, `0`, `1`, `2.0`, `2.5`, `1e300`, `9223372036854775808`, `"12"`, `"-3"`, `""`, `" "`,
		`"-rf"`, `"--help"`, `"../.."`, `"/etc/passwd"`, `"/"`, `"."`, `"~"`, `"no/such/file.py"`, `"a\nb"`, `"\u0000"`, `"\u001b[31m"`,
		`"*"`, `"["`, `"("`, `"\\"`, `"'\"$(x)` + "`" + `"`, `"\ud800"`, `"é漢\u202e"`, `[]`, `["x"]`, `{}`, `{"x":{}}`,
		`"` + strings.Repeat("a/", 3000) + `"`, `"` + strings.Repeat("x", 300) + `"`}
	for name := range schema.Properties {
		for _, v := range values {
			args := map[string]json.RawMessage{}
			for _, required := range schema.Required {
				b, _ := json.Marshal(sample(schema.Properties[required]))
				args[required] = b
			}
			args[name] = json.RawMessage(v)
			out = append(out, object(args))
		}
	}
	return out
}

func exampleOf(tool tools.Tool) string {
	if e, ok := tool.(tools.Hinter); ok {
		return e.Example()
	}
	return "{}"
}

func object(args map[string]json.RawMessage) string {
	var parts []string
	for name, v := range args {
		parts = append(parts, fmt.Sprintf("%q:%s", name, v))
	}
	slices.Sort(parts)
	return "{" + strings.Join(parts, ",") + "}"
}

// sample returns a harmless value of an argument's type.
func sample(p *jsonschema.Schema) any {
	types := p.Types
	if p.Type != "" {
		types = []string{p.Type}
	}
	for _, kind := range types {
		switch kind {
		case "integer", "number":
			return 1
		case "boolean":
			return false
		case "string":
			return "a"
		case "array":
			return []any{}
		case "object":
			return map[string]any{}
		}
	}
	return nil
}
