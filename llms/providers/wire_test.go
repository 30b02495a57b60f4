package providers_test

// These tests cover the rows of docs/wire.md that need only one or two calls.

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

// talk requests all turns, answers each call, and returns the replies and the messages of
// the last request as the server got them.
func talk(t *testing.T, with map[string]any, turns ...mock.Turn) ([]schemas.Reply, []map[string]any) {
	t.Helper()
	session := "s1"
	if with["echo_reasoning"] == "last" {
		session = "" // the client changes sent messages, which the server reports for a known conversation
	}
	srv := mocktest.Serve(t, mock.Script{Sessions: []mock.Session{{ID: session, Turns: turns}}})
	c := client(t, srv.URL, with)
	req := llms.Request{SessionID: session, Tools: []schemas.ToolSchema{viewTool}, Messages: []llms.Message{{Role: "user", Content: "go"}}}
	var replies []schemas.Reply
	for range turns {
		resp, err := c.Chat(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		replies = append(replies, resp.Reply)
		req.Messages = append(req.Messages, llms.Message{Role: "assistant", Content: resp.Reply.Message, ToolCalls: resp.Reply.Calls, Raw: resp.Reply.Extra})
		for _, call := range resp.Reply.Calls {
			req.Messages = append(req.Messages, llms.Message{Role: "tool", ToolCallID: call.ID, Content: "seen"})
		}
		if len(resp.Reply.Calls) == 0 {
			req.Messages = append(req.Messages, llms.Message{Role: "user", Content: "go on"})
		}
	}
	log := srv.Log()
	var body struct{ Messages []map[string]any }
	if err := json.Unmarshal(log[len(log)-1].Body, &body); err != nil {
		t.Fatal(err)
	}
	return replies, body.Messages
}

func TestWireReasoningFieldName(t *testing.T) {
	details := []any{map[string]any{"type": "reasoning.text", "text": "because", "signature": "s=="}}
	for name, turn := range map[string]mock.Turn{
		"reasoning_content": {Reasoning: "because", ReasoningField: "reasoning_content"},
		"reasoning":         {Reasoning: "because", ReasoningField: "reasoning"},
		"reasoning_details": {Message: map[string]any{"reasoning_details": details}},
	} {
		turn.ToolCalls = []mock.Call{{Name: "view"}}
		replies, sent := talk(t, nil, turn, mocktest.Text("done"))
		if replies[0].Reasoning != "because" {
			t.Errorf("%s: reasoning %q", name, replies[0].Reasoning)
		}
		for _, field := range []string{"reasoning_content", "reasoning", "reasoning_details"} {
			if _, there := sent[1][field]; there != (field == name) {
				t.Errorf("received as %s, %s sent back: %v", name, field, there)
			}
		}
	}
}

func TestWireReasoningEcho(t *testing.T) {
	call, plain := mocktest.Tool("view", nil), mocktest.Text("thinking aloud")
	call.Reasoning, plain.Reasoning = "r", "r"
	signed := plain
	signed.Message = map[string]any{"reasoning_details": []any{map[string]any{"text": "r"}}}
	for policy, want := range map[string][]string{
		"auto":   {"1 call [reasoning_content]", "3 plain []", "5 signed [reasoning_details]"},
		"always": {"1 call [reasoning_content]", "3 plain [reasoning_content]", "5 signed [reasoning_content reasoning_details]"},
		"never":  {"1 call []", "3 plain []", "5 signed []"},
		"last":   {"1 call []", "3 plain []", "5 signed [reasoning_content reasoning_details]"},
	} {
		_, sent := talk(t, map[string]any{"echo_reasoning": policy}, call, plain, signed, mocktest.Text("done"))
		var got []string
		for name, at := range map[string]int{"call": 1, "plain": 3, "signed": 5} {
			fields := []string{}
			for _, f := range []string{"reasoning_content", "reasoning_details"} {
				if _, there := sent[at][f]; there {
					fields = append(fields, f)
				}
			}
			got = append(got, fmt.Sprintf("%d %s %v", at, name, fields))
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", policy, diff)
		}
	}
}

func TestWireUnknownFieldsAreSentBack(t *testing.T) {
	for _, vendor := range []string{"google", "vertex"} {
		extra := map[string]any{"extra_content": map[string]any{vendor: map[string]any{"thought_signature": "sig=="}}}
		_, sent := talk(t, nil, mock.Turn{
			Message:   map[string]any{"annotations": []any{"a"}},
			ToolCalls: []mock.Call{{Name: "view", Extra: extra}, {Name: "view"}},
		}, mocktest.Text("done"))
		calls := sent[1]["tool_calls"].([]any)
		if diff := cmp.Diff(extra["extra_content"], calls[0].(map[string]any)["extra_content"]); diff != "" {
			t.Error(diff)
		}
		if sent[1]["annotations"] == nil {
			t.Error("an unknown field of the message was not sent back")
		}
	}
}

func TestWireFinishReasonIsNotTrusted(t *testing.T) {
	for _, word := range []string{"stop", "tool_calls", "TOOL_CALL", "eos"} {
		replies, _ := talk(t, nil, mock.Turn{FinishReason: word, ToolCalls: []mock.Call{{Name: "view"}}})
		if r := replies[0]; len(r.Calls) != 1 || r.FinishReason != word {
			t.Errorf("%s: %d calls, finish reason %q", word, len(r.Calls), r.FinishReason)
		}
		if replies, _ := talk(t, nil, mock.Turn{FinishReason: word, Content: ptr("only text")}); len(replies[0].Calls) != 0 {
			t.Errorf("finish reason %s produced a call", word)
		}
	}
}

func TestWireToolChoice(t *testing.T) {
	for choice, want := range map[string]any{
		"": nil, "auto": "auto", "required": "required", "none": "none",
		"view": map[string]any{"type": "function", "function": map[string]any{"name": "view"}},
	} {
		srv := mocktest.Serve(t, mock.Script{Sessions: []mock.Session{{Turns: []mock.Turn{mocktest.Tool("view", nil)}}}})
		if _, err := client(t, srv.URL, nil).Chat(t.Context(), llms.Request{Tools: []schemas.ToolSchema{viewTool}, Sampling: llms.Sampling{ToolChoice: choice},
			Messages: []llms.Message{{Role: "user", Content: "go"}}}); err != nil {
			t.Fatal(err)
		}
		var body map[string]any
		if err := json.Unmarshal(srv.Log()[0].Body, &body); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, body["tool_choice"]); diff != "" || body["parallel_tool_calls"] != nil {
			t.Errorf("%q: %s", choice, diff)
		}
	}
}

