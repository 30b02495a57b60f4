package mock_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/tracesmith/tracesmith/internal/mocktest"
	"github.com/tracesmith/tracesmith/llms/mock"
)

// The official OpenAI client works with the server: it lists models, receives parallel
// tool calls, retries after a temporary error, and reports a permanent one.
func TestOfficialOpenAIClient(t *testing.T) {
	text := "Grüße, and more text"
	srv := mocktest.Serve(t, mock.Script{Key: "k", Models: []string{"m"}, Sessions: []mock.Session{{Model: "m", Turns: []mock.Turn{
		{Content: &text, ToolCalls: []mock.Call{
			{Name: "view", Arguments: map[string]any{"path": "a/long/path/of/a/file.py"}}, {Name: "grep", Arguments: map[string]any{"pattern": "ü"}},
		}, Usage: &mock.Usage{Prompt: 12, Completion: 5, Cached: 4}, Fault: &mock.Fault{Status: 503, Body: `{"error":{"message":"busy"}}`, Headers: map[string]string{"Retry-After-Ms": "1"}, Times: 1}},
		{Content: &text},
	}}}})
	c := openai.NewClient(option.WithBaseURL(srv.URL), option.WithAPIKey("k"))
	models, err := c.Models.List(t.Context())
	if err != nil || len(models.Data) != 1 || models.Data[0].ID != "m" {
		t.Fatalf("%v: %+v", err, models)
	}
	ask := openai.ChatCompletionNewParams{Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("go")}}
	whole, err := c.Chat.Completions.New(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	if len(whole.Choices) != 1 || whole.Usage.PromptTokens != 12 || whole.Usage.PromptTokensDetails.CachedTokens != 4 || whole.Choices[0].FinishReason != "tool_calls" {
		t.Fatalf("%+v", whole)
	}
	m := whole.Choices[0].Message
	if m.Content != text || len(m.ToolCalls) != 2 || m.ToolCalls[0].Function.Arguments != `{"path":"a/long/path/of/a/file.py"}` || m.ToolCalls[1].Function.Arguments != `{"pattern":"ü"}` {
		t.Errorf("%+v", m)
	}
	ask.Messages = append(ask.Messages, m.ToParam(), openai.ToolMessage("seen", m.ToolCalls[0].ID), openai.ToolMessage("found", m.ToolCalls[1].ID))
	if second, err := c.Chat.Completions.New(t.Context(), ask); err != nil || second.Choices[0].Message.Content != text {
		t.Errorf("%v: %+v", err, second)
	}
	ask.Messages = append(ask.Messages, openai.UserMessage("on"))
	if _, err := c.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{Model: "other", Messages: ask.Messages}); err == nil {
		t.Error("a model that is not in the script answered")
	}
	if got := srv.Totals(); got.Requests != 4 || got.Answered != 2 || got.Prompt != 12 || got.Completion != 5 || got.Faults["status 503"] != 1 || got.Faults["refused"] != 1 {
		t.Errorf("totals %+v", got)
	}
	srv.TakeProblems()
}

// The server refuses requests over its limits and says how long to wait.
func TestLimitsOfTheServer(t *testing.T) {
	srv := mocktest.Serve(t, mock.Script{Limits: mock.Limits{RPM: 3, TPM: 2000}, Sessions: []mock.Session{{Turns: []mock.Turn{mocktest.Text("a")}}}})
	post := func(maxTokens int) *http.Response {
		t.Helper()
		body, err := json.Marshal(map[string]any{"model": "m", "max_tokens": maxTokens, "messages": []any{map[string]any{"role": "user", "content": "go"}}})
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.Post(srv.URL+"/chat/completions", "application/json", strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp
	}
	if r := post(1500); r.StatusCode != 200 || r.Header.Get("X-Ratelimit-Remaining-Requests") != "2" {
		t.Errorf("%d %v", r.StatusCode, r.Header)
	}
	r := post(1500) // 2000 tokens a minute give the missing 1000 in half a minute
	wait, err := strconv.Atoi(r.Header.Get("Retry-After-Ms"))
	if r.StatusCode != 429 || err != nil || wait < 10_000 || wait > 60_000 {
		t.Errorf("over the token limit: %d %v", r.StatusCode, r.Header)
	}
	for range 2 {
		if r := post(1); r.StatusCode != 200 {
			t.Errorf("%d %v", r.StatusCode, r.Header)
		}
	}
	if r := post(1); r.StatusCode != 429 || r.Header.Get("X-Ratelimit-Limit-Requests") != "3" {
		t.Errorf("over the request limit: %d %v", r.StatusCode, r.Header)
	}
	if got := srv.Totals(); got.Faults["over a limit"] != 2 || got.Answered != 3 || got.Peak != 1 {
		t.Errorf("totals %+v", got)
	}
}
