package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// Def describes a tool whose arguments are the struct A. Each exported field of
// A is one argument: its json tag names it, its jsonschema tag describes it. A
// pointer with omitempty is an optional argument, nil when it was left out or
// null; anything else is required.
type Def[A any] struct {
	Name        string
	Category    string // of the dataset, see Tool
	Description string
	// Example is a correct call; it is part of the description and of the
	// observations that explain a wrong call.
	Example A
	// Required names arguments that must be given although A has them optional.
	Required []string
	// More says, in a clause, how to see what was cut from a long observation.
	More string
	// Setup are shell commands that are run at each reset, see Settings.
	Setup []string
	Call  func(ctx context.Context, s *env.Session, args A) (schemas.Observation, error)
	// On reacts to events; nil: the tool does not listen.
	On func(ctx context.Context, s *env.Session, e env.Event) (schemas.Observation, error)
}

// Define makes a tool. A definition that has no JSON Schema is a programming
// error, hence a panic.
func Define[A any](d Def[A]) Tool {
	schema, err := jsonschema.For[A](nil)
	if err != nil {
		panic(fmt.Sprintf("tool %q: %v", d.Name, err))
	}
	for _, name := range d.Required {
		p, ok := schema.Properties[name]
		if !ok {
			panic(fmt.Sprintf("tool %q has no argument %q", d.Name, name))
		}
		p.Types = slices.DeleteFunc(p.Types, func(t string) bool { return t == "null" })
		if len(p.Types) == 1 {
			p.Type, p.Types = p.Types[0], nil
		}
		schema.Required = append(schema.Required, name)
	}
	params, err := json.Marshal(schema)
	if len(schema.Properties) == 0 { // providers refuse an object that names none
		params = []byte(`{"type":"object","properties":{},"additionalProperties":false}`)
	}
	if err != nil {
		panic(fmt.Sprintf("tool %q: %v", d.Name, err))
	}
	example, err := compact(d.Example)
	if err != nil {
		panic(fmt.Sprintf("tool %q: %v", d.Name, err))
	}
	t := defined[A]{def: d, example: example, schema: schemas.ToolSchema{
		Name:        d.Name,
		Description: d.Description + "\nExample arguments: " + example,
		Parameters:  params,
	}}
	if d.On != nil || len(d.Setup) > 0 {
		return listening[A]{t}
	}
	return t
}

// compact is v as JSON in the order of its fields, with < > & as they are.
func compact(v any) (string, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

type defined[A any] struct {
	def     Def[A]
	schema  schemas.ToolSchema
	example string
}

func (t defined[A]) Schema() schemas.ToolSchema { return t.schema }
func (t defined[A]) Category() string           { return t.def.Category }
func (t defined[A]) Example() string            { return t.example }
func (t defined[A]) More() string               { return t.def.More }

func (t defined[A]) Call(ctx context.Context, s *env.Session, raw []byte) (schemas.Observation, error) {
	var args A
	if err := json.Unmarshal(raw, &args); err != nil {
		return schemas.Observation{}, &UserError{Class: schemas.ErrBadArguments, Text: err.Error()}
	}
	return t.def.Call(ctx, s, args)
}

// listening is a defined tool that is a Listener too.
type listening[A any] struct{ defined[A] }

func (t listening[A]) On(ctx context.Context, s *env.Session, e env.Event) (schemas.Observation, error) {
	var o schemas.Observation
	if e.Kind == env.EventReset {
		failed, err := setUp(ctx, s, t.def.Setup)
		if err != nil {
			return o, err
		}
		if failed != "" {
			o = schemas.Observation{Text: failed, IsError: true, ErrorClass: schemas.ErrNonzeroExit}
		}
	}
	if t.def.On == nil {
		return o, nil
	}
	own, err := t.def.On(ctx, s, e)
	if o.Text != "" {
		own.Text, own.IsError, own.ErrorClass = o.Text+own.Text, true, o.ErrorClass
	}
	return own, err
}
