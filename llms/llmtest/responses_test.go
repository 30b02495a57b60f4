package llmtest_test

import (
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
)

// The official client over the Responses API: a failure that passes, a call,
// the same as a stream, its output, the answer.
func TestForeignClientOfResponses(t *testing.T) {
	srv := start(t, `
sessions:
  - session: s
    repeat: true
    expect: {echo: true}
    turns:
      - {reasoning: because, content: I look., tool_calls: [{name: view, arguments: {path: a.py}}], usage: {prompt: 9, completion: 4, cached: 3, reasoning: 1}, fault: {kind: rate_limit_ms, times: 1}}
      - {content: '{{.Last}} {{.Turn}}', template: true}
`)
	c := openai.NewClient(option.WithBaseURL(srv.URL), option.WithAPIKey("k"), option.WithHeader("X-Session-ID", "s"))
	items := responses.ResponseInputParam{responses.ResponseInputItemParamOfMessage("go", responses.EasyInputMessageRoleUser)}
	ask := responses.ResponseNewParams{Model: "m", Instructions: openai.String("scene")}
	ask.Input.OfInputItemList = items
	first, err := c.Responses.New(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	if first.OutputText() != "I look." || len(first.Output) != 3 || first.Output[2].AsFunctionCall().Arguments != `{"path":"a.py"}` || first.Usage.InputTokensDetails.CachedTokens != 3 {
		t.Errorf("%s", first.RawJSON())
	}
	reasoning := first.Output[0].AsReasoning().ToParam()
	reasoning.EncryptedContent = openai.String("sealed-0-0")
	output := responses.ResponseInputItemParamOfFunctionCallOutput("seen")
	output.OfFunctionCallOutput.CallID = openai.String("script_0_0")
	grown := append(items, responses.ResponseInputItemUnionParam{OfReasoning: &reasoning},
		responses.ResponseInputItemParamOfMessage("I look.", responses.EasyInputMessageRoleAssistant),
		responses.ResponseInputItemParamOfFunctionCall(`{"path":"a.py"}`, "script_0_0", "view"),
		output)
	ask.Input.OfInputItemList = grown
	stream := c.Responses.NewStreaming(t.Context(), ask)
	text, last := "", responses.Response{}
	for stream.Next() {
		switch e := stream.Current(); e.Type {
		case "response.output_text.delta":
			text += e.Delta
		case "response.completed":
			last = e.Response
		}
	}
	if err := stream.Err(); err != nil || text != "seen 1" || last.OutputText() != text {
		t.Errorf("%v: %q, %s", err, text, last.RawJSON())
	}
	if p := srv.TakeProblems(); len(p) != 0 {
		t.Errorf("%q", p)
	}
	srv.Reset()
	for _, body := range []string{
		`{"model":"m","input":"go"}`,
		`{"model":"m","input":[{"role":"user","content":"gone"},{"type":"function_call","call_id":"x","name":"view","arguments":"{"},{"type":"function_call_output","call_id":"y","output":"z"}],"previous_response_id":"r"}`,
	} {
		_, _ = call(t, srv.URL+"/responses", "s", body) // the first meets its fault
		_, _ = call(t, srv.URL+"/responses", "s", body)
	}
	all := strings.Join(srv.TakeProblems(), "\n")
	for _, want := range []string{"nothing is stored here", `call "x" is not well formed`, `answers call "y", which is not open`, "[x] have no output", "item 0 was rewritten", "reasoning item is missing"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
}
