// Package history turns the steps of an episode into the message list a model
// is sent. It only ever appends: the list after n turns is a prefix of the list
// after n+1, so that servers can keep their prefix caches and every prompt can
// be rebuilt from the rows. It imports schemas and llms.
package history

import (
	"strings"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// Messages renders steps: the system prompt; one user message of the problem
// and what tools said at reset; then per turn the assistant's message with all
// its calls as it was received, and one tool message per call. A reply without
// a call is answered by a user message. Calls that were never answered get a
// tool message that says so, because servers refuse a gap.
func Messages(steps []schemas.Step) []llms.Message {
	var out []llms.Message
	var open []string // calls of the last reply without an answer yet
	closeTurn := func() {
		for _, id := range open {
			out = append(out, llms.Message{Role: "tool", ToolCallID: id, Content: "Not executed."})
		}
		open = nil
	}
	for _, s := range steps {
		switch {
		case s.Source == "system":
			out = append(out, llms.Message{Role: "system", Content: s.Text})
		case s.Turn < 0:
			// Some servers insist that user and assistant take turns.
			if n := len(out); n > 0 && out[n-1].Role == "user" {
				out[n-1].Content += "\n\n" + s.Text
			} else {
				out = append(out, llms.Message{Role: "user", Content: s.Text})
			}
		default:
			if r := s.Reply; r != nil {
				closeTurn()
				out = append(out, llms.Message{Role: "assistant", Content: r.Message, ToolCalls: r.Calls, Raw: r.Extra})
				for _, c := range r.Calls {
					open = append(open, c.ID)
				}
			}
			if s.Observation == nil {
				continue
			}
			text := Observed(s)
			if s.ToolCall == nil {
				out = append(out, llms.Message{Role: "user", Content: text})
				continue
			}
			out = append(out, llms.Message{Role: "tool", ToolCallID: s.ToolCall.ID, Content: text})
			if len(open) > 0 && open[0] == s.ToolCall.ID {
				open = open[1:]
			}
		}
	}
	closeTurn()
	return out
}

// Observed is all a step showed: its own observation and the triggered ones.
func Observed(s schemas.Step) string {
	texts := []string{s.Observation.Text}
	for _, o := range s.Triggered {
		if o.Text != "" {
			texts = append(texts, o.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}
