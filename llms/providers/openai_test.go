package providers_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/internal/mocktest"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/mock"
	"github.com/tracesmith/tracesmith/llms/providers"
	"github.com/tracesmith/tracesmith/schemas"
)

const secret = "sk-very-secret-key"

func getenv(name string) string {
	if name == "TEST_KEY" {
		return secret
	}
	return ""
}

// client builds the provider through the registry, as a run does.
func client(t *testing.T, url string, with map[string]any) llms.Client {
	t.Helper()
	cfg := map[string]any{"base_url": url, "model": "m", "api_key": "env:TEST_KEY"}
	for k, v := range with {
		cfg[k] = v
	}
	c, err := llms.Providers.Build("openai", cfg, llms.Deps{Getenv: getenv})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func ask(t *testing.T, turn mock.Turn, history ...llms.Message) (llms.Response, *mocktest.Server) {
	t.Helper()
	before := 0
	for _, m := range history {
		if m.Role == "assistant" {
			before++
		}
	}
	turns := append(make([]mock.Turn, before), turn)
	srv := mocktest.Serve(t, mock.Script{Key: secret, Sessions: []mock.Session{{ID: "s1", Turns: turns}}})
	if len(history) == 0 {
		history = []llms.Message{{Role: "system", Content: "sys"}, {Role: "user", Content: "go"}}
	}
	resp, err := client(t, srv.URL, nil).Chat(t.Context(), llms.Request{Messages: history, SessionID: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	return resp, srv
}

func TestReply(t *testing.T) {
	resp, srv := ask(t, mock.Turn{
		Content: ptr("hello"), Reasoning: "because", ReasoningField: "reasoning", FinishReason: "stop",
		ToolCalls: []mock.Call{
			{ID: ptr("a"), Name: "view", Arguments: map[string]any{"path": "x.py"}},
			{ID: ptr("b"), Name: "eval"},
		},
		Usage: &mock.Usage{Prompt: 100, Completion: 7, Cached: 64, Reasoning: 3},
	})
	r := resp.Reply
	want := []schemas.ToolCall{
		{ID: "a", Name: "view", Arguments: json.RawMessage(`{"path":"x.py"}`)},
		{ID: "b", Name: "eval", Arguments: json.RawMessage(`{}`)},
	}
	if diff := cmp.Diff(want, r.Calls); diff != "" {
		t.Error(diff)
	}
	if r.Message != "hello" || r.Reasoning != "because" || r.FinishReason != "stop" || r.Model != "m" || r.LLMCalls != 1 || r.LLMMillis == nil {
		t.Errorf("reply %+v", r)
	}
	if diff := cmp.Diff(&schemas.Usage{Prompt: 100, Completion: 7, Cached: 64, Reasoning: 3}, r.Usage); diff != "" {
		t.Error(diff)
	}
	sent := srv.Log()[0].Body
	if string(sent) != string(resp.Request) {
		t.Errorf("recorded request\n%s\nrequest that the server got\n%s", resp.Request, sent)
	}
	for _, s := range []string{string(resp.Request), string(resp.Raw)} {
		if strings.Contains(s, secret) {
			t.Error("the recorded request contains the key")
		}
	}
}

func TestReplyVariants(t *testing.T) {
	cases := map[string]struct {
		turn    mock.Turn
		message string
		reason  string
		call    *schemas.ToolCall
		usage   bool
	}{
		"null content":   {turn: mock.Turn{}},
		"text parts":     {turn: mock.Turn{Content: ptr("in parts"), Parts: true}, message: "in parts"},
		"refusal":        {turn: mock.Turn{Message: map[string]any{"refusal": "no"}}, message: "no"},
		"old field name": {turn: mock.Turn{Content: ptr("x"), Reasoning: "r"}, message: "x", reason: "r"},
		"details": {turn: mock.Turn{Content: ptr("x"), Message: map[string]any{
			"reasoning_details": []any{map[string]any{"type": "reasoning.text", "text": "d"}}}}, message: "x", reason: "d"},
		"truncated arguments": {
			turn: mock.Turn{ToolCalls: []mock.Call{{ID: ptr("i"), Name: "view", Raw: ptr(`{"path": "x`)}}},
			call: &schemas.ToolCall{ID: "i", Name: "view", Arguments: json.RawMessage(`{}`), Raw: `{"path": "x`, Invalid: "arguments are not valid JSON: unexpected EOF"},
		},
		"cut by the token limit": {
			turn: mock.Turn{FinishReason: "length", ToolCalls: []mock.Call{{ID: ptr("i"), Name: "view", Raw: ptr(`{"path": "x`)}}},
			call: &schemas.ToolCall{ID: "i", Name: "view", Arguments: json.RawMessage(`{}`), Raw: `{"path": "x`, Truncated: true,
				Invalid: "the reply hit the token limit and the call was cut off; send a shorter one"},
		},
		"list as arguments": {
			turn: mock.Turn{ToolCalls: []mock.Call{{ID: ptr("i"), Name: "view", Raw: ptr(`[1]`)}}},
			call: &schemas.ToolCall{ID: "i", Name: "view", Arguments: json.RawMessage(`{}`), Raw: `[1]`, Invalid: "arguments must be a JSON object"},
		},
		"two values": {
			turn: mock.Turn{ToolCalls: []mock.Call{{ID: ptr("i"), Name: "view", Raw: ptr(`{}{}`)}}},
			call: &schemas.ToolCall{ID: "i", Name: "view", Arguments: json.RawMessage(`{}`), Raw: `{}{}`, Invalid: "arguments hold more than one JSON value"},
		},
		"encoded twice": {
			turn: mock.Turn{ToolCalls: []mock.Call{{ID: ptr("i"), Name: "view", Raw: ptr(`"{\"path\": \"x\"}"`)}}},
			call: &schemas.ToolCall{ID: "i", Name: "view", Arguments: json.RawMessage(`{"path":"x"}`), Raw: `"{\"path\": \"x\"}"`, Repaired: true},
		},
		"object instead of string": {
			turn: mock.Turn{ToolCalls: []mock.Call{{ID: ptr("i"), Name: "view", Object: map[string]any{"path": "x", "a": 1}}}},
			call: &schemas.ToolCall{ID: "i", Name: "view", Arguments: json.RawMessage(`{"a":1,"path":"x"}`)},
		},
		"own spelling kept": {
			turn: mock.Turn{ToolCalls: []mock.Call{{ID: ptr("i"), Name: "view", Raw: ptr(`{ "n": 1.50, "path":"x"}`)}}},
			call: &schemas.ToolCall{ID: "i", Name: "view", Arguments: json.RawMessage(`{"n":1.50,"path":"x"}`), Raw: `{ "n": 1.50, "path":"x"}`},
		},
		"empty arguments": {
			turn: mock.Turn{ToolCalls: []mock.Call{{ID: ptr("i"), Name: "eval", Raw: ptr("")}}},
			call: &schemas.ToolCall{ID: "i", Name: "eval", Arguments: json.RawMessage(`{}`), Repaired: true},
		},
		"missing id": {
			turn: mock.Turn{ToolCalls: []mock.Call{{ID: ptr(""), Name: "eval"}}},
			call: &schemas.ToolCall{ID: "call_0_0", Name: "eval", Arguments: json.RawMessage(`{}`)},
		},
		"usage": {turn: mock.Turn{Usage: &mock.Usage{Prompt: 1}}, usage: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			resp, _ := ask(t, c.turn)
			r := resp.Reply
			if r.Message != c.message || r.Reasoning != c.reason || (r.Usage != nil) != c.usage {
				t.Errorf("message %q, reasoning %q, usage %v", r.Message, r.Reasoning, r.Usage)
			}
			var got *schemas.ToolCall
			if len(r.Calls) > 0 {
				got = &r.Calls[0]
			}
			if diff := cmp.Diff(c.call, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDuplicateIDsAreReplaced(t *testing.T) {
	old := schemas.ToolCall{ID: "x", Name: "eval", Arguments: json.RawMessage(`{}`)}
	resp, _ := ask(t, mock.Turn{ToolCalls: []mock.Call{
		{ID: ptr("x"), Name: "eval"}, {ID: ptr("y"), Name: "eval"}, {ID: ptr("y"), Name: "eval"},
	}},
		llms.Message{Role: "user", Content: "go"},
		llms.Message{Role: "assistant", ToolCalls: []schemas.ToolCall{old}},
		llms.Message{Role: "tool", ToolCallID: "x", Content: "ok"})
	var ids []string
	for _, c := range resp.Reply.Calls {
		ids = append(ids, c.ID)
	}
	if diff := cmp.Diff([]string{"call_1_0", "y", "call_1_2"}, ids); diff != "" {
		t.Error(diff)
	}
}

// Fields that a server adds to its messages are sent back, and settings that the SDK has no
// field for are sent.
func TestRequestAsSent(t *testing.T) {
	srv := mocktest.Serve(t, mock.Script{Sessions: []mock.Session{{ID: "s1", Turns: []mock.Turn{
		{Reasoning: "hm", ReasoningField: "reasoning", Message: map[string]any{"vendor": map[string]any{"n": 1}},
			ToolCalls: []mock.Call{
				{ID: ptr("a"), Name: "view", Raw: ptr(`{"path" :"x"}`),
					Extra: map[string]any{"extra_content": map[string]any{"google": map[string]any{"thought_signature": "sig=="}}}},
				{ID: ptr("b"), Name: "view", Raw: ptr(`{"path`)},
			}},
		mocktest.Text("done"),
	}}}})
	c := client(t, srv.URL, map[string]any{"headers": map[string]string{"X-Team": "blue"}})
	zero, maxTokens := 0.0, 50
	req := llms.Request{
		SessionID: "s1",
		Messages:  []llms.Message{{Role: "system", Content: "sys <b>"}, {Role: "user", Content: "go"}},
		Tools:     []schemas.ToolSchema{{Name: "view", Description: "d", Parameters: json.RawMessage(`{"type":"object"}`)}},
		Sampling:  llms.Sampling{Temperature: &zero, MaxTokens: &maxTokens, ToolChoice: "auto", Extra: map[string]any{"top_k": 5}},
	}
	first, err := c.Chat(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	req.Messages = append(req.Messages,
		llms.Message{Role: "assistant", Content: first.Reply.Message, ToolCalls: first.Reply.Calls, Raw: first.Reply.Extra},
		llms.Message{Role: "tool", ToolCallID: "a", Content: "text"},
		llms.Message{Role: "tool", ToolCallID: "b", Content: ""})
	if _, err := c.Chat(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(srv.Log()[1].Body, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"model": "m", "temperature": 0.0, "max_tokens": 50.0, "tool_choice": "auto", "top_k": 5.0,
		"tools": []any{map[string]any{"type": "function", "function": map[string]any{
			"name": "view", "description": "d", "parameters": map[string]any{"type": "object"}}}},
		"messages": []any{
			map[string]any{"role": "system", "content": "sys <b>"},
			map[string]any{"role": "user", "content": "go"},
			map[string]any{"role": "assistant", "content": nil, "reasoning": "hm", "vendor": map[string]any{"n": 1.0},
				"tool_calls": []any{
					map[string]any{"id": "a", "type": "function", "function": map[string]any{"name": "view", "arguments": `{"path" :"x"}`},
						"extra_content": map[string]any{"google": map[string]any{"thought_signature": "sig=="}}},
					map[string]any{"id": "b", "type": "function", "function": map[string]any{"name": "view", "arguments": `{}`}},
				}},
			map[string]any{"role": "tool", "tool_call_id": "a", "content": "text"},
			map[string]any{"role": "tool", "tool_call_id": "b", "content": ""},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSettings(t *testing.T) {
	base := map[string]any{"base_url": "http://127.0.0.1:1/v1", "model": "m"}
	for want, change := range map[string]map[string]any{
		"base_url must be a full":   {"base_url": "localhost:8000"},
		"must not hold credentials": {"base_url": "http://u:p@h/v1"},
		"model is missing":          {"model": ""},
		"keys do not belong":        {"api_key": "sk-literal"},
		"variable NOPE is not set":  {"api_key": "env:NOPE"},
		"timeout is":                {"timeout": "soon"},
		"max_tokens_field is":       {"max_tokens_field": "x"},
		"unknown field":             {"colour": "red"},
	} {
		cfg := map[string]any{}
		for k, v := range base {
			cfg[k] = v
		}
		for k, v := range change {
			cfg[k] = v
		}
		_, err := llms.Providers.Build("openai", cfg, llms.Deps{Getenv: getenv})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %q", change, err, want)
		}
	}
}

func FuzzReply(f *testing.F) {
	for _, s := range []string{
		`{"choices":[{"message":{"content":"x","tool_calls":[{"id":1,"function":{"name":"a","arguments":"{"}}]}}]}`,
		`{"choices":[{"message":{"content":[{"type":"text"}],"reasoning":[{}]}}],"usage":{"prompt_tokens":-1e99}}`,
		`[{"error":{"code":429,"status":"x"}}]`, `{"error":"x"}`, `<`, `{"detail":[[]]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		transport := roundTripper(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: &reader{Reader: strings.NewReader(string(body))}}, nil
		})
		c, err := providers.NewOpenAI(providers.OpenAIConfig{Endpoint: providers.Endpoint{BaseURL: "http://x", Model: "m", Timeout: "1m"}, Dialect: providers.DefaultDialect()}, llms.Deps{Transport: transport})
		if err != nil {
			t.Fatal(err)
		}
		req := llms.Request{Messages: []llms.Message{{Role: "user", Content: "go"}}}
		resp, err := c.Chat(t.Context(), req)
		if err != nil {
			if llms.ClassOf(err) == "" {
				t.Fatalf("unclassified error %v", err)
			}
			return
		}
		for _, call := range resp.Reply.Calls {
			if !json.Valid(call.Arguments) || call.ID == "" {
				t.Fatalf("invalid call %+v", call)
			}
		}
		// It must be possible to send the reply back.
		req.Messages = append(req.Messages, llms.Message{Role: "assistant", Content: resp.Reply.Message, ToolCalls: resp.Reply.Calls, Raw: resp.Reply.Extra})
		if resp, _ := c.Chat(t.Context(), req); !json.Valid(resp.Request) {
			t.Fatalf("the request is not JSON: %q", resp.Request)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}
func (endless) Close() error { return nil }

type reader struct{ *strings.Reader }

func (*reader) Close() error { return nil }

func ptr[T any](v T) *T { return &v }
