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

// Def describes a tool whose arguments are the fields of the struct A. The json tag
// of a field names the argument, and its jsonschema tag describes it. A pointer with
// omitempty is an optional argument: it is nil if the argument is missing or null.
// All other arguments are required.
type Def[A any] struct {
	Name        string
	Category    string // see Tool
	Description string
	// Example is a correct call. It is part of the description and of observations
	// about invalid arguments.
	Example A
	// Required names arguments that are required although their fields of A are optional.
	Required []string
	// TruncationHint tells the model, in a clause, how to see what was cut from a long
	// observation.
	TruncationHint string
	// Setup lists shell commands that run at each reset; see Settings.
	Setup []string
	Call  func(ctx context.Context, s *env.Session, args A) (schemas.Observation, error)
	// On handles events; nil if the tool does not listen to them.
	On func(ctx context.Context, s *env.Session, e env.Event) (schemas.Observation, error)
}

// Define returns the tool that d describes. It panics if A does not have a JSON Schema or if
// d.Required names an unknown argument.
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
	if len(schema.Properties) == 0 { // providers refuse an object without properties
		params = []byte(`{"type":"object","properties":{},"additionalProperties":false}`)
	}
	if err != nil {
		panic(fmt.Sprintf("tool %q: %v", d.Name, err))
	}
	example, err := compact(d.Example)
	if err != nil {
		panic(fmt.Sprintf("tool %q: %v", d.Name, err))
	}
	t := definedTool[A]{def: d, example: example, schema: schemas.ToolSchema{
		Name:        d.Name,
		Description: d.Description + "\nExample arguments: " + example,
		Parameters:  params,
	}}
	if d.On != nil || len(d.Setup) > 0 {
		return listeningTool[A]{t}
	}
	return t
}

// compact returns v as JSON without escaping <, > and &.
func compact(v any) (string, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

type definedTool[A any] struct {
	def     Def[A]
	schema  schemas.ToolSchema
	example string
}

func (t definedTool[A]) Schema() schemas.ToolSchema { return t.schema }
func (t definedTool[A]) Category() string           { return t.def.Category }
func (t definedTool[A]) Example() string            { return t.example }
func (t definedTool[A]) TruncationHint() string     { return t.def.TruncationHint }

func (t definedTool[A]) Call(ctx context.Context, s *env.Session, raw []byte) (schemas.Observation, error) {
	var args A
	if err := json.Unmarshal(raw, &args); err != nil {
		return schemas.Observation{}, &UserError{Class: schemas.ErrBadArguments, Text: err.Error()}
	}
	return t.def.Call(ctx, s, args)
}

// listeningTool is a definedTool that also implements Listener.
type listeningTool[A any] struct{ definedTool[A] }

func (t listeningTool[A]) On(ctx context.Context, s *env.Session, e env.Event) (schemas.Observation, error) {
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
	result, err := t.def.On(ctx, s, e)
	if o.Text != "" {
		result.Text, result.IsError, result.ErrorClass = o.Text+result.Text, true, o.ErrorClass
	}
	return result, err
}
