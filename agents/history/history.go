// Package history turns the steps of a conversation into the message list a
// model is sent. Messages is that list for a given schemas.ContextOp; Builder
// decides on the operation and asks the model.
//
// A list only ever grows at its end, so that servers can keep their prefix
// caches, until it must be cut; then much is left out at once, and the cut stays
// where it is until the limit is met again. The operation is recorded with each
// reply, and depends on what is recorded alone: taken up after a crash, a
// conversation sends the same prompts, and Rebuild finds them in the rows. It
// imports schemas, llms and llms/tokens.
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
func Messages(steps []schemas.Step, op schemas.ContextOp) []llms.Message {
	l := messageList{op: op}
	for i := range steps {
		l.add(&steps[i])
	}
	return l.complete()
}

// messageList is a message list in the making.
type messageList struct {
	op         schemas.ContextOp
	out        []llms.Message
	unanswered []string // calls of the last reply without an answer yet
	hasTurns   bool     // a turn was begun
}

func (l *messageList) add(s *schemas.Step) {
	switch {
	case l.op.Drops(s.Index):
	case s.Turn < 0:
		l.opening(s)
	default:
		l.turn(s)
	}
}

// opening adds a step from before the first turn.
func (l *messageList) opening(s *schemas.Step) {
	text := l.op.Shown(s.Index, schemas.Plain(s.Text))
	switch {
	case s.Source == "system" && l.op.SystemAs == "":
		l.out = append(l.out, llms.Message{Role: "system", Content: text})
	default:
		l.user(text)
	}
}

// user adds a message of the user. Some servers insist that user and assistant
// take turns.
func (l *messageList) user(text string) {
	if n := len(l.out); n > 0 && l.out[n-1].Role == "user" {
		l.out[n-1].Content += "\n\n" + text
		return
	}
	l.out = append(l.out, llms.Message{Role: "user", Content: text})
}

func (l *messageList) turn(s *schemas.Step) {
	if !l.hasTurns {
		l.hasTurns = true
		if l.op.Note != "" {
			l.user(l.op.Note)
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
		l.user(text)
		return
	}
	l.out = append(l.out, llms.Message{Role: "tool", ToolCallID: s.ToolCall.ID, Content: text})
	if len(l.unanswered) > 0 && l.unanswered[0] == s.ToolCall.ID {
		l.unanswered = l.unanswered[1:]
	}
}

func (l *messageList) closeTurn() { l.out, l.unanswered = l.complete(), nil }

// complete are the messages with an answer to each call of the last reply.
func (l *messageList) complete() []llms.Message {
	out := l.out[:len(l.out):len(l.out)] // more may follow, which are not to be written over these
	for _, id := range l.unanswered {
		out = append(out, llms.Message{Role: "tool", ToolCallID: id, Content: "Not executed."})
	}
	return out
}

// Observed is all a step showed, as rows hold it: its own observation and the
// triggered ones.
func Observed(s schemas.Step) string {
	texts := []string{schemas.Plain(s.Observation.Text)}
	for _, o := range s.Triggered {
		if text := schemas.Plain(o.Text); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n\n")
}
