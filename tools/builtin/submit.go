package builtin

import (
	"context"
	"strings"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/tools"
)

type submitArgs struct {
	Message *string `json:"message,omitempty" jsonschema:"One or two sentences on what was wrong and how it was fixed."`
}

func init() {
	message := "The cache key ignored the currency; it is part of the key now."
	register("end the episode", tools.Define(tools.Def[submitArgs]{
		Name: "submit", Category: "submit",
		Description: "End the session with the workspace as it is now. Call it once, when the bug is fixed; " +
			"it does not run the tests, so call eval before.",
		Example: submitArgs{Message: &message},
		Call:    submit,
	}))
}

func submit(_ context.Context, s *env.Session, a submitArgs) (schemas.Observation, error) {
	s.Submit()
	text := "Submitted. The session has ended."
	if a.Message != nil && strings.TrimSpace(*a.Message) != "" {
		text += "\nMessage: " + strings.TrimSpace(*a.Message)
	}
	return schemas.Observation{Text: text}, nil
}
