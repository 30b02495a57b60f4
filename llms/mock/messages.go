package mock

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// messagesRequest holds the fields of a request to the Messages API that the server reads.
type messagesRequest struct {
	commonFields
	Cache    any             `json:"cache_control"` // of the whole request
	System   json.RawMessage `json:"system"`
	Messages []struct {
		Role    string `json:"role"`
		Content blocks `json:"content"`
	} `json:"messages"`
}

// blocks is the content of a message: a list of blocks, or one text.
type blocks []map[string]any

func (b *blocks) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		*b = blocks{{"type": "text", "text": text}}
		return nil
	}
	return json.Unmarshal(raw, (*[]map[string]any)(b))
}

// errorTypes maps HTTP statuses to the error types of the Messages API.
var errorTypes = map[int]string{
	401: "authentication_error", 402: "billing_error", 403: "permission_error", 404: "not_found_error", 413: "request_too_large",
	429: "rate_limit_error", 500: "api_error", 502: "api_error", 503: "api_error", 504: "timeout_error", 529: "overloaded_error",
}

func (messagesRequest) failure(status int, code, message string) []byte {
	kind := cmp.Or(errorTypes[status], invalidRequest)
	if code == "insufficient_quota" {
		kind = "billing_error"
	}
	return encode(map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": message}})
}

func (r messagesRequest) texts() []textMessage {
	var out []textMessage
	if system := plainText(r.System); system != "" {
		out = append(out, textMessage{Role: "system", Text: system})
	}
	for _, m := range r.Messages {
		text := textMessage{Role: m.Role, Text: plainText(encode(m.Content))}
		for _, b := range m.Content {
			if b["type"] == "tool_use" {
				text.Text += fmt.Sprintf(" %v %s", b["name"], encode(b["input"]))
			}
			if id, ok := b["tool_use_id"].(string); ok {
				text.ID = id
			}
		}
		out = append(out, text)
	}
	return out
}

func (r messagesRequest) check(body []byte) []string {
	out := checkTools(r.Tools, false)
	report := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if r.MaxTokens < 1 {
		report("max_tokens is missing")
	}
	var open []string // calls that wait for a result
	for i, m := range r.Messages {
		if want := []string{"user", "assistant"}[i%2]; m.Role != want {
			report("message %d has role %s, want %s", i, m.Role, want)
		}
		if len(m.Content) == 0 {
			report("message %d has no content", i)
		}
		results := true
		for _, b := range m.Content {
			switch b["type"] {
			case "text":
				results = false
				if text, _ := b["text"].(string); strings.TrimSpace(text) == "" {
					report("message %d holds an empty text", i)
				}
			case "tool_use":
				id, _ := b["id"].(string)
				if _, isObject := b["input"].(map[string]any); !isObject || id == "" || m.Role != "assistant" {
					report("message %d: call %q is not well formed", i, id)
				}
				open = append(open, id)
			case "tool_result":
				id, _ := b["tool_use_id"].(string)
				n := slices.Index(open, id)
				if n < 0 || !results || m.Role != "user" {
					report("message %d: the result of %q follows a text, or answers no open call", i, id)
					continue
				}
				open = slices.Delete(open, n, n+1)
			case "thinking", "redacted_thinking":
				if m.Role != "assistant" {
					report("message %d: only the assistant sends thinking", i)
				}
			default:
				report("message %d holds a block of type %v", i, b["type"])
			}
		}
		if m.Role == "user" && len(open) > 0 {
			report("message %d: tool calls %v have no result", i, open)
			open = nil
		}
	}
	if n := bytes.Count(body, []byte(`"cache_control"`)); n > 4 {
		report("%d cache marks: at most 4 are allowed", n)
	}
	return out
}

// checkPrefix also requires that the blocks of the previous answer are unchanged, because
// thinking is signed.
func (r messagesRequest) checkPrefix(previous Exchange) string {
	var before messagesRequest
	if json.Unmarshal(previous.Body, &before) != nil {
		return ""
	}
	if !sameJSON(before.Tools, r.Tools) || !sameBlocks(before.System, r.System) {
		return "the tools or the system prompt differ from the turn before"
	}
	if len(r.Messages) < len(before.Messages)+2 {
		return "the conversation did not grow"
	}
	for i, m := range before.Messages {
		if content := r.Messages[i].Content; !sameBlocks(m.Content, content) {
			return fmt.Sprintf("message %d was rewritten:\n%s", i, lineDiff(encode(m.Content), encode(content)))
		}
	}
	return r.checkEcho(previous)
}

func (r messagesRequest) checkEcho(previous Exchange) string {
	var before messagesRequest
	var answer struct {
		Content []map[string]any `json:"content"`
	}
	if json.Unmarshal(previous.Body, &before) != nil || json.Unmarshal(previous.Answer, &answer) != nil {
		return ""
	}
	n := len(before.Messages)
	if n >= len(r.Messages) {
		return "the answer is missing"
	}
	answer.Content = slices.DeleteFunc(answer.Content, func(b map[string]any) bool { return b["type"] == "text" && b["text"] == "" })
	if content := r.Messages[n].Content; !sameBlocks(answer.Content, content) {
		return fmt.Sprintf("the answer was not returned as it was:\n%s", lineDiff(encode(answer.Content), encode(content)))
	}
	return ""
}

// sameBlocks reports whether two contents are equal, ignoring cache_control.
func sameBlocks(a, b any) bool {
	withoutCacheControl := func(v any) []byte {
		raw, err := json.Marshal(v)
		var blocks []map[string]any
		if err != nil || json.Unmarshal(raw, &blocks) != nil {
			return raw
		}
		for _, block := range blocks {
			delete(block, "cache_control")
		}
		return encode(blocks)
	}
	return bytes.Equal(withoutCacheControl(a), withoutCacheControl(b))
}

func (messagesRequest) render(ex Exchange, t Turn) []byte {
	var content []any
	if t.Reasoning != "" {
		content = append(content, map[string]any{"type": "thinking", "thinking": t.Reasoning, "signature": fmt.Sprintf("signed-%d-%d==", ex.Session, ex.Turn)})
	}
	if t.Redacted != "" {
		content = append(content, map[string]any{"type": "redacted_thinking", "data": t.Redacted})
	}
	if t.Content != nil {
		content = append(content, map[string]any{"type": "text", "text": *t.Content})
	}
	stop := "end_turn"
	for n, c := range t.ToolCalls {
		if c.As == "text" {
			content = append(content, map[string]any{"type": "text", "text": callAsText(nil, c)})
			continue
		}
		call := map[string]any{"type": "tool_use", "name": c.Name, "input": c.messagesInput()}
		if id := c.id("toolu", ex.Turn, n); id != "" {
			call["id"] = id
		}
		maps.Copy(call, c.Extra)
		content, stop = append(content, call), "tool_use"
	}
	body := map[string]any{
		"id": fmt.Sprintf("msg_%d_%d", ex.Session, ex.Turn), "type": "message", "role": "assistant", "model": ex.Model,
		"content": append([]any{}, content...), "stop_reason": cmp.Or(t.FinishReason, stop), "stop_sequence": nil,
	}
	maps.Copy(body, t.Message)
	t.addUsage(body, func(u Usage) map[string]any {
		return map[string]any{
			"input_tokens": u.Prompt - u.Cached - u.CacheWrite, "output_tokens": u.Completion,
			"cache_read_input_tokens": u.Cached, "cache_creation_input_tokens": u.CacheWrite,
			"cache_creation": map[string]any{"ephemeral_5m_input_tokens": u.CacheWrite - u.CacheWrite1h, "ephemeral_1h_input_tokens": u.CacheWrite1h},
		}
	})
	return encode(body)
}
