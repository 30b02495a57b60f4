// Package tooltest is the suite that every registered tool passes: its schema is
// sound and says what each argument means, optional arguments really are, and
// nothing a model may send makes it fail other than with words.
//
// It imports tools, env and what environments are made of, and schemas.
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

// Conform runs the suite over the tools. session gives a session whose sandbox
// is alive and whose workspace may be changed; it is called once per tool.
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
			t.Run("words", func(t *testing.T) { words(t, tool, s, schema) })
			t.Run("schema", func(t *testing.T) { sound(t, schema) })
			sess := session(t)
			t.Run("calls", func(t *testing.T) { calls(t, set, s.Name, schema, exampleOf(tool), sess) })
		})
	}
}

var categories = []string{"view", "listdir", "pdb", "edit", "eval", "grep", "bash", "submit", "other"}

// words: what providers demand of a function, and what a model needs to know.
func words(t *testing.T, tool tools.Tool, s schemas.ToolSchema, schema jsonschema.Schema) {
	if !regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`).MatchString(s.Name) {
		t.Errorf("name %q is no function name", s.Name)
	}
	if !slices.Contains(categories, tool.Category()) {
		t.Errorf("category %q is not one of the dataset's", tool.Category())
	}
	if len(s.Description) < 40 {
		t.Errorf("description %q says too little", s.Description)
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

// sound: a closed object whose optional arguments may be left out or null.
func sound(t *testing.T, schema jsonschema.Schema) {
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

// calls: every kind of nonsense is answered with an observation.
func calls(t *testing.T, set *tools.Set, tool string, schema jsonschema.Schema, example string, sess *env.Session) {
	for _, raw := range nonsense(schema) {
		o, err := set.Call(t.Context(), sess, schemas.ToolCall{Name: tool, Arguments: []byte(raw)})
		if len(raw) > 120 {
			raw = raw[:120] + "..."
		}
		switch {
		case err != nil:
			t.Fatalf("%s ended the step: %v", raw, err)
		case o.Text == "":
			t.Errorf("%s got no words", raw)
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

// nonsense is a list of arguments: no objects at all, and for every argument
// values of every kind in place of the right one.
func nonsense(schema jsonschema.Schema) []string {
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
	if e, ok := tool.(tools.Documented); ok {
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

// sample is a harmless value of an argument's type.
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
