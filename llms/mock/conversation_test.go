package mock_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/internal/mocktest"
	"github.com/tracesmith/tracesmith/llms/mock"
)

const script = `
key: k
sessions:
  - session: s1
    turns:
      - {content: one, tool_calls: [{id: a, name: view, arguments: {path: x.py}}, {name: eval, raw: "{"}]}
      - {content: two, fault: {status: 429, body: slow, headers: {Retry-After: "3"}, times: 2}}
  - model: m2
    repeat: true
    turns: [{content: again, usage: {prompt: 3, completion: 1}}]
`

func serve(t *testing.T) *mocktest.Server {
	t.Helper()
	s, err := mock.Parse([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	return mocktest.Serve(t, s)
}

func post(t *testing.T, srv *mocktest.Server, session, model string, messages ...string) (int, string) {
	t.Helper()
	body := fmt.Sprintf(`{"model":%q,"messages":[%s]}`, model, strings.Join(messages, ","))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer k")
	req.Header.Set("X-Session-ID", session)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}

const (
	system    = `{"role":"system","content":"s"}`
	user      = `{"role":"user","content":"u"}`
	assistant = `{"role":"assistant","content":"one","tool_calls":[{"id":"a","type":"function","function":{"name":"view","arguments":"{}"}}]}`
	tool      = `{"role":"tool","tool_call_id":"a","content":"x"}`
)

func TestScriptedConversation(t *testing.T) {
	srv := serve(t)
	status, body := post(t, srv, "s1", "m", system, user)
	var answer struct {
		Choices []struct {
			FinishReason string `json:"finish_reason"`
			Message      struct {
				Content   string
				ToolCalls []struct {
					ID       string
					Function struct{ Arguments string }
				} `json:"tool_calls"`
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || status != 200 {
		t.Fatal(status, err)
	}
	m := answer.Choices[0].Message
	if m.Content != "one" || m.ToolCalls[0].Function.Arguments != `{"path":"x.py"}` || m.ToolCalls[1].Function.Arguments != "{" || m.ToolCalls[1].ID != "script_0_1" || answer.Choices[0].FinishReason != "tool_calls" {
		t.Errorf("%s", body)
	}
	for _, want := range []int{429, 429, 200} {
		if status, _ := post(t, srv, "s1", "m", system, user, assistant, tool); status != want {
			t.Errorf("status %d, want %d", status, want)
		}
	}
	for range 2 { // two conversations without a session id
		if status, body := post(t, srv, "", "m2", user); status != 200 || !strings.Contains(body, `"prompt_tokens":3`) {
			t.Errorf("%d %s", status, body)
		}
	}
	log := srv.Log()
	if len(log) != 6 || log[1].Fault != "status 429" || log[3].Fault != "" || log[3].Turn != 1 || log[4].Session != 1 {
		t.Errorf("log %+v", log)
	}
}

func TestProblemsAreReported(t *testing.T) {
	cases := map[string]struct {
		messages []string
		problem  string
	}{
		"unanswered call":   {[]string{system, user, assistant}, "have no answer"},
		"answered later":    {[]string{system, user, assistant, user, tool}, "have no answer"},
		"answered twice":    {[]string{system, user, assistant, tool, tool}, "not open"},
		"system in between": {[]string{user, system}, "not the first"},
		"empty assistant":   {[]string{user, `{"role":"assistant","content":null}`, user}, "neither content nor tool calls"},
		"bad arguments":     {[]string{user, strings.Replace(assistant, `"{}"`, `"{"`, 1), tool}, "not well formed"},
		"unknown role":      {[]string{`{"role":"x"}`}, "unknown role"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			srv := serve(t)
			post(t, srv, "", "m2", c.messages...)
			if p := strings.Join(srv.TakeProblems(), "\n"); !strings.Contains(p, c.problem) {
				t.Errorf("problems %q", p)
			}
		})
	}
	follow := map[string]struct {
		messages []string
		problem  string
	}{
		"asked again":      {[]string{system, user}, "asked for again"},
		"rewritten prefix": {[]string{strings.Replace(system, `"s"`, `"changed"`, 1), user, assistant, tool}, "was rewritten"},
		"surplus turn":     {[]string{system, user, assistant, tool, assistant, tool}, "has 2 turns, but turn 2"},
	}
	for name, c := range follow {
		t.Run(name, func(t *testing.T) {
			srv := serve(t)
			post(t, srv, "s1", "m", system, user)
			post(t, srv, "s1", "m", c.messages...)
			if p := strings.Join(srv.TakeProblems(), "\n"); !strings.Contains(p, c.problem) {
				t.Errorf("problems %q", p)
			}
		})
	}
	srv := serve(t)
	if status, _ := post(t, srv, "unknown", "m", user); status != 400 || len(srv.TakeProblems()) != 1 {
		t.Errorf("unmatched request: status %d", status)
	}
}

func TestParseIsStrict(t *testing.T) {
	for _, bad := range []string{"sesions: []", "sessions: [{turns: [{fault: {break: bend}}]}]", "sessions: [{turns: [{tool_calls: [{}]}]}]", "a: ["} {
		if _, err := mock.Parse([]byte(bad)); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
	s, err := mock.Parse([]byte("sessions: [{turns: [{fault: {delay: 2s, break: stall, times: 1}}]}]"))
	if err != nil || s.Sessions[0].Turns[0].Fault.Delay.Seconds() != 2 {
		t.Error(s, err)
	}
}
