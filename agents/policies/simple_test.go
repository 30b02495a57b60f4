package policies_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/internal/mocktest"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/mock"
	"github.com/tracesmith/tracesmith/schemas"
)

// Numbers such as F9 in the names of tests are rows of docs/internals/parity.md.

// runWithReplies runs an episode of an agent whose model is a mock server that answers with turns.
func runWithReplies(t *testing.T, kind string, with map[string]any, b *echoEnv, turns ...mock.Turn) (agents.Result, *mocktest.Server) {
	t.Helper()
	// Without Rewrites, the server would report that debug5 changes its tools.
	srv := mocktest.Serve(t, mock.Script{Sessions: []mock.Session{{Turns: turns, Rewrites: strings.HasPrefix(kind, "debug")}}})
	client, err := llms.Providers.Build("openai", map[string]any{"base_url": srv.URL, "model": "m"}, llms.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	return episode(t, b, build(t, kind, with, agents.Deps{Client: client})), srv
}

// requestBody holds the parts of a request body that tests check.
type requestBody struct {
	Tools    []struct{ Function struct{ Name string } }
	Choice   any `json:"tool_choice"`
	Messages []struct {
		Role, Content string
		ToolCalls     []any `json:"tool_calls"`
	}
}

func (s requestBody) toolNames() []string {
	var out []string
	for _, t := range s.Tools {
		out = append(out, t.Function.Name)
	}
	return out
}

func requestBodies(t *testing.T, srv *mocktest.Server) []requestBody {
	t.Helper()
	var out []requestBody
	for _, r := range srv.Log() {
		var body requestBody
		if err := json.Unmarshal(r.Body, &body); err != nil {
			t.Fatal(err)
		}
		out = append(out, body)
	}
	return out
}

// Without native tool calls, the agent runs the first call of each reply and tells the
// model what is wrong with other calls. After the system prompt, the server receives only
// text messages, alternately from user and assistant.
func TestF9TextProtocolOverHTTP(t *testing.T) {
	edit := "I fix it.\n<function=edit>\n<parameter=path>m.py</parameter>\n<parameter=start>2</parameter>\n<parameter=new_code>\n    x = 2\n    y = '</parameter>'\n</parameter>\n</function>"
	replies := []string{
		"Let me see it fail.\n<function=eval>\n</function>\n<function=submit>\n</function>",
		"I wonder.",
		"<function=edit>\n<parameter=path>m.py\n</function>",
		"<function=fly>\n</function>",
		edit,
		"<function=submit></function>",
	}
	var turns []mock.Turn
	for _, s := range replies {
		turns = append(turns, mocktest.Text(s))
	}
	cut := mocktest.Text("<function=edit>\n<parameter=path>m.p")
	cut.FinishReason = "length"
	turns = append(turns[:4], append([]mock.Turn{cut}, turns[4:]...)...)
	b := &echoEnv{tools: []schemas.ToolSchema{
		{Name: "eval", Description: "run the tests", Parameters: json.RawMessage(`{"type":"object"}`)},
		{Name: "edit", Description: "change a file", Parameters: json.RawMessage(`{"type":"object","required":["path"],"properties":{"path":{"type":"string"},"start":{"type":"integer"},"new_code":{"type":"string"}}}`)},
		{Name: "submit", Description: "end", Parameters: json.RawMessage(`{"type":"object"}`)},
	}}
	res, srv := runWithReplies(t, "simple_agent", map[string]any{"sampling": map[string]any{"tool_choice": "required"}}, b, turns...)
	if res.ExitReason != schemas.ExitSubmitted || res.Agent.Name != "simple" || res.Agent.ToolCallStyle != "text" {
		t.Fatalf("exit %s, %+v", res.ExitReason, res.Agent)
	}
	want := []string{"eval {}", `edit {"new_code":"    x = 2\n    y = '</parameter>'","path":"m.py","start":2}`, "submit {}"}
	if diff := cmp.Diff(want, outline(b.asked)); diff != "" {
		t.Error(diff)
	}
	var classes []string
	for _, s := range res.Steps {
		if s.Turn >= 0 {
			classes = append(classes, s.Observation.ErrorClass)
		}
	}
	if diff := cmp.Diff([]string{"", schemas.ErrNotExecuted, schemas.ErrNoToolCall, schemas.ErrBadArguments, schemas.ErrUnknownTool, schemas.ErrCutOff, "", ""}, classes); diff != "" {
		t.Error(diff)
	}
	log := requestBodies(t, srv)
	last := log[len(log)-1].Messages
	for i, m := range last {
		role := map[bool]string{true: "assistant", false: "user"}[i%2 == 0]
		if i == 0 {
			role = "system"
		}
		if m.Role != role || len(m.ToolCalls) > 0 {
			t.Errorf("message %d is of %s: %q", i, m.Role, m.Content)
		}
	}
	for i, body := range log {
		if body.Tools != nil || body.Choice != nil {
			t.Errorf("request %d offers native tools", i)
		}
	}
	for i, part := range []string{
		"- path (string)\n- start (integer, optional)", "1 failed", replies[0],
		"eval {}\n\nNot executed: only the first call of a reply is run, and this call of submit was not the first.",
		"I wonder.", "<function=NAME>", replies[2], `parameter "path" is not closed with </parameter>.` + "\nA correct call looks like this:\n<function=edit>\n<parameter=path>string</parameter>",
		replies[3], `There is no tool named "fly" here. Call one of: eval, edit, submit.`, "<function=edit>\n<parameter=path>m.p", "cut off", edit,
	} {
		if !strings.Contains(last[i].Content, part) {
			t.Errorf("message %d lacks %q: %q", i, part, last[i].Content)
		}
	}
}
