package mock_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/internal/mocktest"
	"github.com/tracesmith/tracesmith/llms/mock"
)

// start serves a script. The test fails for each problem that the server finds, except those that
// it takes with TakeProblems.
func start(t *testing.T, text string) *mocktest.Server {
	t.Helper()
	s, err := mock.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return mocktest.Serve(t, s)
}

// call sends one request and returns the status and body of the answer.
func call(t *testing.T, url, session, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if session != "" {
		req.Header.Set("X-Session-ID", session)
	}
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

// The server finds a session by header, by the suffix of the model after the last @, or by a
// tag in the system prompt, in any order of requests.
func TestSessionsByHeaderSuffixAndTag(t *testing.T) {
	srv := start(t, `
sessions:
  - {session: s1, turns: [{content: one}]}
  - {session: s2, model: m, turns: [{content: two}]}
  - {tag: "[three]", turns: [{content: three}]}
`)
	for _, c := range []struct{ header, model, system, want string }{
		{"", "m@x", "has [three] in it", "three"}, {"", "m@s2", "", "two"}, {"s1", "m@s2", "", "one"}, {"", "other@s1", "", "one"},
	} {
		body := `{"model":"` + c.model + `","messages":[{"role":"system","content":"` + c.system + `"},{"role":"user","content":"u"}]}`
		if status, got := call(t, srv.URL+"/chat/completions", c.header, body); status != 200 || !strings.Contains(got, `"content":"`+c.want+`"`) {
			t.Errorf("%+v: %d %s", c, status, got)
		}
	}
	srv.TakeProblems() // s1 was requested twice
	status, got := call(t, srv.URL+"/chat/completions", "s9", `{"model":"n","messages":[{"role":"system","content":"plain"},{"role":"user","content":"u"}]}`)
	for _, want := range []string{`- session: \"s1\"`, `+ session: \"s9\"`, `- model: \"m\"`, `+ system: \"plain\"`} {
		if status != 400 || !strings.Contains(got, want) {
			t.Errorf("%d, no %s in %s", status, want, got)
		}
	}
	status, got = call(t, srv.URL+"/chat/completions", "s2", `{"model":"m","messages":[{"role":"user","content":"u"},{"role":"assistant","content":"two"},{"role":"user","content":"and now?"}]}`)
	if status != 400 || !strings.Contains(got, `- the end (turns: 1)\n  + user: and now?`) || len(srv.TakeProblems()) < 2 {
		t.Errorf("%d %s", status, got)
	}
}

func TestTemplatesUseTheRequest(t *testing.T) {
	srv := start(t, `
sessions:
  - session: s
    template: true
    turns:
      - tool_calls: [{name: 'p{{capture "line (\\d+)" .Last}}', id: "{{.Session}}-{{.Turn}}", arguments: {list: ["{{.User}}"], n: 3}}, {name: eval, raw: '{"line": {{capture "line (\\d+)" .Last}}}'}]
      - {content: 'saw {{(index .Messages 3).ID}} {{line -1 .Last}} {{quote .System}} {{if has "Err" .Last}}bad{{else}}good{{end}}'}
      - {content: '{{capture "nowhere" .Last}}'}
`)
	first := `{"role":"system","content":"a\"b"},{"role":"user","content":[{"type":"text","text":"stop at line 42"}]}`
	_, got := call(t, srv.URL+"/chat/completions", "s", `{"model":"m","messages":[`+first+`]}`)
	for _, want := range []string{`"name":"p42"`, `"id":"s-0"`, `{\"list\":[\"stop at line 42\"],\"n\":3}`, `{\"line\": 42}`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	second := first + `,{"role":"assistant","tool_calls":[{"id":"s-0","type":"function","function":{"name":"p42","arguments":"{}"}}]},{"role":"tool","tool_call_id":"s-0","content":"x\nKeyError"}`
	_, got = call(t, srv.URL+"/chat/completions", "s", `{"model":"m","messages":[`+second+`]}`)
	if !strings.Contains(got, `saw s-0 KeyError \"a\\\"b\" bad`) {
		t.Errorf("%s", got)
	}
	status, got := call(t, srv.URL+"/chat/completions", "s", `{"model":"m","messages":[`+second+`,{"role":"assistant","content":"z"},{"role":"user","content":"u"}]}`)
	if p := srv.TakeProblems(); status != 400 || !strings.Contains(got, "does not match") || len(p) != 1 {
		t.Errorf("%d %s %q", status, got, p)
	}
}

// Tool calls have many unusual forms, in both APIs.
func TestKindsOfToolCalls(t *testing.T) {
	srv := start(t, `
sessions:
  - session: s
    repeat: true
    turns:
      - tool_calls:
          - {name: a, id: same}
          - {name: b, id: same}
          - {name: missing_id, id: ""}
          - {name: invalid, raw: '{"x'}
          - {name: double, as: double, arguments: {x: 1}}
          - {name: huge, size: 1048576}
          - {name: leaked, as: text, arguments: {x: 1}}
          - {name: object, object: {y: 2}}
`)
	_, chat := call(t, srv.URL+"/chat/completions", "s", `{"model":"m","messages":[{"role":"user","content":"u"}]}`)
	_, messages := call(t, srv.URL+"/messages", "s", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"u"}]}]}`)
	srv.TakeProblems()
	for got, wants := range map[string][]string{
		chat: {`"id":"same","type"`, `{"function":{"arguments":"{}","name":"missing_id"},"type":"function"}`, `"arguments":"{\"x"`, `"arguments":"\"{\\\"x\\\":1}\""`,
			`"content":"\u003ctool_call\u003e\n{\"arguments\":{\"x\":1},\"name\":\"leaked\"}\n\u003c/tool_call\u003e"`, `"arguments":{"y":2}`},
		messages: {`{"input":{},"name":"missing_id","type":"tool_use"}`, `"input":"{\"x"`, `"input":"{\"x\":1}"`, `tool_call`, `"input":{"y":2}`},
	} {
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("no %s in %.3000s", want, got)
			}
		}
		if strings.Count(got, `"id":"same"`) != 2 || len(got) < 1<<20 || len(got) > 1<<20+4096 {
			t.Errorf("%d bytes", len(got))
		}
	}
}

func TestExpectations(t *testing.T) {
	srv := start(t, `