// Several calls keep their order and get one answer each. Calls of the tool that models
// invent for parallel calls are split.
func TestWireParallelCalls(t *testing.T) {
	replies, sent := talk(t, nil,
		mock.Turn{ToolCalls: []mock.Call{{Name: "view", Arguments: map[string]any{"n": 1}}, {Name: "view", Arguments: map[string]any{"n": 2}}}},
		mock.Turn{ToolCalls: []mock.Call{{ID: ptr("p"), Name: "multi_tool_use.parallel", Raw: ptr(
			`{"tool_uses":[{"recipient_name":"functions.view","parameters":{"n":3}},{"recipient_name":"view","parameters":{"n":4}}]}`)}}},
		mocktest.Text("done"))
	var seen []string
	for _, r := range replies {
		for _, c := range r.Calls {
			seen = append(seen, fmt.Sprintf("%s %s %v", c.Name, c.Arguments, c.Repaired))
		}
	}
	if diff := cmp.Diff([]string{`view {"n":1} false`, `view {"n":2} false`, `view {"n":3} true`, `view {"n":4} true`}, seen); diff != "" {
		t.Error(diff)
	}
	if len(sent[4]["tool_calls"].([]any)) != 2 || sent[6]["role"] != "tool" { // the mock server checks that each call has its answer
		t.Errorf("sent back as %v", sent[4])
	}
	broken := mock.Turn{ToolCalls: []mock.Call{{Name: "multi_tool_use.parallel", Raw: ptr(`{"tool_uses":[{"recipient_na`)}}}
	if replies, _ := talk(t, nil, broken); replies[0].Calls[0].Invalid == "" {
		t.Errorf("a part of it was used: %+v", replies[0].Calls)
	}
}

