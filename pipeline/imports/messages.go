package imports

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
)

// orText decodes a JSON value of type T, or a string that contains one as JSON. Parquet files store
// values whose keys differ from row to row as text.
type orText[T any] struct{ value T }

func (o *orText[T]) UnmarshalJSON(raw []byte) error {
	return json.Unmarshal(unquoted(raw), &o.value)
}

// unquoted returns the JSON in a JSON string, or raw if it is not a string that contains JSON.
func unquoted(raw []byte) []byte {
	var text string
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &text) != nil || !json.Valid([]byte(text)) {
		return raw
	}
	return []byte(text)
}

// rowMessage is a message of a dataset row in OpenAI's format. Fields that only some datasets have
// may have any type.
type rowMessage struct {
	Role         string                 `json:"role"`
	Content      json.RawMessage        `json:"content"`
	Reasoning    lenient[*string]       `json:"reasoning_content"`
	OpenRouter   lenient[*string]       `json:"reasoning"`
	Thinking     lenient[[]thought]     `json:"thinking_blocks"`
	ToolCallID   lenient[string]        `json:"tool_call_id"`
	ToolCallIDs  lenient[[]string]      `json:"tool_call_ids"` // of SWE-agent
	ToolCalls    orText[[]rowCall]      `json:"tool_calls"`
	FunctionCall lenient[*chatFunction] `json:"function_call"` // the form before tool_calls
	Action       lenient[*string]       `json:"action"`        // of SWE-agent
	Demo         lenient[bool]          `json:"is_demo"`       // of SWE-agent
}

// rowCall is a call with or without the level "function".
type rowCall struct {
	ID       lenient[string] `json:"id"`
	Function *chatFunction   `json:"function"`
	chatFunction
}

func (c rowCall) toChat() chatCall {
	if c.Function != nil {
		return chatCall{c.ID.value, *c.Function}
	}
	return chatCall{c.ID.value, c.chatFunction}
}

// toChat converts the message into the form that chat reads.
func (m rowMessage) toChat() chatMessage {
	out := chatMessage{
		Role: m.Role, Content: m.Content, Reasoning: cmp.Or(m.Reasoning.value, m.OpenRouter.value), Thinking: m.Thinking,
		ToolCallID: m.ToolCallID.value, ToolCallIDs: m.ToolCallIDs.value, Action: m.Action.value, Demo: m.Demo.value,
	}
	switch m.Role {
	case "developer":
		out.Role = "system"
	case "function":
		out.Role = "tool"
	}
	for _, c := range m.ToolCalls.value {
		out.ToolCalls = append(out.ToolCalls, c.toChat())
	}
	if f := m.FunctionCall.value; len(out.ToolCalls) == 0 && f != nil && f.Name != "" {
		out.ToolCalls = []chatCall{{Function: *f}}
	}
	return out
}

// conversation reads a list of messages or of events, in which the first element decides. where is
// the name of the list in errors.
func conversation(raw json.RawMessage, where string) ([]chatMessage, []json.RawMessage, error) {
	var list []json.RawMessage
	if err := json.Unmarshal(unquoted(raw), &list); err != nil {
		return nil, nil, fmt.Errorf("%s is not a list", where)
	}
	if len(list) > 0 && !hasKey(list[0], "role") {
		return eventMessages(list, where)
	}
	out := make([]chatMessage, 0, len(list))
	for i, raw := range list {
		var m rowMessage
		if err := json.Unmarshal(unquoted(raw), &m); err != nil {
			return nil, nil, fmt.Errorf("%s[%d] is not a message: %w", where, i, err)
		}
		out = append(out, m.toChat())
	}
	return out, nil, nil
}

// hasKey reports whether raw is an object, or the text of one, that has one of the keys.
func hasKey(raw json.RawMessage, keys ...string) bool {
	var object map[string]json.RawMessage
	if json.Unmarshal(unquoted(raw), &object) != nil {
		return false
	}
	for _, k := range keys {
		if _, ok := object[k]; ok {
			return true
		}
	}
	return false
}
