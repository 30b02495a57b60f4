// Package tools defines what a tool is, how its arguments become a JSON Schema,
// and Set, the toolbox an environment offers. Implementations live in
// tools/builtin, one file each.
package tools

import (
	"context"
	"fmt"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// Tool is one tool. Its name, description and parameters are part of the
// dataset: changing a word of them is a dataset change.
type Tool interface {
	Schema() schemas.ToolSchema
	// Category is the dataset's tool_category: view, listdir, pdb, edit, eval,
	// grep, bash, submit, handover, other.
	Category() string
	// Call runs the tool. args have passed the schema; an optional argument that
	// was null is absent. A UserError becomes an observation, a panic becomes a
	// tool_exception; any other error is the sandbox's and ends the step.
	// A tool keeps nothing of an episode in itself: see env.Local.
	Call(ctx context.Context, s *env.Session, args []byte) (schemas.Observation, error)
}

// Documented is implemented by tools that help a model use them.
type Documented interface {
	// Example is a correct call's arguments, for observations that explain a wrong
	// call.
	Example() string
	// More says, in a clause, how to see what was cut from a long observation; "" = a
	// general hint.
	More() string
}

// Listener is implemented by tools that react to events. An empty observation
// text says nothing.
type Listener interface {
	On(ctx context.Context, s *env.Session, e env.Event) (schemas.Observation, error)
}

// UserError is a mistake the model can mend: the text says what to do instead.
type UserError struct {
	Class string // schemas.Err*; "" = schemas.ErrUserError
	Text  string
}

func (e *UserError) Error() string { return e.Text }

// Mistake builds a UserError.
func Mistake(format string, a ...any) error {
	return &UserError{Class: schemas.ErrUserError, Text: fmt.Sprintf(format, a...)}
}