func TestWireCallIDs(t *testing.T) {
	turns := []mock.Turn{
		{ToolCalls: []mock.Call{{ID: ptr("call_with_a_long_id"), Name: "view"}, {ID: ptr("abcDEF123"), Name: "view"}}},
		{ToolCalls: []mock.Call{{ID: ptr(""), Name: "view"}, {ID: ptr("abcDEF123"), Name: "view"}}},
		mocktest.Text("done"),
	}
	replies, sent := talk(t, map[string]any{"call_ids": "nine"}, turns...)
	seen := map[string]bool{}
	for _, at := range []int{1, 4} {
		for _, c := range sent[at]["tool_calls"].([]any) {
			id := c.(map[string]any)["id"].(string)
			if len(id) != 9 || strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != "" || seen[id] {
				t.Errorf("id %q", id)
			}
			seen[id] = true
		}
	}
	if replies[0].Calls[0].ID != "call_with_a_long_id" || !seen["abcDEF123"] {
		t.Errorf("the record has id %q, the server got %v", replies[0].Calls[0].ID, seen)
	}
}

// Valid arguments are not changed. Malformed ones with a single reading are repaired and
// marked. All others are never executed.
func TestWireMalformedArguments(t *testing.T) {
	for raw, want := range map[string]string{
		`{"path":"x"}`:                         `{"path":"x"}`,
		`{"code":"a\\d {\"k\": 1,}"}`:          `{"code":"a\\d {\"k\": 1,}"}`, // a repair would corrupt it
		`"{\"path\": \"x\"}"`:                  `repaired {"path":"x"}`,
		"```json\n{\"path\": \"x\"}\n```":      `repaired {"path":"x"}`,
		"{\"code\": \"a\n\tb\"}":               `repaired {"code":"a\n\tb"}`,
		`{"pattern": "\d+\.py", "q": "it\'s"}`: `repaired {"pattern":"\\d+\\.py","q":"it's"}`,
		"{\"path\": \"\x01\"}":                 "",
		`{"paths": ["x",], "n": 1,}`:           `repaired {"n":1,"paths":["x"]}`,
		``:                                     `repaired {}`,
		`{"path": "x`:                          "",
		`{"path": `:                            "",
		`["x"]`:                                "",
		`"x"`:                                  "",
		`null`:                                 "",
		`path=x`:                               "",
		`{"path":"x"}{"path":"y"}`:             "",
		`{"a":"\u12"}`:                         `repaired {"a":"\\u12"}`,
		`{'path': 'x'}`:                        "",
		"```json\n{\"path\": \"x":              "",
	} {
		replies, _ := talk(t, nil, mock.Turn{ToolCalls: []mock.Call{{Name: "view", Raw: &raw}}})
		c := replies[0].Calls[0]
		got := string(c.Arguments)
		switch {
		case c.Invalid != "":
			got = ""
		case c.Repaired:
			got = "repaired " + got
		}
		if got != want {
			t.Errorf("%s: got %s (%s), want %s", raw, got, c.Invalid, want)
		}
		if c.Raw != raw && string(c.Arguments) != raw {
			t.Errorf("%s: the model's original text is missing: %q", raw, c.Raw)
		}
	}
	replies, _ := talk(t, nil, mock.Turn{ToolCalls: []mock.Call{{Name: "view", Object: map[string]any{"path": "x"}}}})
	if c := replies[0].Calls[0]; string(c.Arguments) != `{"path":"x"}` || c.Repaired {
		t.Errorf("object instead of a string: %+v", c)
	}
}

