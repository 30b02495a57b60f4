package imports

import (
	"cmp"
	"encoding/json"
)

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