expect: {absent: [seed]}
sessions:
  - session: s
    expect: {tools: [view], present: [max_tokens], params: {temperature: 0.5}, cache: [system, message -1], echo: true}
    turns:
      - {reasoning: because, content: a, tool_calls: [{id: c, name: view, extra: {signature: sig}}], expect: {last: "^go$", system: scene, messages: 2}}
      - {content: b}
`)
	mark := `"cache_control":{"type":"ephemeral"}`
	tools := `"tools":[{"type":"function","function":{"name":"view","parameters":{"type":"object","properties":{}}}}]`
	one := `{"role":"system","content":[{"type":"text","text":"scene"}]},{"role":"user","content":[{"type":"text","text":"go",` + mark + `}]}`
	call(t, srv.URL+"/chat/completions", "s", `{"model":"m","max_tokens":4,"temperature":0.5,`+tools+`,"system":[{`+mark+`}],"messages":[`+one+`]}`)
	if p := srv.TakeProblems(); len(p) != 0 {
		t.Errorf("problems with a request as expected: %q", p)
	}
	srv.Reset()
	call(t, srv.URL+"/chat/completions", "s", `{"model":"m","temperature":1,"seed":1,"messages":[{"role":"user","content":"went"}]}`)
	all := strings.Join(srv.TakeProblems(), "\n")
	for _, want := range []string{
		"no parameter seed, got 1", `the tools ["view"], got []`, "parameter max_tokens, which is missing", "temperature to be 0.5, got 1",
		`cache_control at ["system" "message 0"], got it at []`, `the last message to match "^go$", got "went"`, `the system prompt to match "scene"`, "2 messages, got 1",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
	echo := func(fields string) string {
		srv.Reset()
		start := `{"model":"m","max_tokens":4,"temperature":0.5,` + tools + `,"system":[{` + mark + `}],"messages":[` + one
		call(t, srv.URL+"/chat/completions", "s", start+`]}`)
		call(t, srv.URL+"/chat/completions", "s", start+`,{"role":"assistant","content":"a","tool_calls":[{"id":"c","type":"function","function":{"name":"view","arguments":"{}"}`+fields+`},{"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"x",`+mark+`}]}]}`)
		return strings.Join(srv.TakeProblems(), "\n")
	}
	if p := echo(`,"signature":"sig"}],"reasoning_content":"because"`); !strings.Contains(p, `cache_control at ["system" "message 3"], got it at ["system" "message 1" "message 3"]`) || strings.Contains(p, "unchanged") {
		t.Errorf("%s", p)
	}
	if p := echo(`,"signature":"sig"}]`); !strings.Contains(p, `previous answer unchanged: reasoning_content was "because" and is null`) {
		t.Errorf("%s", p)
	}
	if p := echo(`},null],"reasoning_content":"because"`); !strings.Contains(p, `previous answer unchanged: tool_calls was`) {
		t.Errorf("a call that is not an object: %s", p)
	}
	if p := echo(`}],"reasoning_content":"because"`); !strings.Contains(p, `previous answer unchanged: tool_calls was`) {
		t.Errorf("%s", p)
	}
}

func TestToolDefinitionsAreChecked(t *testing.T) {
	srv := start(t, `sessions: [{repeat: true, turns: [{content: a}]}]`)
	for tools, want := range map[string]string{
		`[]`:                "must be absent or a non-empty list",
		`[{"name":"view"}]`: "not in the form of this API",
		`[{"type":"function","function":{"name":"a b"}}]`:                                                               "invalid or used twice",
		`[{"type":"function","function":{"name":"a"}},{"type":"function","function":{"name":"a"}}]`:                     "used twice",
		`[{"type":"function","function":{"name":"a","parameters":{"type":"array"}}}]`:                                   "does not describe an object",
		`[{"type":"function","function":{"name":"a","parameters":{"type":"object","properties":{},"required":["x"]}}}]`: `"x" is required but is not a property`,
	} {
		call(t, srv.URL+"/chat/completions", "", `{"model":"m","tools":`+tools+`,"messages":[{"role":"user","content":"u"}]}`)
		if p := strings.Join(srv.TakeProblems(), "\n"); !strings.Contains(p, want) {
			t.Errorf("%s: problems %q", tools, p)
		}
	}
}

// If a client shortens its history, the server finds the next turn by the number of answers
// that it gave.
func TestSessionsWithRewrittenHistory(t *testing.T) {
	srv := start(t, `sessions: [{session: s, rewrites: true, turns: [{content: one}, {content: two, fault: {kind: overloaded, times: 1}}, {content: three}]}]`)
	var got []string
	for _, text := range []string{"a", "b", "b", "c"} {
		status, body := call(t, srv.URL+"/chat/completions", "s", `{"model":"m","messages":[{"role":"user","content":"`+text+`"}]}`)
		var answer struct {
			Choices []struct{ Message struct{ Content string } }
		}
		if json.Unmarshal([]byte(body), &answer); status == 200 {
			got = append(got, answer.Choices[0].Message.Content)
		}
	}
	if strings.Join(got, " ") != "one two three" {
		t.Errorf("%q", got)
	}
}

// The totals cover scripted and computed usage, usage that is not reported, lost answers,
// sessions and models.
func TestTotals(t *testing.T) {
	srv := start(t, `
tokenizer: toy
sessions:
  - session: given
    turns: [{content: a, usage: {prompt: 100, completion: 9, cached: 60, cache_write: 5, reasoning: 3, audio: 2, cost: 0.5}, faults: [{kind: cut, times: 1}, {kind: rate_limit_bare, times: 1}]}]
  - {session: "null", turns: [{content: a, usage: {prompt: 7}, usage_as: "null"}]}
  - {session: absent, turns: [{content: a, usage: {prompt: 7}, usage_as: absent}]}
  - {session: counted, turns: [{content: "two words", reasoning: why}, {content: done}]}
`)
	ask := `{"model":"m","messages":[{"role":"user","content":"go"}]}`
	if _, err := http.Post(srv.URL+"/chat/completions", "", strings.NewReader(`{`)); err != nil {
		t.Fatal(err)
	}
	cut, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/chat/completions", strings.NewReader(ask))
	cut.Header.Set("X-Session-ID", "given")
	resp, err := http.DefaultClient.Do(cut)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(resp.Body); err == nil {
		t.Error("the client read a truncated answer to its end")
	}
	_ = resp.Body.Close()
	answers := map[string]string{}
	for _, session := range []string{"given", "given", "null", "absent", "counted"} {
		_, answers[session] = call(t, srv.URL+"/chat/completions", session, ask)
	}
	_, answers["grown"] = call(t, srv.URL+"/chat/completions", "counted", `{"model":"m","messages":[{"role":"user","content":"go"},{"role":"assistant","content":"two words"},{"role":"user","content":"on"}]}`)
	for session, want := range map[string]string{
		"given": `"cost":0.5,"prompt_tokens":100,"prompt_tokens_details":{"audio_tokens":2,"cache_write_tokens":5,"cached_tokens":60},"total_tokens":109`, "null": `"usage":null`,
		"counted": `"completion_tokens":4,"completion_tokens_details":{"reasoning_tokens":1},"prompt_tokens":4,`, "grown": `"cached_tokens":4`,
	} {
		if !strings.Contains(answers[session], want) {
			t.Errorf("%s: no %s in %s", session, want, answers[session])
		}
	}
	if strings.Contains(answers["absent"], "usage") {
		t.Errorf("%s", answers["absent"])
	}
	got := srv.Totals()
	if got.Requests != 7 || got.Answered != 5 || got.Retried != 2 || got.Lost.Prompt != 100 || got.Prompt != 100+7+7+4+14 || got.Cost != 0.5 {
		t.Errorf("totals %+v", got)
	}
	if s := got.BySession["given"]; s.Requests != 3 || s.Answered != 1 || s.Prompt != 100 || got.ByModel["m"].Requests != 7 {
		t.Errorf("by session %+v", got.BySession)
	}
}

func TestOtherEndpoints(t *testing.T) {
	srv := start(t, "key: k\ncontext: 20\ntokenizer: toy\nsessions: [{model: m, turns: [{content: a}]}]")
	root := strings.TrimSuffix(srv.URL, "/v1")
	get := func(path, key string) (int, string) {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, root+path, nil)
		req.Header.Set("Authorization", "Bearer "+key)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		raw, _ := io.ReadAll(resp.Body)
		if kind := resp.Header.Get("Content-Type"); kind != "application/json" {
			t.Errorf("%s: %s", path, kind)
		}
		return resp.StatusCode, string(raw)
	}
	for _, c := range []struct {
		path, key string
		status    int
		want      string
	}{
		{"/health", "", 200, "ok"}, {"/__totals", "", 200, "requests"}, {"/v1/models", "", 401, "invalid_api_key"}, {"/v1/models", "k", 200, `"max_model_len":20`},
		{"/v1/models/m", "k", 200, `"m"`}, {"/v1/models/x", "k", 404, "error"}, {"/v1/other", "k", 404, `"message":"no such endpoint: GET /v1/other"`},
		{"/v1/responses/1", "k", 404, "the Responses API is not supported"}, {"/__x", "", 404, "__log"},
	} {
		if status, body := get(c.path, c.key); status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s: %d %s", c.path, status, body)
		}
	}
	if got := srv.TakeProblems(); !slices.Equal(got, []string{"no such endpoint: GET /v1/other"}) {
		t.Errorf("problems: %q", got)
	}
	postJSON := func(path, body string) (int, string) {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, root+path, strings.NewReader(body))
		req.Header.Set("X-Api-Key", "k")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		raw, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(raw)
	}
	if _, got := postJSON("/tokenize", `{"prompt":"hello world!"}`); got != `{"count":5,"max_model_len":20,"tokens":[0,1,2,3,4]}` {
		t.Errorf("%s", got)
	}
	if _, got := postJSON("/tokenize", `{"messages":[{"role":"user","content":"hello"}]}`); !strings.Contains(got, `"count":5`) {
		t.Errorf("%s", got)
	}
	if status, got := postJSON("/v1/responses", `{"model":"m","input":"go"}`); status != 404 || !strings.Contains(got, "the Responses API is not supported: use /v1/chat/completions or /v1/messages") {
		t.Errorf("%d %s", status, got)
	}
	if status, got := postJSON("/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"`+strings.Repeat("long ", 30)+`"}]}`); status != 400 || !strings.Contains(got, "context_length_exceeded") {
		t.Errorf("%d %s", status, got)
	}
}

