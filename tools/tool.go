// Package tools defines the interface of tools, the JSON Schema of their arguments,
// and Set, the toolbox of an environment. The tools are in package builtin, one file
// each.
package tools

import (
	"context"
	"fmt"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
)

// Tool is one tool. Its name, description and parameters are part of the dataset, so changing a
// word changes the dataset.
type Tool interface {
	Schema() schemas.ToolSchema
	// Category returns the tool_category of rows: view, listdir, pdb, edit, eval,
	// grep, bash, submit, handover or other.
	Category() string
	// Call runs the tool. args are valid, and optional arguments that were null are
	// absent. A UserError becomes an observation, and a panic becomes a tool_exception.
	// Any other error means that the sandbox failed, and ends the step. A tool keeps the
	// state of an episode in env.Local, not in itself.
	Call(ctx context.Context, s *env.Session, args []byte) (schemas.Observation, error)
}

// Hinter is implemented by tools that provide hints for observations.
type Hinter interface {
	// Example returns the arguments of a correct call.
	Example() string
	// TruncationHint tells the model, in a clause, how to see what was cut from a long
	// observation; "" means a general hint.
	TruncationHint() string
}

// Listener is implemented by tools that handle events. An observation without text is
// ignored.
type Listener interface {
	On(ctx context.Context, s *env.Session, e env.Event) (schemas.Observation, error)
}

// UserError is an error that the model can correct. Text tells it what to do instead.
type UserError struct {
	Class string // schemas.Err*; "" = schemas.ErrUserError
	Text  string
}

func (e *UserError) Error() string { return e.Text }

// NewUserError returns a UserError.
func NewUserError(format string, a ...any) error {
	return &UserError{Class: schemas.ErrUserError, Text: fmt.Sprintf(format, a...)}
}
