package probe_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/mock"
	"github.com/tracesmith/tracesmith/llms/probe"
	_ "github.com/tracesmith/tracesmith/llms/providers"
)

// personality serves a script, but for the requests that refuse says something
// about: these get that as a 400.
func personality(t *testing.T, s mock.Script, refuse func(body map[string]any) string) string {
	t.Helper()
	h := mock.NewHandler(s)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := map[string]any{}
		if r.Method == http.MethodPost {
			raw, err := io.ReadAll(r.Body)
			if err != nil || json.Unmarshal(raw, &body) != nil {
				t.Errorf("%v: %s", err, raw)
			}
			if why := refuse(body); why != "" {
				w.WriteHeader(http.StatusBadRequest)
				_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"type": "invalid_request_error", "message": why}})
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(raw))
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL + "/v1"
}

func script(turn mock.Turn) mock.Script {
	return mock.Script{Models: []string{"m", "other"}, Sessions: []mock.Session{{Turns: []mock.Turn{turn}, Repeat: true}}}
}

func target(provider, url, model string) probe.Target {
	return probe.Target{Provider: provider, BaseURL: url, Model: model, Clock: func() time.Time { return time.Unix(0, 0) },
		Build: func(with map[string]any) (llms.Client, error) {
			cfg := map[string]any{"base_url": url, "model": model}
			for k, v := range with {
				cfg[k] = v
			}
			return llms.Providers.Build(provider, cfg, llms.Deps{})
		}}
}

func verdicts(p probe.Profile, names ...string) map[string]string {
	out := map[string]string{}
	for _, n := range names {
		out[n] = p.Find(n).Verdict
	}
	return out
}

var twoCalls = mock.Turn{Reasoning: "hm", Usage: &mock.Usage{Prompt: 50, Completion: 5, Cached: 16}, ToolCalls: []mock.Call{
	{Name: "note", Arguments: map[string]any{"word": "one"}}, {Name: "note", Arguments: map[string]any{"word": "two"}}}}

func TestProbeOfAnEasyServer(t *testing.T) {
	url := personality(t, script(twoCalls), func(map[string]any) string { return "" })
	p, err := probe.Run(t.Context(), target("openai", url, "m"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"listed": "yes", "chat": "yes", "max_tokens": "yes", "temperature": "yes", "seed": "yes", "tools_auto": "yes", "tools_required": "yes",
		"tools_named": "yes", "parallel_calls": "yes", "round_trip": "yes", "reasoning": "yes", "usage": "yes", "cached_tokens": "yes", "token_ids": "no", "overflow": "no"}
	var names []string
	for n := range want {
		names = append(names, n)
	}
	if diff := cmp.Diff(want, verdicts(p, names...)); diff != "" {
		t.Error(diff)
	}
	if len(p.Settings) != 0 || p.Calls > 20 {
		t.Errorf("settings %v after %d calls", p.Settings, p.Calls)
	}
}

// A reasoning model behind a strict server: each refusal becomes a setting, and a
// run that would meet it is told.
func TestProbeOfAReasoningModel(t *testing.T) {
	url := personality(t, script(twoCalls), func(b map[string]any) string {
		limit, _ := b["max_completion_tokens"].(float64)
		switch {
		case b["max_tokens"] != nil:
			return "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
		case b["temperature"] != nil:
			return "Unsupported value: 'temperature' does not support 0 with this model."
		case b["tool_choice"] == "required":
			return "tool_choice required is not supported"
		case limit > 1e6:
			return "This model's maximum context length is 4096 tokens. However, you requested more."
		}
		messages, _ := b["messages"].([]any)
		for _, m := range messages {
			msg := m.(map[string]any)
			if msg["role"] == "assistant" && msg["reasoning_content"] == nil {
				return "reasoning_content is missing in an assistant message"
			}
		}
		return ""
	})
	p, err := probe.Run(t.Context(), target("openai", url, "m"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"max_tokens_field": "max_completion_tokens", "drop": []string{"temperature"}}, p.Settings); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"max_tokens": "refused", "temperature": "refused", "tools_required": "refused", "tools_auto": "yes",
		"round_trip": "yes", "reasoning_left_out": "refused", "overflow": "yes"},
		verdicts(p, "max_tokens", "temperature", "tools_required", "tools_auto", "round_trip", "reasoning_left_out", "overflow")); diff != "" {
		t.Error(diff)
	}
	if p.ContextLimit != 4096 {
		t.Errorf("context limit %d", p.ContextLimit)
	}

	dir := t.TempDir()
	if err := probe.Save(dir, p); err != nil {
		t.Fatal(err)
	}
	kept, ok := probe.Load(dir, "openai", url+"/", "m")
	if _, other := probe.Load(dir, "openai", url, "other"); !ok || other {
		t.Fatal("the profile is not found, or found for another model")
	}
	zero, limit := 0.0, 10
	for _, c := range []struct {
		s     llms.Sampling
		with  map[string]any
		tools bool
		want  string
	}{
		{llms.Sampling{Temperature: &zero}, nil, false, "with.drop: [temperature]"},
		{llms.Sampling{Temperature: &zero}, map[string]any{"drop": []any{"temperature"}}, true, ""},
		{llms.Sampling{MaxTokens: &limit}, nil, false, "max_completion_tokens"},
		{llms.Sampling{MaxTokens: &limit}, map[string]any{"max_tokens_field": "max_completion_tokens"}, true, ""},
		{llms.Sampling{ToolChoice: "required"}, nil, true, "tool_choice: auto"},
		{llms.Sampling{ToolChoice: "required"}, nil, false, ""},
		{llms.Sampling{}, map[string]any{"echo_reasoning": "never"}, true, "echo_reasoning: auto"},
		{llms.Sampling{}, nil, true, ""},
	} {
		got := kept.Contradiction(c.s, c.with, c.tools)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%+v %v: %q, want %q", c.s, c.with, got, c.want)
		}
	}
}

