package builtin

import (
	"context"
	"strings"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/tools"
)

type submitArgs struct {
	Message *string `json:"message,omitempty" jsonschema:"One or two sentences on what was wrong and how you fixed it."`
}

type submitSettings struct {
	tools.Settings
	EvalOnSubmit bool `json:"eval_on_submit,omitempty"` // run the tests and show the result
}

func init() {
	message := "The cache key ignored the currency. It now includes the currency."
	register("end the episode", func(c submitSettings) (tools.Def[submitArgs], error) {
		tests := "It does not run the tests, so call eval first."
		if c.EvalOnSubmit {
			tests = "It runs the tests once more and shows the result."
		}
		return tools.Def[submitArgs]{
			Name: "submit", Category: "submit",
			Description: "Submit the workspace in its current state and end the session. Call this tool once, when you have fixed the bug. " +
				tests,
			Example: submitArgs{Message: &message},
			Call:    c.call,
		}, nil
	})
}

func (c submitSettings) call(ctx context.Context, s *env.Session, a submitArgs) (schemas.Observation, error) {
	s.Submit()
	text := "Submitted. The session has ended."
	if a.Message != nil && strings.TrimSpace(*a.Message) != "" {
		text += "\nMessage: " + strings.TrimSpace(*a.Message)
	}
	if !c.EvalOnSubmit {
		return schemas.Observation{Text: text}, nil
	}
	o, err := evalSettings{}.call(ctx, s, evalArgs{})
	o.Text = text + "\n\n" + o.Text
	return o, err
}