func TestWireCallAsText(t *testing.T) {
	for text, want := range map[string]bool{
		`<tool_call>{"name":"view"}</tool_call>`:                       true,
		`<tool_call> view`:                                             true,
		"I look.\n<function=view><parameter=path>x":                    true,
		`[TOOL_CALLS][{"name":"view","arguments":{}}]`:                 true,
		"Now:\n{\"name\": \"view\", \"arguments\": {\"path\": \"x\"}}": true,
		"```json\n[{\"name\": \"view\", \"parameters\": {}}]\n```":     true,
		"The config is {\"name\": \"view\", \"arguments\": {}} here.":  false,
		`{"name": "someone", "arguments": {}}`:                         false,
		`{"name": "view"}`:                                             false,
		"I call view next.":                                            false,
	} {
		replies, _ := talk(t, nil, mocktest.Text(text))
		if r := replies[0]; r.CallAsText != want || len(r.Calls) != 0 || r.Message != text {
			t.Errorf("%s: %v, %d calls, message %q", text, r.CallAsText, len(r.Calls), r.Message)
		}
	}
	both := mocktest.Tool("view", nil)
	both.Content = ptr("<tool_call>")
	if replies, _ := talk(t, nil, both); replies[0].CallAsText {
		t.Error("a reply with a call was taken for a call as text")
	}
}

func TestWireTruncation(t *testing.T) {
	for _, word := range []string{"length", "max_tokens", "MAX_TOKENS", "model_length"} {
		cut := mock.Turn{FinishReason: word, ToolCalls: []mock.Call{{Name: "view", Raw: ptr(`{"path": "x`)}}}
		replies, _ := talk(t, nil, cut)
		if c := replies[0].Calls[0]; !c.Truncated || c.Invalid == "" || !replies[0].Truncated || replies[0].FinishReason != word {
			t.Errorf("%s: %+v", word, replies[0])
		}
		whole := mocktest.Tool("view", nil)
		whole.FinishReason = word
		if replies, _ := talk(t, nil, whole); replies[0].Calls[0].Invalid != "" {
			t.Errorf("%s: a complete call was refused", word)
		}
	}
}

func TestWireEmptyContent(t *testing.T) {
	for setting, want := range map[string][]any{"null": {nil, ""}, "empty": {"", ""}, "space": {" ", " "}} {
		_, sent := talk(t, map[string]any{"empty_content": setting}, mocktest.Tool("view", nil), mocktest.Text(""), mocktest.Text("done"))
		if diff := cmp.Diff(want, []any{sent[1]["content"], sent[3]["content"]}); diff != "" {
			t.Errorf("%s: %s", setting, diff)
		}
	}
}

func TestWireSamplingParameters(t *testing.T) {
	zero, limit, seed := 0.0, 50, int64(7)
	sampling := llms.Sampling{Temperature: &zero, TopP: &zero, MaxTokens: &limit, Seed: &seed, Extra: map[string]any{"reasoning_effort": "low"}}
	for name, c := range map[string]struct {
		with map[string]any
		want map[string]any
	}{
		"as it is":        {nil, map[string]any{"temperature": 0.0, "top_p": 0.0, "max_tokens": 50.0, "seed": 7.0, "reasoning_effort": "low"}},
		"other spelling":  {map[string]any{"max_tokens_field": "max_completion_tokens", "drop": []string{"seed"}}, map[string]any{"temperature": 0.0, "top_p": 0.0, "max_completion_tokens": 50.0, "reasoning_effort": "low"}},
		"reasoning model": {map[string]any{"drop": []string{"temperature", "top_p"}}, map[string]any{"max_tokens": 50.0, "seed": 7.0, "reasoning_effort": "low"}},
	} {
		srv := mocktest.Serve(t, mock.Script{Sessions: []mock.Session{{Turns: []mock.Turn{mocktest.Text("x")}}}})
		if _, err := client(t, srv.URL, c.with).Chat(t.Context(), llms.Request{Sampling: sampling, Messages: []llms.Message{{Role: "user", Content: "go"}}}); err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(srv.Log()[0].Body, &got); err != nil {
			t.Fatal(err)
		}
		delete(got, "messages")
		delete(got, "model")
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// drop cannot remove fields that limit the cost of a call or state its request.
func TestDropRefusesRequiredFields(t *testing.T) {
	for _, name := range []string{"model", "messages", "tools", "max_tokens", "max_completion_tokens"} {
		_, err := llms.Providers.Build("openai", map[string]any{"model": "m", "base_url": "http://127.0.0.1:1/v1", "drop": []string{name}}, llms.Deps{})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("drop must not name %q", name)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