// A server of Mistral's kind, whose model writes calls as text.
func TestProbeOfAServerWithoutParser(t *testing.T) {
	url := personality(t, script(mock.Text(`<tool_call>{"name":"note"}</tool_call>`)), func(b map[string]any) string {
		messages, _ := b["messages"].([]any)
		for _, m := range messages {
			calls, _ := m.(map[string]any)["tool_calls"].([]any)
			for _, c := range calls {
				if id, _ := c.(map[string]any)["id"].(string); len(id) != 9 {
					return "Tool call id was " + id + " but must be a-z, A-Z, 0-9, with a length of 9."
				}
			}
		}
		return ""
	})
	p, err := probe.Run(t.Context(), target("openai", url, "m"))
	if err != nil {
		t.Fatal(err)
	}
	if f := p.Find("tools_auto"); f.Verdict != probe.No || !strings.Contains(f.Detail, "tool parser") {
		t.Errorf("%+v", f)
	}
	if diff := cmp.Diff(map[string]any{"call_ids": "nine"}, p.Settings); diff != "" {
		t.Error(diff)
	}
	if why := p.Contradiction(llms.Sampling{}, nil, true); !strings.Contains(why, "with.call_ids: nine") {
		t.Errorf("%q", why)
	}
}

func TestProbeOfTheMessagesAPI(t *testing.T) {
	url := personality(t, script(twoCalls), func(map[string]any) string { return "" })
	p, err := probe.Run(t.Context(), target("anthropic", url, "m"))
	if err != nil {
		t.Fatal(err)
	}
	if p.Find("tools_auto").Verdict != probe.Yes || p.Find("round_trip").Verdict != probe.Yes || p.Find("reasoning").Detail != "thinking" || len(p.Settings) != 0 {
		t.Errorf("%+v", p)
	}
}

func TestProbeEndsWhereNothingCanBeFoundOut(t *testing.T) {
	keyed := mock.Serve(t, mock.Script{Key: "k"})
	nobody := mock.Serve(t, mock.Script{Models: []string{"other"}, Sessions: []mock.Session{{Turns: []mock.Turn{
		{Fault: &mock.Fault{Status: 404, Body: `{"error":{"code":"model_not_found","message":"The model 'm' does not exist"}}`}}}}}})
	for class, url := range map[llms.Class]string{
		llms.ClassAuth: keyed.URL, llms.ClassUnreachable: "http://127.0.0.1:1/v1", llms.ClassNotFound: nobody.URL,
	} {
		if p, err := probe.Run(t.Context(), target("openai", url, "m")); llms.ClassOf(err) != class || p.Calls > 1 {
			t.Errorf("%v after %d calls, want %s", err, p.Calls, class)
		}
	}
	if probe.Dir(func(string) string { return "" }) != "" {
		t.Error("a cache without a home")
	}
}
