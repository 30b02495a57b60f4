package mock

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// chatRequest holds the fields of a chat completion request that the server reads.
type chatRequest struct {
	commonFields
	Messages []json.RawMessage `json:"messages"`
}

type chatMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

func (r chatRequest) decode() []chatMessage {
	out := make([]chatMessage, len(r.Messages))
	for i, raw := range r.Messages {
		if json.Unmarshal(raw, &out[i]) != nil {
			out[i].Role = "unreadable"
		}
	}
	return out
}

func (chatRequest) failure(_ int, code, message string) []byte {
	return encode(map[string]any{"error": map[string]any{"message": message, "type": code, "param": nil, "code": code}})
}

func (r chatRequest) texts() []textMessage {
	var out []textMessage
	for _, m := range r.decode() {
		role := m.Role
		if role == "developer" {
			role = "system"
		}
		text := textMessage{Role: role, Text: plainText(m.Content), ID: m.ToolCallID}
		for _, c := range m.ToolCalls {
			text.Text += " " + c.Function.Name + " " + c.Function.Arguments
		}
		out = append(out, text)
	}
	return out
}

// plainText returns the text of content, which is one text or a list of parts.
func plainText(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var parts []struct {
		Text    string          `json:"text"`
		Content json.RawMessage `json:"content"` // of a tool_result
	}
	_ = json.Unmarshal(content, &parts) // other content has no text
	for _, p := range parts {
		text += p.Text
		if len(p.Content) > 0 {
			text += plainText(p.Content)
		}
	}
	return text
}

// check returns the mistakes in the tools and in the order of the messages.
func (r chatRequest) check([]byte) []string {
	out := checkTools(r.Tools, true)
	open := []string{} // calls that wait for an answer
	for i, m := range r.decode() {
		prefix := fmt.Sprintf("message %d (%s): ", i, m.Role)
		if m.Role != "tool" && len(open) > 0 {
			out = append(out, prefix+fmt.Sprintf("tool calls %v have no answer", open))
			open = nil
		}
		switch m.Role {
		case "system", "developer":
			if i != 0 {
				out = append(out, prefix+"the system message is not the first")
			}
		case "user":
		case "assistant":
			for _, c := range m.ToolCalls {
				if c.ID == "" || slices.Contains(open, c.ID) {
					out = append(out, prefix+fmt.Sprintf("call id %q is missing or used twice", c.ID))
				}
				if !json.Valid([]byte(c.Function.Arguments)) || c.Type != "function" {
					out = append(out, prefix+fmt.Sprintf("call %s is not well formed", c.ID))
				}
				open = append(open, c.ID)
			}
			if len(m.ToolCalls) == 0 && (len(m.Content) == 0 || string(m.Content) == "null") {
				out = append(out, prefix+"neither content nor tool calls")
			}
		case "tool":
			n := slices.Index(open, m.ToolCallID)
			if n < 0 {
				out = append(out, prefix+fmt.Sprintf("answers call %q, which is not open", m.ToolCallID))
				continue
			}
			open = slices.Delete(open, n, n+1)
		default:
			out = append(out, prefix+"unknown role")
		}
	}
	if len(open) > 0 {
		out = append(out, fmt.Sprintf("tool calls %v have no answer", open))
	}
	return out
}

func (r chatRequest) checkPrefix(previous Exchange) string {
	var before chatRequest
	if json.Unmarshal(previous.Body, &before) != nil {
		return ""
	}
	if string(before.Tools) != string(r.Tools) {
		return "the tools differ from the turn before"
	}
	if len(before.Messages) >= len(r.Messages) {
		return "the conversation did not grow"
	}
	for i, m := range before.Messages {
		if !sameJSON(m, r.Messages[i]) {
			return fmt.Sprintf("message %d was rewritten:\n%s", i, lineDiff(m, r.Messages[i]))
		}
	}
	return ""
}

func (r chatRequest) checkEcho(previous Exchange) string {
	var before chatRequest
	var answer struct {
		Choices []struct {
			Message map[string]any `json:"message"`
		} `json:"choices"`
	}
	if json.Unmarshal(previous.Body, &before) != nil || json.Unmarshal(previous.Answer, &answer) != nil || len(answer.Choices) == 0 {
		return ""
	}
	var echo map[string]any
	if n := len(before.Messages); n >= len(r.Messages) || json.Unmarshal(r.Messages[n], &echo) != nil {
		return "it is missing"
	}
	return echoDiff(answer.Choices[0].Message, echo)
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// render returns the body of a regular answer.
func (chatRequest) render(ex Exchange, t Turn) []byte {
	msg := map[string]any{"role": "assistant", "content": nil}
	if t.Content != nil {
		msg["content"] = *t.Content
		if t.Parts {
			msg["content"] = []any{map[string]any{"type": "text", "text": *t.Content}}
		}
	}
	if t.Reasoning != "" {
		msg[cmp.Or(t.ReasoningField, "reasoning_content")] = t.Reasoning
	}
	var calls []any
	for n, c := range t.ToolCalls {
		if c.As == "text" {
			msg["content"] = callAsText(msg["content"], c)
			continue
		}
		call := map[string]any{"type": "function", "function": map[string]any{"name": c.Name, "arguments": c.chatArguments()}}
		if id := c.id("script", ex.Turn, n); id != "" {
			call["id"] = id
		}
		maps.Copy(call, c.Extra)
		calls = append(calls, call)
	}
	finish := "stop"
	if len(calls) > 0 {
		msg["tool_calls"], finish = calls, "tool_calls"
	}
	maps.Copy(msg, t.Message)
	body := map[string]any{
		"id": fmt.Sprintf("chatcmpl-%d-%d", ex.Session, ex.Turn), "object": "chat.completion", "created": 0, "model": ex.Model,
		"choices": []any{map[string]any{"index": 0, "message": msg, "finish_reason": cmp.Or(t.FinishReason, finish)}},
	}
	t.addUsage(body, func(u Usage) map[string]any {
		return map[string]any{
			"prompt_tokens": u.Prompt, "completion_tokens": u.Completion, "total_tokens": u.Prompt + u.Completion,
			"prompt_tokens_details":     map[string]any{"cached_tokens": u.Cached, "cache_write_tokens": u.CacheWrite, "audio_tokens": u.Audio},
			"completion_tokens_details": map[string]any{"reasoning_tokens": u.Reasoning},
		}
	})
	return encode(body)
}

// encode returns the JSON of a value.
func encode(body any) []byte {
	raw, err := json.Marshal(body)
	if err != nil {
		return []byte(`{"error":{"message":"the script contains a value that JSON cannot hold"}}`)
	}
	return raw
}
