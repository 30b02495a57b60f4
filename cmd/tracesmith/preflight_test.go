package main

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/internal/mocktest"
	"github.com/tracesmith/tracesmith/llms/mock"
)

// For every API, a wrong address, key or model is found before the first model call.
func TestPreflightBillsNothing(t *testing.T) {
	const key = "sk-right-0a1b2c3d4e5f"
	t.Setenv("RIGHT_KEY", key)
	t.Setenv("WRONG_KEY", "sk-wrong-5f4e3d2c1b0a")
	srv := mocktest.Serve(t, mock.Script{Key: key, Models: []string{"glm-4", "other"}})
	const noServer = "http://127.0.0.1:1/v1" // not a port that was just free: another test may use it now
	for _, provider := range []string{"openai", "anthropic"} {
		for name, c := range map[string]struct {
			url, key, model string
			code            int
			words           string
		}{
			"no key":       {srv.URL, "NO_SUCH_KEY", "glm-4", 4, "NO_SUCH_KEY is not set"},
			"wrong key":    {srv.URL, "WRONG_KEY", "glm-4", 4, "(auth)"},
			"wrong model":  {srv.URL, "RIGHT_KEY", "glm4", 7, "glm4"},
			"wrong host":   {noServer, "RIGHT_KEY", "glm-4", 7, "is the server running"},
			"unknown name": {"http://nowhere.invalid/v1", "RIGHT_KEY", "glm-4", 7, "nowhere.invalid"},
		} {
			t.Run(provider+"/"+name, func(t *testing.T) {
				url := c.url
				if provider == "anthropic" {
					url = strings.TrimSuffix(url, "/v1")
				}
				_, config := writeConfig(t, fmt.Sprintf(`version: 1
tasks: {source: builtin, ids: [stockroom]}
agent: {kind: react}
llm: {provider: %s, model: %s, base_url: %q, api_key: 'env:%s', max_retries: 3}
`, provider, c.model, url, c.key))
				code, out := tracesmith(t, "tracesmith", "run", "-c", config, "--run-dir", t.TempDir()+"/run")
				if code != c.code || !strings.Contains(out, c.words) || strings.Contains(out, "sk-") {
					t.Errorf("exit %d, want %d with %q:\n%s", code, c.code, c.words, out)
				}
			})
		}
	}
	if calls := srv.Log(); len(calls) != 0 {
		t.Errorf("%d calls were made", len(calls))
	}
}

