package imports

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/schemas"
)

// Tool call styles, as in schemas.AgentInfo. A command that does not occur in the text of its reply
// was a native call.
const (
	native = "native"
	inText = "text"
)

// builder collects the steps of a conversation: opening messages, then turns.
type builder struct {
	steps     []schemas.Step
	turn      int
	open      []int           // indexes of the steps of the current turn, in the order of its calls
	seen      map[string]bool // IDs of calls
	named     bool            // the calls of the current turn have IDs in the file
	talks     bool            // a reply without a call is not an error
	functions bool            // a reply may contain calls as text, see functionsIn
	tools     []schemas.ToolSchema
	style     string // native or inText; "" before the first call
	phase     string // of the next steps; "" if there is only one conversation
	firstTurn int    // of the phase
}

// startPhase starts another conversation, unless phase is the current one.
func (b *builder) startPhase(phase string) {
	if phase != b.phase {
		b.phase, b.firstTurn, b.open = phase, b.turn, nil
	}
}

// say adds a message that opens the conversation. After the first turn, it appends the text to the
// answers of the last turn, because rows have no place for text between turns.
func (b *builder) say(source, text string, at time.Time) {
	if b.turn == b.firstTurn {
		b.steps = append(b.steps, schemas.Step{Turn: -1, Call: -1, Phase: b.phase, Source: source, At: at, Text: text})
		return
	}
	b.appendText(text)
}

// reply starts a turn with its calls.
func (b *builder) reply(r schemas.Reply, at time.Time) {
	b.open = nil
	add := func(s schemas.Step) {
		s.Turn, s.Phase, s.Source, s.At = b.turn, b.phase, "agent", at
		b.open = append(b.open, len(b.steps))
		b.steps = append(b.steps, s)
	}
	for i := range r.Calls {
		s := schemas.Step{Call: i, ToolCall: &r.Calls[i]}
		if i == 0 {
			s.Reply = &r
		}
		add(s)
	}
	if len(r.Calls) == 0 {
		add(schemas.Step{Call: -1, Reply: &r})
	}
	b.turn++
}

// answer adds an observation to the call with the given ID. If id is empty, it adds the observation
// to the first call without one. If there is no such call, it appends the text to the last
// observation.
func (b *builder) answer(id, text string) *schemas.Observation {
	if len(b.open) == 0 {
		return nil
	}
	at := -1
	for _, i := range b.open {
		s := &b.steps[i]
		if s.Observation == nil && (s.ToolCall == nil || id == "" || s.ToolCall.ID == id || strings.HasPrefix(s.ToolCall.ID, id+"#")) {
			at = i
			break
		}
	}
	if at < 0 {
		return b.appendText(text)
	}
	return b.observe(&b.steps[at], text)
}

func (b *builder) observe(s *schemas.Step, text string) *schemas.Observation {
	s.Observation = &schemas.Observation{Source: "env", Text: text, FullBytes: int64(len(text))}
	switch {
	case s.ToolCall != nil:
		s.Observation.Source = s.ToolCall.Name
	case !b.talks:
		s.Observation.IsError, s.Observation.ErrorClass = true, schemas.ErrNoToolCall
	}
	return s.Observation
}

// appendText appends a text that does not answer a call to the last observation of the turn.
func (b *builder) appendText(text string) *schemas.Observation {
	if len(b.open) == 0 {
		return nil
	}
	for _, i := range slices.Backward(b.open) {
		if o := b.steps[i].Observation; o != nil {
			o.Text = strings.TrimPrefix(o.Text+"\n\n"+text, "\n\n")
			o.FullBytes = int64(len(o.Text))
			return o
		}
	}
	return b.observe(&b.steps[b.open[len(b.open)-1]], text)
}

// notObject is the error of arguments that are not a JSON object.
const notObject = "no JSON object"

// call returns a tool call. Its arguments must be a JSON object, or a string that contains one.
// Other arguments are kept as raw text and marked as invalid.
func call(id, name string, arguments json.RawMessage) schemas.ToolCall {
	c := schemas.ToolCall{ID: id, Name: name, Arguments: json.RawMessage(`{}`)}
	raw := bytes.TrimSpace(arguments)
	var inner string
	if json.Unmarshal(raw, &inner) == nil {
		raw = []byte(inner)
	}
	var object map[string]json.RawMessage
	if len(raw) == 0 || string(raw) == "null" {
		return c
	}
	if err := json.Unmarshal(raw, &object); err != nil || object == nil {
		c.Raw, c.Invalid = string(raw), notObject
		return c
	}
	canonical, err := schemas.CanonicalJSON(json.RawMessage(raw))
	if err != nil {
		c.Raw, c.Invalid = string(raw), notObject
		return c
	}
	c.Arguments = canonical
	return c
}

// callID returns the ID of a call in the file, or a generated one if that is missing or not unique.
func (b *builder) callID(given string, index int) string {
	given = cmp.Or(given, fmt.Sprintf("call_%d_%d", b.turn, index))
	if b.seen[given] {
		given = fmt.Sprintf("%s#%d_%d", given, b.turn, index)
	}
	b.seen[given] = true
	return given
}

// contentText returns the text of a message's content, which is a string, a list of parts, or null.
func contentText(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s, nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return "", fmt.Errorf("content is neither a text nor a list of parts")
	}
	var out []string
	for _, p := range parts {
		if p.Text == "" && p.Type != "" && p.Type != "text" {
			p.Text = "[" + p.Type + "]"
		}
		out = append(out, p.Text)
	}
	return strings.Join(out, "\n"), nil
}

// toolsOf reads tool definitions in OpenAI's format, with or without the "function" level.
func toolsOf(raw []json.RawMessage) []schemas.ToolSchema {
	type definition struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
		InputSchema json.RawMessage `json:"input_schema"`
	}
	var out []schemas.ToolSchema
	for _, r := range raw {
		var t struct {
			definition
			Function *definition `json:"function"`
		}
		if json.Unmarshal(unquoted(r), &t) != nil {
			continue // not a definition, but a text
		}
		d := t.definition
		if t.Function != nil {
			d = *t.Function
		}
		if d.Name == "" {
			continue
		}
		if d.Parameters == nil {
			d.Parameters = d.InputSchema
		}
		d.Parameters = unquoted(d.Parameters)
		if len(d.Parameters) == 0 || string(d.Parameters) == "null" {
			d.Parameters = json.RawMessage(`{"type":"object"}`)
		}
		out = append(out, schemas.ToolSchema{Name: d.Name, Description: d.Description, Parameters: d.Parameters})
	}
	return out
}
