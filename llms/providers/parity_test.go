package providers_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/internal/mocktest"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/mock"
	"github.com/tracesmith/tracesmith/schemas"
)

// Numbers such as G2 in the names of tests are rows of docs/internals/parity.md.

// sendOne makes one call and returns the body of its request, and the reply.
func sendOne(t *testing.T, provider string, with map[string]any, r llms.Request, turn mock.Turn) (map[string]any, schemas.Reply) {
	t.Helper()
	srv := mocktest.Serve(t, mock.Script{Sessions: []mock.Session{{Turns: []mock.Turn{turn}}}})
	cfg := map[string]any{"base_url": srv.URL, "model": "m"}
	for k, v := range with {
		cfg[k] = v
	}
	c, err := llms.Providers.Build(provider, cfg, llms.Deps{Getenv: getenv})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Chat(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	var body map[string]any
	if err := json.Unmarshal(srv.Log()[0].Body, &body); err != nil {
		t.Fatal(err)
	}
	return body, resp.Reply
}

// The configuration names the provider. It is never guessed from tags or from the model's name.
func TestG2ProvidersAreNamed(t *testing.T) {
	for _, kind := range []string{"openai", "azure", "anthropic"} {
		if _, ok := llms.Providers.Lookup(kind); !ok {
			t.Errorf("provider %s is missing", kind)
		}
	}
	_, err := llms.Providers.Build("opneai", nil, llms.Deps{})
	if err == nil || !strings.Contains(err.Error(), "opneai") || !strings.Contains(err.Error(), "openai") {
		t.Errorf("got %v", err)
	}
	if _, err := llms.Providers.Build("openai", map[string]any{"base_url": "http://h/v1"}, llms.Deps{}); err == nil || !strings.Contains(err.Error(), "model is missing") {
		t.Errorf("got %v", err)
	}
}

// Tools are sent as functions with their schemas. All calls of a reply are used. A call whose
// arguments are not an object is not executed.
func TestG10ToolsAndCalls(t *testing.T) {
	params := json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}},"required":["a"],"additionalProperties":false}`)
	body, reply := sendOne(t, "openai", nil, llms.Request{
		Messages: hello.Messages, Sampling: llms.Sampling{ToolChoice: "auto"},
		Tools: []schemas.ToolSchema{{Name: "view", Description: "d", Parameters: params}},
	}, mock.Turn{ToolCalls: []mock.Call{{Name: "view", Raw: ptr(`["a"]`)}, {Name: "view", Raw: ptr(`{"a":"` + strings.Repeat("x", 2<<20) + `"}`)}}})
	var schema any
	if err := json.Unmarshal(params, &schema); err != nil {
		t.Fatal(err)
	}
	want := []any{map[string]any{"type": "function", "function": map[string]any{"name": "view", "description": "d", "parameters": schema}}}
	if diff := cmp.Diff(want, body["tools"]); diff != "" || body["tool_choice"] != "auto" {
		t.Errorf("tool_choice %v: %s", body["tool_choice"], diff)
	}
	if len(reply.Calls) != 2 || reply.Calls[0].Invalid == "" || reply.Calls[1].Invalid != "" {
		t.Errorf("%d calls", len(reply.Calls))
	}
}

// Rate limits, server errors and network errors are retried. Errors of the request or the
// account are not.
func TestG10RetryableErrors(t *testing.T) {
	var retried []int
	for _, status := range []int{400, 401, 402, 403, 404, 408, 409, 413, 422, 425, 429, 500, 502, 503, 504, 524, 529} {
		if errorFor(t, status, `{"error":{"message":"no"}}`, nil).Retryable() {
			retried = append(retried, status)
		}
	}
	if diff := cmp.Diff([]int{408, 409, 425, 429, 500, 502, 503, 504, 524, 529}, retried); diff != "" {
		t.Error(diff)
	}
	if e := errorFor(t, 500, `{"error":{"code":"context_length_exceeded","message":"no"}}`, nil); e.Retryable() {
		t.Error("a prompt that is too long was retried")
	}
}

// There is no setting for thinking: users set any field in extra, and it is sent unchanged.
// tool_choice is sent unchanged as well.
func TestG13ChatTemplateArguments(t *testing.T) {
	for _, name := range []string{"enable_thinking", "thinking"} {
		extra := map[string]any{"chat_template_kwargs": map[string]any{name: false}}
		body, _ := sendOne(t, "openai", nil, llms.Request{Messages: hello.Messages, Tools: []schemas.ToolSchema{viewTool},
			Sampling: llms.Sampling{ToolChoice: "required", Extra: extra}}, mocktest.Tool("view", map[string]any{"path": "x"}))
		if diff := cmp.Diff(extra["chat_template_kwargs"], body["chat_template_kwargs"]); diff != "" || body["tool_choice"] != "required" {
			t.Errorf("%v: %s", body["tool_choice"], diff)
		}
	}
}

func TestG14AnthropicMessages(t *testing.T) {
	thinking := mock.Turn{Content: ptr("x"), Reasoning: "why", Redacted: "b64=="}
	body, reply := sendOne(t, "anthropic", nil, llms.Request{
		Messages: []llms.Message{{Role: "user", Content: "go"}, {Role: "assistant", Content: "  "}, {Role: "user", Content: ""}, {Role: "user", Content: "on"}},
		Tools:    []schemas.ToolSchema{viewTool}, Sampling: llms.Sampling{ToolChoice: "required"},
	}, thinking)
	if n := len(body["messages"].([]any)); n != 1 {
		t.Errorf("%d messages: the API refuses empty messages and consecutive user messages", n)
	}
	if diff := cmp.Diff(map[string]any{"type": "any"}, body["tool_choice"]); diff != "" {
		t.Error(diff)
	}
	for _, part := range []string{"signed-0-0==", "b64=="} {
		if !strings.Contains(string(reply.ReasoningBlocks), part) || !strings.Contains(string(reply.Extra), part) {
			t.Errorf("%s is missing: %s", part, reply.ReasoningBlocks)
		}
	}
	var retried []int
	for _, status := range []int{400, 401, 403, 404, 413, 429, 500, 502, 503, 504, 529} {
		srv := mocktest.Serve(t, mock.Script{Sessions: []mock.Session{{Turns: []mock.Turn{{Fault: &mock.Fault{Status: status, Body: `{"type":"error","error":{"type":"api_error","message":"no"}}`}}}}}})
		_, err := messagesClient(t, srv.URL, nil).Chat(t.Context(), hello)
		if llms.ClassOf(err) == "" {
			t.Fatalf("%d: %v", status, err)
		}
		if e, ok := err.(*llms.Error); ok && e.Retryable() {
			retried = append(retried, status)
		}
	}
	if want := []int{429, 500, 502, 503, 504, 529}; !slices.Equal(retried, want) {
		t.Errorf("retryable %v, want %v", retried, want)
	}
}

// Reasoning is separate from the message, and is sent back in the field in which it came.
func TestG17ReasoningIsSeparate(t *testing.T) {
	for _, provider := range []string{"openai", "anthropic"} {
		turn := mocktest.Tool("view", map[string]any{"path": "x"})
		turn.Content, turn.Reasoning = ptr("said"), "thought"
		_, reply := sendOne(t, provider, nil, llms.Request{Messages: hello.Messages, Tools: []schemas.ToolSchema{viewTool}}, turn)
		if reply.Message != "said" || reply.Reasoning != "thought" {
			t.Errorf("%s: message %q, reasoning %q", provider, reply.Message, reply.Reasoning)
		}
		history := append(slices.Clone(hello.Messages),
			llms.Message{Role: "assistant", Content: reply.Message, ToolCalls: reply.Calls, Raw: reply.Extra},
			llms.Message{Role: "tool", ToolCallID: reply.Calls[0].ID, Content: "seen"})
		srv := mocktest.Serve(t, mock.Script{Sessions: []mock.Session{{Turns: []mock.Turn{{}, mocktest.Text("done")}}}})
		c, err := llms.Providers.Build(provider, map[string]any{"base_url": srv.URL, "model": "m"}, llms.Deps{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Chat(t.Context(), llms.Request{Messages: history, Tools: []schemas.ToolSchema{viewTool}}); err != nil {
			t.Fatal(err)
		}
		name := map[string]string{"openai": "reasoning_content", "anthropic": "thinking"}[provider]
		if body := string(srv.Log()[0].Body); !strings.Contains(body, fmt.Sprintf(`"%s":"thought"`, name)) {
			t.Errorf("%s: not sent back: %s", provider, body)
		}
	}
}