// doctor names what is wrong with a model server. It makes one call with a tool and a short answer, and
// prints its cost.
func TestDoctorChecksModels(t *testing.T) {
	const key = "sk-right-0a1b2c3d4e5f"
	t.Setenv("RIGHT_KEY", key)
	t.Setenv("WRONG_KEY", "sk-wrong-5f4e3d2c1b0a")
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts connections, and nothing answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	call := mock.Turn{ToolCalls: []mock.Call{{Name: "report", Arguments: map[string]any{"answer": 42}}}, Usage: &mock.Usage{Prompt: 1000, Completion: 20}}
	text, broken, written := "42", `{"a": `, `<tool_call>{"name": "report", "arguments": {"answer": 42}}</tool_call>`
	srv := mocktest.Listen(mock.Script{
		Key: key, Models: []string{"calls", "speaks", "limited", "stalls", "thinks", "refuses", "silent", "breaks", "writes", "fails", "small"},
		Expect: &mock.Expect{Tools: []string{"report"}, Params: map[string]any{"max_tokens": 64}, Messages: 1},
		Sessions: []mock.Session{
			{Model: "calls", Turns: []mock.Turn{call}, Repeat: true},
			{Model: "speaks", Turns: []mock.Turn{{Content: &text}}},
			{Model: "silent", Turns: []mock.Turn{{ToolCalls: call.ToolCalls, UsageAs: "absent"}}},
			{Model: "fails", Turns: []mock.Turn{{Faults: []mock.Fault{{Kind: "server_error"}}}}},
			{Model: "small", Turns: []mock.Turn{{Faults: []mock.Fault{{Kind: "overflow_openai"}}}}},
			{Model: "breaks", Turns: []mock.Turn{{ToolCalls: []mock.Call{{Name: "report", Raw: &broken}}}}},
			{Model: "writes", Turns: []mock.Turn{{Content: &written}}},
			{Model: "thinks", Turns: []mock.Turn{{Content: &text, FinishReason: "length"}}},
			{Model: "limited", Turns: []mock.Turn{{Faults: []mock.Fault{{Kind: "rate_limit"}}}}},
			{Model: "stalls", Turns: []mock.Turn{{Faults: []mock.Fault{{Kind: "stall_start"}}}}},
			{Model: "refuses", Turns: []mock.Turn{{Faults: []mock.Fault{{Kind: "unprocessable"}}}}},
		},
	})
	t.Cleanup(srv.Close)
	noServer := "http://127.0.0.1:1/v1"
	for name, c := range map[string]struct {
		url, key, model, set string
		code, calls          int
		words                string
	}{
		"works":         {srv.URL, "RIGHT_KEY", "calls", "prices=[{model: calls, input: 2, output: 5}]", 0, 1, "ms, 1000 + 20 tokens, $0.002100"},
		"no usage":      {srv.URL, "RIGHT_KEY", "silent", "prices=[{model: silent, input: 2, output: 5}]", 0, 1, "silent calls tools, but the server reports no usage;"},
		"broken":        {srv.URL, "RIGHT_KEY", "breaks", "llm.max_retries=0", 0, 1, `breaks calls tools with unusable arguments (arguments are not valid JSON: unexpected EOF): "{\"a\": ";`},
		"as text":       {srv.URL, "RIGHT_KEY", "writes", "llm.max_retries=0", 0, 1, "set agent.kind to simple, which"},
		"fails":         {srv.URL, "RIGHT_KEY", "fails", "llm.max_retries=0", 7, 1, "its log says why"},
		"small context": {srv.URL, "RIGHT_KEY", "small", "llm.max_retries=0", 7, 1, "lower llm.max_tokens"},
		"no price":      {srv.URL, "RIGHT_KEY", "calls", "limits.total_cost=0", 0, 1, "cost unknown (no price)"},
		"text":          {srv.URL, "RIGHT_KEY", "speaks", "llm.tool_choice=edit", 0, 1, "warning model llm at " + srv.URL + ": speaks answered without a call of the tool"},
		"too long":      {srv.URL, "RIGHT_KEY", "thinks", "llm.max_tokens=9000", 0, 1, "thinks used all 64 tokens before it called the tool"},
		"rate limit":    {srv.URL, "RIGHT_KEY", "limited", "llm.max_retries=9", 0, 1, "limited is rate limited: model server answered 429"},
		"request":       {srv.URL, "RIGHT_KEY", "refuses", "llm.max_retries=0", 7, 1, "see docs/wire.md"},
		"stalled call":  {srv.URL, "RIGHT_KEY", "stalls", "llm.timeout=1s", 7, 1, "no answer within 1s"},
		"no key":        {srv.URL, "NO_SUCH_KEY", "calls", "llm.max_retries=0", 4, 0, "NO_SUCH_KEY is not set"},
		"wrong key":     {srv.URL, "WRONG_KEY", "calls", "llm.max_retries=0", 4, 0, "(auth)"},
		"unknown model": {srv.URL, "RIGHT_KEY", "cals", "llm.max_retries=0", 7, 0, `did you mean "calls"?`},
		"no version":    {strings.TrimSuffix(srv.URL, "/v1"), "RIGHT_KEY", "calls", "llm.max_retries=0", 7, 0, "set base_url to " + srv.URL},
		"dead server":   {noServer, "RIGHT_KEY", "calls", "llm.max_retries=0", 7, 0, "is the server running"},
		"silent server": {"http://" + silent.Addr().String() + "/v1", "RIGHT_KEY", "calls", "llm.timeout=1s", 7, 0, "no answer within 1s"},
		"one of two":    {noServer, "RIGHT_KEY", "calls", "llm.endpoints=[{base_url: " + noServer + "}, {base_url: " + srv.URL + "}]", 0, 1, "1 warning, 0 failed"},
		"no canary":     {srv.URL, "RIGHT_KEY", "speaks", "--no-canary", 0, 0, "ok model llm at " + srv.URL + " answers"},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(srv.Log())
			args := []string{"doctor", "-p", "agent.kind=react", "-p", "llm.model=" + c.model, "-p", "llm.api_key=env:" + c.key, "-p", c.set}
			if c.set == "--no-canary" {
				args = append(args[:len(args)-2], c.set)
			}
			if name != "one of two" {
				args = append(args, "-p", "llm.base_url="+c.url)
			}
			code, out := tracesmith(t, "tracesmith", args...)
			if code != c.code || !strings.Contains(strings.Join(strings.Fields(out), " "), c.words) || strings.Contains(out, "sk-") {
				t.Errorf("exit %d, want %d with %q:\n%s", code, c.code, c.words, out)
			}
			if calls := len(srv.Log()) - before; calls != c.calls {
				t.Errorf("%d calls, want %d", calls, c.calls)
			}
		})
	}
	for _, problem := range srv.Problems() {
		if !strings.Contains(problem, "asked for again") && !strings.HasPrefix(problem, "no such endpoint") { // a case has no /v1
			t.Error(problem)
		}
	}
}
