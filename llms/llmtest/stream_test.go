package llmtest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// The odd ways in which servers stream, each asked for by its field.
func TestStreamsAsServersSendThem(t *testing.T) {
	const usage = `"usage":{"completion_tokens":1`
	cases := map[string]struct {
		plan      string
		want, not []string
	}{
		"plain":     {`{}`, []string{"data: [DONE]\n\n", usage, `"choices":[],"created"`, `"index":1}]}`}, []string{"\r", ": still"}},
		"pieces":    {`{piece: 1}`, []string{`{"content":"ü"}`, `{"arguments":"\\"}`, `{"arguments":"\""}`}, nil},
		"comments":  {`{comments: true}`, []string{": still here\n\nevent: ping\n\ndata: {"}, nil},
		"crlf":      {`{crlf: true, write: 1}`, []string{"data: [DONE]\r\n\r\n"}, []string{"}\n"}},
		"missing":   {`{index: missing}`, []string{`"tool_calls":[{"function"`}, []string{`"index":1`}},
		"zero":      {`{index: zero}`, []string{`"id":"a","index":0,`, `"id":"b","index":0,`}, []string{`"index":1`}},
		"from one":  {`{index: from_one}`, []string{`"id":"a","index":1,`, `"id":"b","index":2,`}, nil},
		"at finish": {`{usage: finish}`, []string{`"finish_reason":"tool_calls","index":0}],"created":0,"id":"chatcmpl-0-0","model":"m","object":"chat.completion.chunk",` + usage}, []string{`"choices":[]`}},
		"untold":    {`{usage: absent}`, nil, []string{usage}},
		"no done":   {`{no_done: true}`, nil, []string{"[DONE]"}},
		"no finish": {`{no_finish: true, no_done: true}`, nil, []string{"[DONE]", `"finish_reason":"tool_calls"`}},
		"roles":     {`{roles: true}`, []string{`"delta":{"content":"gr","role":"assistant"}`}, nil},
		"ids":       {`{ids: true}`, []string{`"id":"chatcmpl-0-0-0"`, `"id":"chatcmpl-0-0-1"`}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if name == "roles" {
				c.plan = `{roles: true, piece: 2}`
			}
			srv := start(t, `
sessions:
  - turns:
      - content: grün
        tool_calls: [{name: x, id: a, raw: '{"a":"\""}'}, {name: y, id: b}]
        usage: {prompt: 3, completion: 1}
        stream: `+c.plan)
			_, got := call(t, srv.URL+"/chat/completions", "", `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"u"}]}`)
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("no %q in\n%s", want, got)
				}
			}
			for _, not := range c.not {
				if strings.Contains(got, not) {
					t.Errorf("%q in\n%s", not, got)
				}
			}
		})
	}
}

// A stream of the Messages API, put together again, is the answer in one piece.
func TestMessagesStreamIsTheAnswerInPieces(t *testing.T) {
	srv := start(t, `sessions: [{repeat: true, turns: [{content: "grün and long enough for pieces", reasoning: "because of that and this", tool_calls: [{name: view, arguments: {path: a.py}}], usage: {prompt: 9, completion: 2}}]}]`)
	ask := `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"u"}]`
	_, whole := call(t, srv.URL+"/messages", "", ask+`}`)
	_, streamed := call(t, srv.URL+"/messages", "", ask+`,"stream":true}`)
	var message map[string]any
	var blocks []any
	partial := ""
	for line := range strings.Lines(streamed) {
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		var e struct {
			Type    string
			Message map[string]any
			Block   map[string]any `json:"content_block"`
			Delta   map[string]any
			Usage   any
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatal(err)
		}
		switch e.Type {
		case "message_start":
			message = e.Message
		case "content_block_start":
			blocks, partial = append(blocks, e.Block), ""
		case "content_block_delta":
			block := blocks[len(blocks)-1].(map[string]any)
			for _, field := range []string{"text", "thinking", "signature"} {
				if text, ok := e.Delta[field].(string); ok {
					block[field] = block[field].(string) + text
				}
			}
			if text, ok := e.Delta["partial_json"].(string); ok {
				partial += text
				_ = json.Unmarshal([]byte(partial), new(any))
				block["input"] = json.RawMessage(partial)
			}
		case "message_delta":
			message["stop_reason"], message["usage"] = e.Delta["stop_reason"], e.Usage
		}
	}
	message["content"] = blocks
	got, err := json.Marshal(message)
	if err != nil || string(got) != whole {
		t.Errorf("%v\nstreamed %s\nwhole    %s", err, got, whole)
	}
}

// Faults strike streams, too: where they break, no stream looks whole.
func TestFaultsOfStreams(t *testing.T) {
	for kind, broken := range map[string]bool{"cut": true, "reset_body": true, "reset": true, "error_in_200": false, "truncated_json": false, "reset_end": true, "gzip": false, "overloaded": false} {
		srv := start(t, `sessions: [{turns: [{content: "some words that make a stream", usage: {prompt: 5}, fault: {times: 1, kind: `+kind+`}}]}]`)
		body := ""
		resp, err := http.Post(srv.URL+"/chat/completions", "application/json", strings.NewReader(`{"model":"m","stream":true,"messages":[{"role":"user","content":"u"}]}`))
		if err == nil {
			var raw []byte
			raw, err = io.ReadAll(resp.Body)
			body = string(raw)
			_ = resp.Body.Close()
		}
		if (err != nil) != broken {
			t.Errorf("%s: %v", kind, err)
		}
		wholeOne := kind == "reset_end" || kind == "gzip"
		if strings.Contains(body, "[DONE]") != wholeOne || (kind == "error_in_200") != strings.Contains(body, `data: {"error":{"code":"server_error"`) {
			t.Errorf("%s: %s", kind, body)
		}
		if got := srv.Totals(); (got.Answered == 1) != wholeOne || got.Faults[kind] != 1 || (got.Prompt == 5) != wholeOne {
			t.Errorf("%s: %+v", kind, got)
		}
	}
}
