package viewer_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/agents/history"
	"github.com/tracesmith/tracesmith/cmd/internal/viewer"
	"github.com/tracesmith/tracesmith/internal/sinktest"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/tape"
	"github.com/tracesmith/tracesmith/schemas"
)

func TestModelCallHasTheExactBytes(t *testing.T) {
	staged := sinktest.Episode("run-a", 0)
	messages, err := history.Rebuild(staged.Steps, 5)
	if err != nil {
		t.Fatal(err)
	}
	request, refusal, response := `{"model":"m",  "messages":[]}`, `<html>slow down</html>`, `{"choices":[{"message":{"content":"<b>"}}]}`
	row := &staged.Steps[5]
	row.PromptSHA256, row.PromptRebuilds, row.RequestSHA256 = new(llms.PromptSHA256(messages)), new(true), new(schemas.HashBytes([]byte(request)))
	dir := runDir(t, staged)
	id := staged.Episode.EpisodeID
	calls := tape.New(tape.Path(dir, id), nil)
	for _, ex := range []llms.Exchange{
		{Request: []byte("of another step"), Response: []byte("{}"), Status: 200},
		{Request: []byte(request), Response: []byte(refusal), Status: 429, Failure: "rate_limit"},
		{Request: []byte(request), Response: []byte(response), Status: 200},
	} {
		if err := calls.Record(ex); err != nil {
			t.Fatal(err)
		}
	}
	if err := calls.Close(); err != nil {
		t.Fatal(err)
	}
	s := open(t, "", dir)
	base := "/t/1/" + id
	episode := page(t, s, base)
	wantText(t, episode, base+`/model/5">Model call</a>`, base+`/model/3">Prompt</a>`)
	if strings.Contains(episode, "/model/4") {
		t.Error("the second call of a reply has a prompt of its own")
	}
	wantText(t, page(t, s, base+"/model/5"), "exact bytes", "status 429, rate_limit", "&lt;html&gt;slow down", "status 200", "I look at two things.")
	wantText(t, page(t, s, base+"/model/3"), "No model was called for this step", "The total is wrong")
	wantText(t, page(t, s, "/api/v1"+base+"/model/5"), `"failure":"rate_limit"`, `"role":"system"`)
	for field, want := range map[string]string{"request": request, "response-0": refusal, "response-1": response} {
		if got := page(t, s, base+"/s/5/"+field); got != want {
			t.Errorf("%s is %q, want %q", field, got, want)
		}
	}
	if got := page(t, s, base+"/s/5/prompt"); schemas.HashBytes([]byte(got)) != *row.PromptSHA256 {
		t.Errorf("the hash of the saved messages is not prompt_sha256: %s", got)
	}
	for _, path := range []string{"/model/4", "/model/0", "/model/x", "/s/5/response-2", "/s/3/request", "/s/4/prompt"} {
		if w := get(t, s, base+path); w.Code != http.StatusNotFound {
			t.Errorf("%s: status %d, want 404", path, w.Code)
		}
	}
	var out strings.Builder
	if _, err := s.Export(t.Context(), &out, viewer.Export{}); err != nil || strings.Contains(out.String(), "/model/") {
		t.Errorf("an exported file links to pages of the server (%v)", err)
	}
}
