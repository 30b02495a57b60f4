package mock_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// After each fault, an answer counts as answered only if a client could read all of it.
func TestFaultsInTotals(t *testing.T) {
	for kind, want := range map[string]struct{ broken, answered bool }{
		"cut": {broken: true}, "reset": {broken: true}, "reset_body": {broken: true}, "error_in_200": {}, "truncated_json": {}, "overloaded": {},
		"reset_end": {broken: true, answered: true}, "gzip": {answered: true},
	} {
		srv := start(t, `sessions: [{turns: [{content: "some words", usage: {prompt: 5}, fault: {times: 1, kind: `+kind+`}}]}]`)
		body := ""
		resp, err := http.Post(srv.URL+"/chat/completions", "application/json", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"u"}]}`))
		if err == nil {
			var raw []byte
			raw, err = io.ReadAll(resp.Body)
			body = string(raw)
			_ = resp.Body.Close()
		}
		if kind != "reset_end" && (err != nil) != want.broken { // the client may read everything before the reset
			t.Errorf("%s: %v", kind, err)
		}
		if whole := strings.HasSuffix(body, `"total_tokens":5}}`); whole != want.answered || (kind == "error_in_200") != strings.HasPrefix(body, `{"error":{"code":"server_error"`) {
			t.Errorf("%s: %s", kind, body)
		}
		if got := srv.Totals(); (got.Answered == 1) != want.answered || got.Faults[kind] != 1 || (got.Prompt == 5) != want.answered {
			t.Errorf("%s: %+v", kind, got)
		}
	}
}

// Both APIs refuse a request for streaming in their own error format.
func TestStreamsAreRefused(t *testing.T) {
	srv := start(t, `sessions: [{repeat: true, turns: [{content: a}]}]`)
	for path, form := range map[string]string{"/chat/completions": `{"error":{"code":`, "/messages": `{"error":{"message":`} {
		status, got := call(t, srv.URL+path, "", `{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"u"}]}`)
		if status != http.StatusBadRequest || !strings.HasPrefix(got, form) || !strings.Contains(got, "streaming is not supported") {
			t.Errorf("%s: %d %s", path, status, got)
		}
		if p := srv.TakeProblems(); len(p) != 1 || !strings.Contains(p[0], "streaming is not supported") {
			t.Errorf("%s: problems %q", path, p)
		}
		if status, got := call(t, srv.URL+path, "", `{"model":"m","max_tokens":9,"stream":false,"messages":[{"role":"user","content":"u"}]}`); status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, got)
		}
	}
}
