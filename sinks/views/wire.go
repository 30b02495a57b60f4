package views

import "github.com/tracesmith/tracesmith/sinks"

// wireMessage is a message as JSON lines contain it. Trainers that mask messages read
// either Train or Weight.
type wireMessage struct {
	Role       string     `json:"role"`
	Content    *string    `json:"content,omitempty"` // nil: omitted
	Reasoning  string     `json:"reasoning_content,omitempty"`
	ToolCalls  []wireCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
	Train      *bool      `json:"train,omitempty"`
	Weight     *int       `json:"weight,omitempty"`
}

type wireCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"` // always "function"
	Function wireFunction `json:"function"`
}

type wireFunction struct {
	Name      string `json:"name"`
	Arguments any    `json:"arguments"` // an object or its JSON text; see ViewOptions.Arguments
}

// wire returns the message for JSON lines.
func (m message) wire(o sinks.ViewOptions) wireMessage {
	out := wireMessage{Role: m.Role, Content: &m.Content, Reasoning: m.Reasoning, ToolCallID: m.ToolCallID}
	if o.ContentNull == sinks.ContentOmit && m.Content == "" && len(m.ToolCalls) > 0 {
		out.Content = nil
	}
	for _, c := range m.ToolCalls {
		out.ToolCalls = append(out.ToolCalls, wireCall{c.ID, c.Type, wireFunction{c.Function.Name, c.argumentsValue(o)}})
	}
	return out
}

func wireMessages(list []message, o sinks.ViewOptions) []wireMessage {
	out := make([]wireMessage, len(list))
	for i, m := range list {
		out[i] = m.wire(o)
	}
	return out
}
