package llmtest

import (
	"encoding/json"
	"fmt"
	"maps"
)

// streamPiece is how many bytes of text one chunk carries.
const streamPiece = 16

// frames are a regular answer as server-sent events: the role, the text and
// the arguments in pieces, the end, the usage where it was asked for, [DONE].
func (r request) frames(answer []byte) [][]byte {
	var whole struct {
		ID      string `json:"id"`
		Model   string `json:"model"`
		Choices []struct {
			Message      map[string]any `json:"message"`
			FinishReason string         `json:"finish_reason"`
		} `json:"choices"`
		Usage json.RawMessage `json:"usage"`
	}
	if json.Unmarshal(answer, &whole) != nil || len(whole.Choices) == 0 {
		return [][]byte{event(answer)} // an answer that is none
	}
	var out [][]byte
	chunk := func(choices []any, usage any) {
		body := map[string]any{"id": whole.ID, "object": "chat.completion.chunk", "created": 0, "model": whole.Model, "choices": choices}
		if usage != nil {
			body["usage"] = usage
		}
		out = append(out, event(encoded(body)))
	}
	delta := func(d map[string]any, finish any) {
		chunk([]any{map[string]any{"index": 0, "delta": d, "finish_reason": finish}}, nil)
	}
	message := whole.Choices[0].Message
	rest := maps.Clone(message)
	for _, name := range []string{"content", "tool_calls"} {
		delete(rest, name)
	}
	delta(rest, nil)
	if text, ok := message["content"].(string); ok {
		for piece := range pieces(text) {
			delta(map[string]any{"content": piece}, nil)
		}
	}
	calls, _ := message["tool_calls"].([]any)
	for i, c := range calls {
		call, ok := c.(map[string]any)
		if !ok {
			continue
		}
		fn, _ := call["function"].(map[string]any)
		arguments, _ := fn["arguments"].(string)
		delta(map[string]any{"tool_calls": []any{map[string]any{
			"index": i, "id": call["id"], "type": "function", "function": map[string]any{"name": fn["name"], "arguments": ""},
		}}}, nil)
		for piece := range pieces(arguments) {
			delta(map[string]any{"tool_calls": []any{map[string]any{"index": i, "function": map[string]any{"arguments": piece}}}}, nil)
		}
	}
	delta(map[string]any{}, whole.Choices[0].FinishReason)
	if r.StreamOpts.Usage && len(whole.Usage) > 0 {
		chunk([]any{}, whole.Usage)
	}
	return append(out, event([]byte("[DONE]")))
}

// event is one server-sent event.
func event(data []byte) []byte { return fmt.Appendf(nil, "data: %s\n\n", data) }

// pieces cuts a text, never within a character.
func pieces(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		from := 0
		for i := range text {
			if i-from >= streamPiece {
				if !yield(text[from:i]) {
					return
				}
				from = i
			}
		}
		if from < len(text) {
			yield(text[from:])
		}
	}
}
