// Package views renders episodes for trainers and other tools.
//
// Every view starts from the conversations of an episode. Views whose rows hold
// conversations are entries in the table shapes and share one renderer. Each of the other
// views implements sinks.View in a separate file.
package views

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// message is one message in the format of OpenAI, with arguments as objects. Empty keys
// are omitted, and content is never null.
type message struct {
	Role       string `json:"role"`
	Content    string `json:"content"`
	Reasoning  string `json:"reasoning_content,omitempty"`
	ToolCalls  []call `json:"tool_calls,omitempty"`
	ToolCallID string `json:"tool_call_id,omitempty"`

	turn int // index in the conversation; -1 if the message is not a reply
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

// conversation is an episode, or one phase of it, with all its texts: the messages
// before the first turn, then the turns.
type conversation struct {
	phase  string        // "" if the episode has only one conversation
	text   bool          // calls are part of the text of the replies
	before []stepMessage // system and user messages
	turns  []turn
}

// stepMessage is a message and the index of its step, or -1 if it does not come from a step.
type stepMessage struct {
	step int
	message
}

// turn is one reply and the answers to it.
type turn struct {
	reply   message
	answers []stepMessage    // of the role tool, or user if the reply had no call
	mask    string           // the reason why the turn must not be trained on; "" if it may be
	gold    bool             // its content comes from the gold patch
	row     *schemas.StepRow // the first of rows
	rows    []*schemas.StepRow
	skip    bool              // the view does not train on it
	op      schemas.ContextOp // the shortening of the prompt that the reply answers
}

// conversationsOf rebuilds the conversations of an episode as agents/history built them:
// messages before the first turn merge into one message of the user, and a tool's answer
// is its observation followed by the observations that it triggered. The options choose a
// phase, the system prompt and the end of an episode; notes count the turns left out.
func conversationsOf(t sinks.Trajectory, o sinks.ViewOptions, notes sinks.Notes) ([]*conversation, error) {
	var all []*conversation
	end := len(t.Steps)
	if o.Trim == sinks.TrimResolved {
		end = endOfResolvingTurn(t, notes)
	}
	for i := range t.Steps {
		s := &t.Steps[i]
		name := schemas.Value(s.Phase)
		if o.Phase != "" && name != o.Phase {
			continue
		}
		if i >= end {
			if startsTurn(s) {
				notes["turns_cut_after_resolved"]++
			}
			continue
		}
		at := slices.IndexFunc(all, func(c *conversation) bool { return c.phase == name })
		if at < 0 {
			at = len(all)
			all = append(all, &conversation{phase: name, text: callsInText(t)})
		}
		if err := all[at].add(s); err != nil {
			return nil, fmt.Errorf("step %d of episode %s: %w", s.StepIndex, s.EpisodeID, err)
		}
	}
	for _, c := range all {
		c.applySystemOption(o)
	}
	return all, nil
}

// endOfResolvingTurn returns the index of the first step after the turn that resolved the
// task, or the number of steps if that turn is unknown. A turn stays whole, because the model
// made all its calls in one reply.
func endOfResolvingTurn(t sinks.Trajectory, notes sinks.Notes) int {
	at := slices.IndexFunc(t.Steps, func(s schemas.StepRow) bool {
		return t.Episode.ResolvedAtStep != nil && s.StepIndex == *t.Episode.ResolvedAtStep
	})
	if at < 0 {
		if t.Episode.Resolved != nil && *t.Episode.Resolved {
			notes["episodes_not_trimmed"]++ // a later command may have mattered
		}
		return len(t.Steps)
	}
	for at++; at < len(t.Steps) && !startsTurn(&t.Steps[at]) && t.Steps[at].TurnIndex != nil; at++ {
	}
	return at
}

func startsTurn(s *schemas.StepRow) bool {
	return s.TurnIndex != nil && s.Source == "agent" && (s.CallIndex == nil || *s.CallIndex == 0)
}

// applySystemOption drops or replaces the system prompt if the options say so.
func (c *conversation) applySystemOption(o sinks.ViewOptions) {
	if o.System != sinks.SystemDrop && o.System != sinks.SystemReplace {
		return
	}
	c.before = slices.DeleteFunc(c.before, func(l stepMessage) bool { return l.Role == "system" })
	if o.System == sinks.SystemReplace {
		c.before = slices.Insert(c.before, 0, stepMessage{-1, message{Role: "system", Content: o.SystemText}})
	}
}

// callsInText reports whether the model wrote its calls as text. The system prompt then
// describes the tools.
func callsInText(t sinks.Trajectory) bool { return schemas.Value(t.Episode.ToolCallStyle) == "text" }

func (c *conversation) add(s *schemas.StepRow) error {
	switch {
	case s.Source == "system":
		c.before = append(c.before, stepMessage{int(s.StepIndex), message{Role: "system", Content: s.Message}})
		return nil
	case s.TurnIndex == nil:
		c.before = append(c.before, stepMessage{int(s.StepIndex), message{Role: "user", Content: s.Message}})
		return nil
	}
	if startsTurn(s) {
		t := turn{row: s, reply: message{Role: "assistant", Content: s.Message, Reasoning: schemas.Value(s.Reasoning)}}
		if n := len(c.turns); n > 0 && s.ContextOp == nil { // the reply did not come from a model, so there was no prompt
			t.op = c.turns[n-1].op
		}
		if s.ContextOpJSON != nil {
			if err := json.Unmarshal([]byte(*s.ContextOpJSON), &t.op); err != nil {
				return fmt.Errorf("context_op_json: %w", err)
			}
		}
		c.turns = append(c.turns, t)
	}
	if len(c.turns) == 0 {
		return fmt.Errorf("a turn lacks its first row")
	}
	return c.turns[len(c.turns)-1].add(s)
}

func (t *turn) add(s *schemas.StepRow) error {
	t.rows = append(t.rows, s)
	if s.Source == "agent" {
		if s.GoldEdit != nil && *s.GoldEdit || schemas.Value(s.MaskReason) == "gold" {
			t.gold = true
		}
		if !s.Train && t.mask == "" {
			t.mask = cmp.Or(schemas.Value(s.MaskReason), "masked")
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
	text, err := observationText(s)
	if err != nil {
		return err
	}
	answer := message{Role: "tool", ToolCallID: id, Content: text}
	if id == "" {
		answer.Role = "user"
	}
	t.answers = append(t.answers, stepMessage{int(s.StepIndex), answer})
	return nil
}

// answersByCall returns the texts that answered a turn, by the id of the call; "" is the
// key of an answer to a reply without a call.
func (t *turn) answersByCall() map[string]string {
	answers := map[string]string{}
	for _, a := range t.answers {
		answers[a.ToolCallID] = a.Content
	}
	return answers
}

// callOf returns the call of a row.
func callOf(s *schemas.StepRow) (call, error) {
	args := json.RawMessage(s.WrittenArguments())
	var object map[string]json.RawMessage
	if err := json.Unmarshal(args, &object); err != nil || object == nil {
		return call{}, fmt.Errorf("the arguments of %s are not a JSON object: %.80q", *s.ToolName, args)
	}
	if schemas.Value(s.ToolCallID) == "" {
		return call{}, fmt.Errorf("the call of %s has no id", *s.ToolName)
	}
	return call{ID: *s.ToolCallID, Type: "function", Function: function{Name: *s.ToolName, Arguments: args}}, nil
}

// observationText returns the observation of a row and the observations that it triggered.
func observationText(s *schemas.StepRow) (string, error) {
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

// messages returns the messages that the model saw at the last turn of a row, followed by
// its reply. The completion begins with a reply. It also ends with one, or with the answers
// to the last turn if answered is true.
func (c *conversation) messages(s span, answered bool) (prompt, completion []message) {
	return c.render(s, c.turns[s.to-1].op, answered)
}

// allMessages returns the complete conversation, including texts that prompts left out.
func (c *conversation) allMessages() []message {
	prompt, completion := c.render(span{to: len(c.turns)}, schemas.ContextOp{}, true)
	return slices.Concat(prompt, completion)
}

func (c *conversation) render(s span, op schemas.ContextOp, answered bool) (prompt, completion []message) {
	l := messageList{op: op, text: c.text}
	for _, before := range c.before {
		l.add(before, -1)
	}
	note, start := op.Note, 0
	for i, t := range c.turns[:s.to] {
		if op.Drops(int(t.row.StepIndex)) {
			continue
		}
		if note != "" {
			l.add(stepMessage{-1, message{Role: "user", Content: note}}, -1)
			note = ""
		}
		if i == s.from {
			start = len(l.out)
		}
		l.add(stepMessage{-1, t.reply}, i)
		for _, answer := range t.answers {
			if i < s.to-1 || answered {
				l.add(answer, -1)
			}
		}
	}
	return l.out[:start:start], l.out[start:]
}

// messageList collects messages as a model saw them.
type messageList struct {
	op   schemas.ContextOp
	text bool
	out  []message
}

// add appends a message. turn is the index of its turn if it is a reply, and -1 otherwise.
// Consecutive messages of the user become one.
func (l *messageList) add(m stepMessage, turn int) {
	m.turn = turn
	m.Content = l.op.Shown(m.step, m.Content)
	if l.text {
		m.ToolCalls, m.ToolCallID = nil, ""
	}
	if l.text && m.Role == "tool" || m.Role == "system" && l.op.SystemAs != "" {
		m.Role = "user"
	}
	if n := len(l.out); n > 0 && m.Role == "user" && l.out[n-1].Role == "user" {
		l.out[n-1].Content += "\n\n" + m.Content
		return
	}
	l.out = append(l.out, m.message)
}

func (c *conversation) hasReasoning() bool {
	return slices.ContainsFunc(c.turns, func(t turn) bool { return t.reply.Reasoning != "" })
}
