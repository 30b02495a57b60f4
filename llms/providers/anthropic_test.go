package providers_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/internal/mocktest"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/mock"
	"github.com/tracesmith/tracesmith/schemas"
)

func messagesClient(t *testing.T, url string, with map[string]any) llms.Client {
	t.Helper()
	cfg := map[string]any{"base_url": url, "model": "m", "api_key": "env:TEST_KEY"}
	for k, v := range with {
		cfg[k] = v
	}
	c, err := llms.Providers.Build("anthropic", cfg, llms.Deps{Getenv: getenv})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var viewTool = schemas.ToolSchema{Name: "view", Description: "show a file", Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"],"additionalProperties":false}`)}

// The mock server compares each request with its previous answers, so the test fails if a
// thinking block is changed, moved or missing.
func TestAnthropicConversation(t *testing.T) {
	srv := mocktest.Serve(t, mock.Script{Key: secret, Sessions: []mock.Session{{ID: "s1", Turns: []mock.Turn{
		{Content: ptr("first"), Reasoning: "because\n\"ü\"", Redacted: "b64==", ToolCalls: []mock.Call{
			{Name: "view", Arguments: map[string]any{"path": "x.py", "line": 12345678901234567}}, {Name: "view"},
		}, Usage: &mock.Usage{Prompt: 100, Completion: 9, Cached: 60, CacheWrite: 30}},
		{Content: ptr(""), Reasoning: "only thoughts"},
		{Content: ptr("done")},
	}}}})
	c := messagesClient(t, srv.URL, nil)
	history := []llms.Message{{Role: "system", Content: "scene"}, {Role: "user", Content: "go"}}
	temperature := 0.0
	chat := func() schemas.Reply {
		t.Helper()
		resp, err := c.Chat(t.Context(), llms.Request{Messages: history, Tools: []schemas.ToolSchema{viewTool}, SessionID: "s1",
			Sampling: llms.Sampling{Temperature: &temperature, ToolChoice: "auto", Extra: map[string]any{"thinking": map[string]any{"type": "enabled", "budget_tokens": 1024}}}})
		if err != nil {
			t.Fatal(err)
		}
		history = append(history, llms.Message{Role: "assistant", Content: resp.Reply.Message, ToolCalls: resp.Reply.Calls, Raw: resp.Reply.Extra})
		return resp.Reply
	}
	first := chat()
	want := []schemas.ToolCall{
		{ID: "toolu_0_0", Name: "view", Arguments: json.RawMessage(`{"line":12345678901234567,"path":"x.py"}`)},
		{ID: "toolu_0_1", Name: "view", Arguments: json.RawMessage(`{}`)},
	}
	if diff := cmp.Diff(want, first.Calls); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(&schemas.Usage{Prompt: 100, Completion: 9, Cached: 60, CacheWrite: 30}, first.Usage); diff != "" {
		t.Error(diff)
	}
	if first.Message != "first" || first.Reasoning != "because\n\"ü\"" || first.FinishReason != "tool_use" || first.Model != "m" || first.LLMMillis == nil ||
		!strings.Contains(string(first.ReasoningBlocks), "signed-0-0==") || !strings.Contains(string(first.ReasoningBlocks), "b64==") {
		t.Errorf("reply %+v", first)
	}
	history = append(history, llms.Message{Role: "tool", ToolCallID: "toolu_0_0", Content: "seen"}, llms.Message{Role: "tool", ToolCallID: "toolu_0_1"})
	if second := chat(); second.Reasoning != "only thoughts" || len(second.Calls) != 0 {
		t.Errorf("reply %+v", second)
	}
	history = append(history, llms.Message{Role: "user", Content: "call a tool"})
	chat()

	var body struct {
		Temperature *float64
		MaxTokens   int `json:"max_tokens"`
		Thinking    map[string]any
		ToolChoice  map[string]any `json:"tool_choice"`
		Tools       []struct {
			InputSchema json.RawMessage `json:"input_schema"`
		}
	}
	sent := srv.Log()[1].Body
	if err := json.Unmarshal(sent, &body); err != nil || body.Temperature == nil || body.MaxTokens != llms.DefaultMaxTokens || body.Thinking["budget_tokens"] == nil || body.ToolChoice["type"] != "auto" {
		t.Errorf("%v: sent %s", err, sent)
	}
	if got := string(body.Tools[0].InputSchema); !strings.Contains(got, `"additionalProperties":false`) || !strings.Contains(got, `"required":["path"]`) {
		t.Errorf("schema %s", got)
	}
	if n := strings.Count(string(sent), `"cache_control"`); n != 2 {
		t.Errorf("%d cache_control fields in %s", n, sent)
	}
}

func TestAnthropicCacheControl(t *testing.T) {
	srv := mocktest.Serve(t, mock.Script{Sessions: []mock.Session{{Turns: []mock.Turn{mocktest.Text("a")}}}})
	for _, cache := range []string{"off", "5m", "1h"} {
		resp, err := messagesClient(t, srv.URL, map[string]any{"cache": cache}).Chat(t.Context(), llms.Request{Messages: []llms.Message{{Role: "system", Content: "s"}, {Role: "user", Content: "u"}}})
		if err != nil {
			t.Fatal(err)
		}
		if marked := strings.Contains(string(resp.Request), "cache_control"); marked != (cache != "off") {
			t.Errorf("cache %s: sent %s", cache, resp.Request)
		}
		if cache == "1h" && !strings.Contains(string(resp.Request), `"ttl":"1h"`) {
			t.Errorf("sent %s", resp.Request)
		}
	}
}

// Conversations recorded with another provider can be continued: ids are converted to the
// form that the API accepts, in both calls and results.
func TestAnthropicForeignHistory(t *testing.T) {
	srv := mocktest.Serve(t, mock.Script{Sessions: []mock.Session{{Turns: []mock.Turn{{}, {Content: ptr("ok")}}}}})
	_, err := messagesClient(t, srv.URL, nil).Chat(t.Context(), llms.Request{Messages: []llms.Message{
		{Role: "user", Content: "go"},
		{Role: "assistant", ToolCalls: []schemas.ToolCall{{ID: "functions.view:0", Name: "view", Arguments: json.RawMessage(`{"path":"a"}`)}},
			Raw: json.RawMessage(`{"role":"assistant","content":null,"reasoning":"x","tool_calls":[{"id":"functions.view:0"}]}`)},
		{Role: "tool", ToolCallID: "functions.view:0", Content: "text"},
		{Role: "user", Content: "and now"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if sent := string(srv.Log()[0].Body); strings.Contains(sent, "functions.view:0") || strings.Contains(sent, "reasoning") {
		t.Errorf("sent %s", sent)
	}
}

// Arguments of a truncated reply are still a valid object, but the call must not be executed.
func TestAnthropicTruncatedCall(t *testing.T) {
	srv := mocktest.Serve(t, mock.Script{Sessions: []mock.Session{{Turns: []mock.Turn{
		{FinishReason: "max_tokens", ToolCalls: []mock.Call{{Name: "view", Arguments: map[string]any{"path": "a"}}, {Name: "edit"}}},
	}}}})
	resp, err := messagesClient(t, srv.URL, nil).Chat(t.Context(), llms.Request{Messages: []llms.Message{{Role: "user", Content: "go"}}})
	if err != nil || len(resp.Reply.Calls) != 2 || resp.Reply.Calls[0].Invalid != "" || !strings.Contains(resp.Reply.Calls[1].Invalid, "token limit") {
		t.Errorf("%v: %+v", err, resp.Reply.Calls)
	}
}

func TestAnthropicErrors(t *testing.T) {
	body := func(kind, message string) string {
		return `{"type":"error","error":{"type":"` + kind + `","message":"` + message + `"},"request_id":"r"}`
	}
	for name, c := range map[string]struct {
		fault mock.Fault
		class llms.Class
		wait  time.Duration
	}{
		"too long":    {mock.Fault{Status: 400, Body: body("invalid_request_error", "prompt is too long: 212345 tokens > 200000 maximum")}, llms.ClassContext, 0},
		"413":         {mock.Fault{Status: 413, Body: body("request_too_large", "Request exceeds the maximum size")}, llms.ClassContext, 0},
		"both limits": {mock.Fault{Status: 400, Body: body("invalid_request_error", "input length and `max_tokens` exceed context limit: 199000 + 16384 > 200000")}, llms.ClassContext, 0},
		"no credit":   {mock.Fault{Status: 400, Body: body("invalid_request_error", "Your credit balance is too low to access the Anthropic API.")}, llms.ClassQuota, 0},
		"bad key":     {mock.Fault{Status: 401, Body: body("authentication_error", "invalid x-api-key "+secret)}, llms.ClassAuth, 0},
		"forbidden":   {mock.Fault{Status: 403, Body: body("permission_error", "no access")}, llms.ClassAuth, 0},
		"no model":    {mock.Fault{Status: 404, Body: body("not_found_error", "model: m")}, llms.ClassNotFound, 0},
		"rate":        {mock.Fault{Status: 429, Headers: map[string]string{"Retry-After": "7"}, Body: body("rate_limit_error", "This request would exceed your organization's rate limit of 40,000 input tokens per minute")}, llms.ClassRateLimit, 7 * time.Second},
		"overloaded":  {mock.Fault{Status: 529, Body: body("overloaded_error", "Overloaded")}, llms.ClassOverload, 0},
		"500":         {mock.Fault{Status: 500, Body: body("api_error", "Internal server error")}, llms.ClassServer, 0},
		"error in ok": {mock.Fault{Body: body("overloaded_error", "Overloaded")}, llms.ClassOverload, 0},
		"bad request": {mock.Fault{Status: 400, Body: body("invalid_request_error", "tools.0.name: too long")}, llms.ClassBadRequest, 0},
		"html":        {mock.Fault{Body: "<html>hello", ContentType: "text/html"}, llms.ClassNotFound, 0},
		"cut":         {mock.Fault{Break: "cut"}, llms.ClassServer, 0},
		"truncated":   {mock.Fault{Break: "truncate"}, llms.ClassServer, 0},
		"reset":       {mock.Fault{Break: "reset"}, llms.ClassServer, 0},
	} {
		t.Run(name, func(t *testing.T) {
			srv := mocktest.Serve(t, mock.Script{Sessions: []mock.Session{{Turns: []mock.Turn{{Content: ptr("x"), Fault: &c.fault}}}}})
			_, err := messagesClient(t, srv.URL, nil).Chat(t.Context(), llms.Request{Messages: []llms.Message{{Role: "user", Content: "go"}}})
			e, ok := err.(*llms.Error)
			if !ok || e.Class != c.class || e.RetryAfter != c.wait || strings.Contains(e.Error(), secret) {
				t.Errorf("got %v (%T), want class %s", err, err, c.class)
			}
			if len(srv.Log()) != 1 {
				t.Errorf("%d requests, but the SDK must not retry", len(srv.Log()))
			}
		})
	}
}

func TestAnthropicCheck(t *testing.T) {
	srv := mocktest.Serve(t, mock.Script{Key: secret, Models: []string{"m"}})
	check := func(with map[string]any) error {
		return messagesClient(t, srv.URL, with).(llms.Checker).Check(t.Context())
	}
	if err := check(nil); err != nil {
		t.Error(err)
	}
	if err := check(map[string]any{"model": "other"}); llms.ClassOf(err) != llms.ClassNotFound {
		t.Errorf("unknown model: %v", err)
	}
	if err := check(map[string]any{"api_key": ""}); llms.ClassOf(err) != llms.ClassAuth {
		t.Errorf("no key: %v", err)
	}
	if err := check(map[string]any{"base_url": "http://127.0.0.1:1"}); llms.ClassOf(err) != llms.ClassUnreachable {
		t.Errorf("no server: %v", err)
	}
}

// The SDK's environment variables do not affect calls.
func TestAnthropicIgnoresSDKEnvironment(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "sk-from-the-environment")
	t.Setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
	var seen http.Header
	c, err := llms.Providers.Build("anthropic", map[string]any{"base_url": "http://host", "model": "m", "headers": map[string]any{"X-Team": "a"}}, llms.Deps{
		Getenv: getenv, Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			seen = r.Header.Clone()
			return nil, context.DeadlineExceeded
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Chat(t.Context(), llms.Request{Messages: []llms.Message{{Role: "user", Content: "go"}}, SessionID: "s"})
	if llms.ClassOf(err) != llms.ClassTimeout || seen.Get("X-Api-Key") != "" || seen.Get("X-Team") != "a" || seen.Get("Anthropic-Version") == "" || seen.Get("X-Session-Id") != "s" {
		t.Errorf("%v: %v", err, seen)
	}
}
