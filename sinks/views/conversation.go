// Package views renders episodes for trainers: one file per view, all on top of
// the same conversation. It imports schemas and sinks.
package views

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// message is one message in the OpenAI shape with object arguments. Absent keys
// are left out, content is never null.
type message struct {
	Role       string `json:"role"`
	Content    string `json:"content"`
	Reasoning  string `json:"reasoning_content,omitempty"`
	ToolCalls  []call `json:"tool_calls,omitempty"`
	ToolCallID string `json:"tool_call_id,omitempty"`
}

type call struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"` // function
	Function function `json:"function"`
}

type function struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"` // an object
}

// conversation is an episode, or one phase of it, as the model saw it: what came
// before the first turn, then the turns.
type conversation struct {
	phase  string    // "" where the episode has but one
	before []message // system, user
	turns  []turn
}

// turn is one reply and what answered it.
type turn struct {
	reply   message
	answers []message        // tool, or user where the reply had no call
	mask    string           // why it must not be trained on; "" if it may
	gold    bool             // its content comes from the gold patch
	row     *schemas.StepRow // its first
}

// converse rebuilds the conversations from the rows as agents/history built them
// from the steps: messages before the first turn merge into one of the user,
// and a tool's answer is its own observation with the triggered ones after it.
// phase chooses one; "" = all.
func converse(t sinks.Trajectory, phase string) ([]*conversation, error) {
	var all []*conversation
	for i := range t.Steps {
		s := &t.Steps[i]
		name := value(s.Phase)
		if phase != "" && name != phase {
			continue
		}
		at := slices.IndexFunc(all, func(c *conversation) bool { return c.phase == name })
		if at < 0 {
			at = len(all)
			all = append(all, &conversation{phase: name})
		}
		if err := all[at].add(s); err != nil {
			return nil, fmt.Errorf("step %d of episode %s: %w", s.StepIndex, s.EpisodeID, err)
		}
	}
	if inText(t) {
		for _, c := range all {
			c.plain()
		}
	}
	return all, nil
}

// inText: the calls stand in the text of the replies, and tools in the system
// prompt.
func inText(t sinks.Trajectory) bool { return value(t.Episode.ToolCallStyle) == "text" }

// plain leaves what such a model saw: texts of the assistant and of the user in
// turn.
func (c *conversation) plain() {
	for i := range c.turns {
		t := &c.turns[i]
		t.reply.ToolCalls = nil
		var texts []string
		for _, a := range t.answers {
			texts = append(texts, a.Content)
		}
		if len(texts) > 0 {
			t.answers = []message{{Role: "user", Content: strings.Join(texts, "\n\n")}}
		}
	}
}

func (c *conversation) add(s *schemas.StepRow) error {
	switch {
	case s.Source == "system":
		c.before = append(c.before, message{Role: "system", Content: s.Message})
		return nil
	case s.TurnIndex == nil:
		if n := len(c.before); n > 0 && c.before[n-1].Role == "user" {
			c.before[n-1].Content += "\n\n" + s.Message
		} else {
			c.before = append(c.before, message{Role: "user", Content: s.Message})
		}
		return nil
	}
	if s.Source == "agent" && (s.CallIndex == nil || *s.CallIndex == 0) {
		c.turns = append(c.turns, turn{row: s, reply: message{Role: "assistant", Content: s.Message, Reasoning: value(s.Reasoning)}})
	}
	if len(c.turns) == 0 {
		return fmt.Errorf("a turn without its first row")
	}
	return c.turns[len(c.turns)-1].add(s)
}

func (t *turn) add(s *schemas.StepRow) error {
	if s.Source == "agent" {
		if s.GoldEdit != nil && *s.GoldEdit || value(s.MaskReason) == "gold" {
			t.gold = true
		}
		if !s.Train && t.mask == "" {
			t.mask = value(s.MaskReason)
			if t.mask == "" {
				t.mask = "masked"
			}
		}
	}
	id := ""
	if s.ToolName != nil {
		c, err := callOf(s)
		if err != nil {
			return err
		}
		id = c.ID
		t.reply.ToolCalls = append(t.reply.ToolCalls, c)
	}
	if s.Observation == nil {
		return nil
	}
	text, err := observed(s)
	if err != nil {
		return err
	}
	answer := message{Role: "tool", ToolCallID: id, Content: text}
	if id == "" {
		answer.Role = "user"
	}
	t.answers = append(t.answers, answer)
	return nil
}

func callOf(s *schemas.StepRow) (call, error) {
	args := json.RawMessage(value(s.ArgumentsJSON))
	var object map[string]json.RawMessage
	if err := json.Unmarshal(args, &object); err != nil || object == nil {
		return call{}, fmt.Errorf("arguments of %s are no JSON object: %.80q", *s.ToolName, args)
	}
	if value(s.ToolCallID) == "" {
		return call{}, fmt.Errorf("call of %s has no id", *s.ToolName)
	}
	return call{ID: *s.ToolCallID, Type: "function", Function: function{Name: *s.ToolName, Arguments: args}}, nil
}

func observed(s *schemas.StepRow) (string, error) {
	texts := []string{*s.Observation}
	if s.TriggeredJSON != nil {
		var more []struct{ Text string }
		if err := json.Unmarshal([]byte(*s.TriggeredJSON), &more); err != nil {
			return "", fmt.Errorf("triggered observations: %w", err)
		}
		for _, o := range more {
			if o.Text != "" {
				texts = append(texts, o.Text)
			}
		}
	}
	return strings.Join(texts, "\n\n"), nil
}

// messages are the first n turns with all answers but those after the last
// reply, so that the list ends on the assistant.
func (c *conversation) messages(n int) []message {
	out := slices.Clone(c.before)
	for i, t := range c.turns[:n] {
		out = append(out, t.reply)
		if i < n-1 {
			out = append(out, t.answers...)
		}
	}
	return out
}

func (c *conversation) hasReasoning() bool {
	return slices.ContainsFunc(c.turns, func(t turn) bool { return t.reply.Reasoning != "" })
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
