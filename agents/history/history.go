// Package history renders the steps of a conversation as the list of messages that a model
// receives. Messages renders the list for a given schemas.ContextOp. Builder chooses the
// operation and asks the model.
//
// While a conversation fits the limit, each list extends the previous one, so that servers can
// use their prefix caches. When a list would exceed the limit, a cut omits many turns at once, and
// stays the same until the limit is reached again. Each reply records the operation, which
// depends only on the recorded steps. A conversation that is resumed after a crash therefore
// sends the same prompts, and Rebuild can compute them from the rows of a dataset.
package history

import (
	"strings"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// Messages renders steps as a system message, a user message with the problem and the
// observations at the reset, and for each turn the assistant's message with its calls, as
// received, followed by one tool message per call. A user message answers a reply without a
// call. Calls without an answer get a tool message that says so, because servers reject lists
// in which answers are missing.
func Messages(steps []schemas.Step, op schemas.ContextOp) []llms.Message {
	l := messageList{op: op}
	for i := range steps {
		l.add(&steps[i])
	}
	return l.complete()
}

// messageList is a list of messages under construction.
type messageList struct {
	op         schemas.ContextOp
	out        []llms.Message
	unanswered []string // ids of the last reply's calls that have no answer yet
	hasTurns   bool     // a turn has begun
}

func (l *messageList) add(s *schemas.Step) {
	switch {
	case l.op.Drops(s.Index):
	case s.Turn < 0:
		l.addOpening(s)
	default:
		l.addTurn(s)
	}
}

// addOpening adds a step that precedes the first turn.
func (l *messageList) addOpening(s *schemas.Step) {
	text := l.op.Shown(s.Index, schemas.Plain(s.Text))
	switch {
	case s.Source == "system" && l.op.SystemAs == "":
		l.out = append(l.out, llms.Message{Role: "system", Content: text})
	default:
		l.addUser(text)
	}
}

// addUser adds text to the last message if that is a user message, and as a new user message
// otherwise. Some servers require that user and assistant messages alternate.
func (l *messageList) addUser(text string) {
	if n := len(l.out); n > 0 && l.out[n-1].Role == "user" {
		l.out[n-1].Content += "\n\n" + text
		return
	}
	l.out = append(l.out, llms.Message{Role: "user", Content: text})
}

func (l *messageList) addTurn(s *schemas.Step) {
	if !l.hasTurns {
		l.hasTurns = true
		if l.op.Note != "" {
			l.addUser(l.op.Note)
		}
	}
	if r := s.Reply; r != nil {
		l.closeTurn()
		m := llms.Message{Role: "assistant", Content: r.Message, Raw: r.Extra}
		if l.op.Style != TextStyle {
			m.ToolCalls = r.Calls
		}
		l.out = append(l.out, m)
		for _, c := range m.ToolCalls {
			l.unanswered = append(l.unanswered, c.ID)
		}
	}
	if s.Observation == nil {
		return
	}
	text := l.op.Shown(s.Index, Observed(*s))
	if s.ToolCall == nil || l.op.Style == TextStyle {
		l.addUser(text)
		return
	}
	l.out = append(l.out, llms.Message{Role: "tool", ToolCallID: s.ToolCall.ID, Content: text})
	if len(l.unanswered) > 0 && l.unanswered[0] == s.ToolCall.ID {
		l.unanswered = l.unanswered[1:]
	}
}

// closeTurn answers the calls of the last reply that do not have an answer.
func (l *messageList) closeTurn() { l.out, l.unanswered = l.complete(), nil }

// complete returns the messages, with an answer to each call of the last reply.
func (l *messageList) complete() []llms.Message {
	out := l.out[:len(l.out):len(l.out)] // clipped, so that appending to the list later does not overwrite these answers
	for _, id := range l.unanswered {
		out = append(out, llms.Message{Role: "tool", ToolCallID: id, Content: "Not executed."})
	}
	return out
}

// Observed returns the text of a step's observation and of its triggered observations, as dataset
// rows store them.
func Observed(s schemas.Step) string {
	texts := []string{schemas.Plain(s.Observation.Text)}
	for _, o := range s.Triggered {
		if text := schemas.Plain(o.Text); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n\n")
}