// The error for a bad script is one line that names the line of the script.
func TestBadScriptsNameTheirLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "it is empty",
		"a: [":                              "line 1: ",
		"\nsesions: []":                     `line 2: unknown field "sesions": did you mean "sessions"?`,
		"sessions:\n  - turns:\n    - x: 1": `line 3: unknown field "x": known are content, `,
		"sessions:\n  - turns: 7":           `line 2: expected a list, got "7"`,
		"sessions:\n  - turns:\n    - fault: {delay: soon}":                        `line 3: expected a duration such as 500ms, got "soon"`,
		"faults:\n  - kind: cut\n  - kind: cutt":                                   `line 3: unknown kind of fault "cutt"`,
		"sessions:\n  - turns:\n    - content: a\n    - fault: {break: bend}":      `line 4: unknown break "bend"`,
		"sessions:\n  - turns:\n    - tool_calls:\n      - name: a\n      - id: b": "line 5: a tool call has no name",
		"sessions:\n  - turns:\n    - {content: '{{nope}}', template: true}":       "line 3: template: ",
		"sessions:\n  - turns:\n    - {usage_as: half}":                            "line 3: unknown form of usage",
		"sessions:\n  - expect: {last: '('}\n    turns: []":                        "line 2: expect.last: ",
		"sessions:\n  - turns:\n    - faults: [{p: 2}]":                            "line 3: probability p is 2",
		"tokenizer: bpe": "line 1: unknown tokenizer",
	} {
		_, err := mock.Parse([]byte(text))
		wrong, ok := errors.AsType[*mock.ScriptError](err)
		if !ok || !strings.Contains(err.Error(), want) || strings.Contains(wrong.Message, "\n") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(script)
	f.Add("sessions: [{turns: [{template: true, content: '{{.Last}}', faults: [{kind: cut, p: 0.5}], expect: {cache: [message -1]}}]}]")
	f.Add("a: &a [*a]")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := mock.Parse([]byte(text)); err != nil && err.Error() == "" {
			t.Error("the error has no message")
		}
	})
}
