package llms_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// The hash is that of the canonical JSON, so that readers of rows can compute it.
func TestPromptSHA256(t *testing.T) {
	call := schemas.ToolCall{ID: "c1", Name: "edit", Arguments: json.RawMessage(`{"z":1.50, "a":"<b>&"}`), Raw: "{"}
	messages := []llms.Message{
		{Role: "system", Content: "s"},
		{Role: "user", Content: "<fix> \u2028 & \xff"},
		{Role: "assistant", ToolCalls: []schemas.ToolCall{call, {ID: "c2", Name: "view", Arguments: json.RawMessage(`{"bro`)}}, Raw: json.RawMessage(`{"reasoning":"r"}`)},
		{Role: "tool", ToolCallID: "c1", Content: "done"},
	}
	want := schemas.Hash([]any{
		map[string]any{"role": "system", "content": "s"},
		map[string]any{"role": "user", "content": "<fix> \u2028 & \xff"},
		map[string]any{"role": "assistant", "content": "", "tool_calls": []any{
			map[string]any{"id": "c1", "name": "edit", "arguments": json.RawMessage(`{"a":"<b>&","z":1.50}`)},
			map[string]any{"id": "c2", "name": "view", "arguments": map[string]any{}},
		}},
		map[string]any{"role": "tool", "tool_call_id": "c1", "content": "done"},
	})
	if got := llms.PromptSHA256(messages); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := llms.PromptSHA256(nil); got != schemas.Hash([]any{}) {
		t.Errorf("hash of no messages: %s", got)
	}
	if llms.PromptSHA256(messages[:3]) == want {
		t.Error("a prompt without its last message has the same hash")
	}
}

// PromptHash agrees with PromptSHA256 for prompts that share prefixes, are shorter, or differ
// in the middle.
func TestPromptHashOfAConversation(t *testing.T) {
	talk := func(texts ...string) (out []llms.Message) {
		for i, text := range texts {
			m := llms.Message{Role: "user", Content: text}
			if i%2 == 1 {
				m = llms.Message{Role: "assistant", ToolCalls: []schemas.ToolCall{{ID: "c", Name: "view", Arguments: json.RawMessage(`{"a":"` + text + `"}`)}}}
			}
			out = append(out, m)
		}
		return out
	}
	var h llms.PromptHash
	for i, prompt := range [][]llms.Message{
		talk("a"), talk("a", "b"), talk("a", "b", "c"), talk("a", "b", "c"), talk("a", "x", "c"), talk("a"), nil, talk("a", "b", "c", "d", "e"), talk("z", "b"), talk("a", "b", "c"),
	} {
		if got, want := h.SHA256(prompt), llms.PromptSHA256(prompt); got != want {
			t.Errorf("prompt %d: %s, want %s", i, got, want)
		}
	}
}

// fakeClient returns status 1.
type fakeClient struct{ llms.Client }

func (fakeClient) Chat(context.Context, llms.Request) (llms.Response, error) {
	return llms.Response{Status: 1}, nil
}

func TestTraits(t *testing.T) {
	want := llms.Traits{ContextLimit: 8192, NoSystem: true}
	c := llms.WithTraits(fakeClient{}, want)
	if got := llms.TraitsOf(c); got != want {
		t.Errorf("%+v", got)
	}
	if got := llms.TraitsOf(fakeClient{}); got != (llms.Traits{}) {
		t.Errorf("traits of a client without traits: %+v", got)
	}
	if resp, err := c.Chat(t.Context(), llms.Request{}); err != nil || resp.Status != 1 {
		t.Errorf("the client was not called: %+v, %v", resp, err)
	}
}
