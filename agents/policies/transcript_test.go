package policies_test

import (
	"bytes"
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

// runReact runs an episode of the react agent against a model server that replies with
// turns.
func runReact(t *testing.T, with map[string]any, job schemas.Job, turns ...mock.Turn) (*echoEnv, agents.Result, *mocktest.Server) {
	t.Helper()
	srv := mocktest.Serve(t, mock.Script{Sessions: []mock.Session{{Turns: turns}}})
	client, err := llms.Providers.Build("openai", map[string]any{"base_url": srv.URL, "model": "m"}, llms.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	b := &echoEnv{}
	return b, episode(t, b, build(t, "react", with, agents.Deps{Client: client, Seed: job.Seed})), srv
}

func raw(name, arguments string) mock.Turn {
	return mock.Turn{ToolCalls: []mock.Call{{Name: name, Raw: &arguments}}}
}

// If the arguments of a call are not a JSON object, the model gets an error as the
// observation and is asked for its next reply. The record keeps the arguments as the
// model wrote them.
// This test proves row WC26 of docs/internals/parity.md.
func TestWC26MalformedArgumentsAreAnObservation(t *testing.T) {
	broken := []string{`{"path": "m.py`, `path=m.py`, `{"path": "m.py"}{"path": "n.py"}`, `[1, 2]`, "{\"path\": \"\x01\"}"}
	var turns []mock.Turn
	for _, b := range broken {
		turns = append(turns, raw("view", b))
	}
	b, res, _ := runReact(t, nil, schemas.Job{}, append(turns, raw("submit", ""))...)
	if res.ExitReason != schemas.ExitSubmitted || len(b.asked) != len(broken)+1 {
		t.Fatalf("exit %s after %v", res.ExitReason, outline(b.asked))
	}
	for i, text := range broken {
		s := res.Steps[i+3]
		if s.Observation.ErrorClass != schemas.ErrBadArguments || s.ToolCall.Raw != text || s.ToolCall.Invalid == "" && text != `[1, 2]` {
			t.Errorf("%s: %+v, %+v", text, s.ToolCall, s.Observation)
		}
	}
}

// A tool gets text exactly as the model sent it, including leading spaces, unusual
// characters and markup that ends a call in other formats.
// This test proves row WC30 of docs/internals/parity.md.
func TestWC30ArgumentsArriveAsSent(t *testing.T) {
	code := "        if x:\n            return '</parameter></function>'  # <tool_call>{\"a\": 1}\n\t\r\n é\u2028 </s> <|im_end|> \\n \\\\ \n\n  "
	encoded, err := json.Marshal(map[string]string{"new_code": code, "path": " m.py"})
	if err != nil {
		t.Fatal(err)
	}
	b, res, srv := runReact(t, nil, schemas.Job{}, raw("edit", string(encoded)), raw("submit", ""))
	var got map[string]string
	if err := json.Unmarshal(b.asked[0].Arguments, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"new_code": code, "path": " m.py"}, got); diff != "" {
		t.Error(diff)
	}
	// Null content stays empty, in the record and in the next request.
	if reply := res.Steps[3].Reply; reply.Message != "" {
		t.Errorf("message %q", reply.Message)
	}
	var body struct {
		Messages []struct {
			Role      string
			Content   *string
			ToolCalls []struct{ Function struct{ Arguments string } } `json:"tool_calls"`
		}
	}
	if err := json.Unmarshal(srv.Log()[1].Body, &body); err != nil {
		t.Fatal(err)
	}
	message := body.Messages[2]
	if message.Role != "assistant" || message.Content != nil && *message.Content != "" || message.ToolCalls[0].Function.Arguments != string(encoded) {
		t.Errorf("sent back as %+v", message)
	}
}

// Each request repeats the previous one byte for byte and appends to its messages, so
// that the server's prompt cache stays valid from turn to turn.
func TestWP7PromptGrowsByAppending(t *testing.T) {
	text := "I look."
	_, _, srv := runReact(t, nil, schemas.Job{},
		mock.Turn{Content: &text, Reasoning: "hm", ToolCalls: []mock.Call{{Name: "eval"}, {Name: "view", Arguments: map[string]any{"path": "m.py", "a": 1.0}}}},
		raw("pdb", `{ "command" : "b m.py:2" }`), mocktest.Text("I think."), raw("view", `{"broken`),
		raw("edit", `{"path":"m.py"}`), raw("eval", `{}`), raw("submit", `{}`))
	log := srv.Log()
	if len(log) != 7 {
		t.Fatalf("%d requests", len(log))
	}
	var before map[string]json.RawMessage
	for i, ex := range log {
		var body map[string]json.RawMessage
		if err := json.Unmarshal(ex.Body, &body); err != nil {
			t.Fatal(err)
		}
		for name, value := range before {
			if name == "messages" {
				if !bytes.HasPrefix(body[name], bytes.TrimSuffix(value, []byte("]"))) {
					t.Errorf("request %d does not begin with the one before it:\n%s\n%s", i, value, body[name])
				}
			} else if !bytes.Equal(value, body[name]) {
				t.Errorf("request %d: %s was %s, is %s", i, name, value, body[name])
			}
		}
		before = body
	}
}

// A turn makes one request: counting and trimming tokens need no further ones. The
// record holds the token counts that the server reports.
func TestWP8TokensAreTheServersCount(t *testing.T) {
	turn := func(n int64) mock.Turn {
		return mock.Turn{ToolCalls: []mock.Call{{Name: "view", Arguments: map[string]any{"path": strings.Repeat("x", int(n))}}}, Usage: &mock.Usage{Prompt: 1000 * n, Completion: n, Cached: 900 * n}}
	}
	end := raw("submit", "")
	end.Usage = &mock.Usage{Prompt: 9, Completion: 9}
	_, res, srv := runReact(t, nil, schemas.Job{}, turn(1), turn(2), turn(3), end)
	if n := len(srv.Log()); n != 4 {
		t.Errorf("%d requests for 4 turns", n)
	}
	for i := range 3 {
		n := int64(i + 1)
		if u := res.Steps[3+i].Reply.Usage; u == nil || u.Prompt != 1000*n || u.Completion != n || u.Cached != 900*n {
			t.Errorf("turn %d: %+v", i, u)
		}
	}
}

// A job's seed is derived from the job and differs between attempts. The agent sends it
// to the model only if "seeded" is set.
func TestA27SeedOfAJobReachesTheModel(t *testing.T) {
	job := func(attempt int) schemas.Job { return schemas.NewJob("run", task(), "agent", attempt) }
	if a, same, other := job(0), job(0), job(1); a != same || a.Seed == other.Seed || a.Seed < 0 {
		t.Errorf("seeds %d, %d, %d", a.Seed, same.Seed, other.Seed)
	}
	sent := func(j schemas.Job, with map[string]any) (seed *int64) {
		_, _, srv := runReact(t, with, j, raw("submit", ""))
		var body struct{ Seed *int64 }
		if err := json.Unmarshal(srv.Log()[0].Body, &body); err != nil {
			t.Fatal(err)
		}
		return body.Seed
	}
	seeded := map[string]any{"seeded": true}
	first, again, other := sent(job(0), seeded), sent(job(0), seeded), sent(job(1), seeded)
	if first == nil || *first != job(0).Seed&(1<<31-1) || *again != *first || *other == *first {
		t.Errorf("sent %v, %v, %v", first, again, other)
	}
	if got := sent(job(0), nil); got != nil {
		t.Errorf("sent %d although not asked to", *got)
	}
}
