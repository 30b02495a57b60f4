package wire

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/internal/mocktest"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/mock"
	"github.com/tracesmith/tracesmith/schemas"
)

// Without retries the model is called once, and its failure is reported.
func TestNoRetriesMeansOneCall(t *testing.T) {
	srv := mocktest.Serve(t, mock.Script{Sessions: []mock.Session{{Turns: []mock.Turn{
		{Fault: &mock.Fault{Status: 500, Body: `{"error":{"message":"boom"}}`}},
	}}}})
	cfg := configs.Default()
	cfg.Agent.Kind, cfg.LLM.BaseURL, cfg.LLM.Model, cfg.LLM.MaxRetries = "react", srv.URL, "m", 0
	a, err := NewAgent(cfg, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	task := schemas.Task{ID: "t", InstanceID: "one", Instructions: "fix it", Entrypoint: "pytest"}
	p, err := a.Policy(schemas.NewJob("run", task, "agent", 0), task)
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Next(t.Context(), &agents.Transcript{Task: task, Steps: []schemas.Step{
		{Turn: -1, Call: -1, Source: "system", Text: "sys"}, {Turn: -1, Call: -1, Source: "user", Text: "fix it"},
	}})
	if n := len(srv.Log()); llms.ClassOf(err) != llms.ClassServer || n != 1 {
		t.Errorf("%d calls, %v", n, err)
	}
}

// Redaction knows every secret that a configuration refers to.
func TestSecretsOfModels(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("from-the-file\nrest"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := configs.Config{}
	cfg.Agent.Kind = "noop"
	cfg.LLM = configs.LLM{APIKey: "file:" + file, Headers: map[string]string{"X-Team": "blue", "X-Api-Key": "env:A"},
		With: configs.Block{"client_secret": "env:B", "api_version": "2024-10-21"}}
	a, err := NewAgent(cfg, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	got := a.Secrets(func(name string) string { return map[string]string{"A": "from-a", "B": "from-b"}[name] })
	slices.Sort(got)
	if !slices.Equal(got, []string{"from-a", "from-b", "from-the-file"}) {
		t.Errorf("got %v", got)
	}
}

// The configured traits of a model reach the prompts, and must not change during a run.
func TestTraitsOfAModelReachThePrompts(t *testing.T) {
	text := "hm"
	srv := mocktest.Serve(t, mock.Script{Sessions: []mock.Session{{Turns: []mock.Turn{{Content: &text}}}}})
	cfg := configs.Default()
	cfg.Agent.Kind, cfg.LLM.BaseURL, cfg.LLM.Model = "react", srv.URL, "m"
	plain, err := NewAgent(cfg, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	cfg.LLM.ContextLimit, cfg.LLM.Tokenizer, cfg.LLM.SystemRole = 2000, "cl100k_base", new(false)
	a, err := NewAgent(cfg, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	if _, had := plain.Identity(nil)["traits"]; had || a.Identity(nil)["traits"] == "" {
		t.Errorf("identities %v and %v", plain.Identity(nil), a.Identity(nil))
	}
	task := schemas.Task{ID: "t", InstanceID: "one"}
	p, err := a.Policy(schemas.NewJob("run", task, "agent", 0), task)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := p.Next(t.Context(), &agents.Transcript{Task: task, Steps: []schemas.Step{
		{Index: 0, Turn: -1, Call: -1, Source: "system", Text: "sys"}, {Index: 1, Turn: -1, Call: -1, Source: "user", Text: "fix it"},
		{Index: 2, Turn: -1, Call: -1, Source: "env", Text: strings.Repeat("long ", 5000), Observation: &schemas.Observation{}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var body struct {
		Messages []struct{ Role, Content string }
	}
	if err := json.Unmarshal(srv.Log()[0].Body, &body); err != nil {
		t.Fatal(err)
	}
	if m := body.Messages; len(m) != 1 || m[0].Role != "user" || !strings.HasPrefix(m[0].Content, "sys\n\nfix it\n\nlong") || len(m[0].Content) > 8000 {
		t.Errorf("sent %d messages, the first of %d bytes", len(m), len(m[0].Content))
	}
	if op := reply.Context; op == nil || len(op.Trimmed) != 1 || op.SystemAs != "user" {
		t.Errorf("recorded %+v", op)
	}
	for limit, want := range map[int]string{100: "leaves no room for a prompt", 0: "llm.tokenizer: unknown vocabulary"} {
		cfg.LLM.MaxTokens = new(200)
		cfg.LLM.ContextLimit = limit
		if limit == 0 {
			cfg.LLM.Tokenizer = "words"
		}
		a, err := NewAgent(cfg, os.Getenv)
		if err == nil {
			_, err = a.Policy(schemas.Job{}, task)
		}
		cfg.LLM.Tokenizer = ""
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// Later settings win: the model's own block, section llm, the command line, and the
// agent's own sampling. A parameter that the model refuses is dropped, and each episode
// has its own session.
func TestLaterModelSettingsWin(t *testing.T) {
	srv := mocktest.Serve(t, mock.Script{Sessions: []mock.Session{{Turns: []mock.Turn{mocktest.Text("x")}, Repeat: true}}})
	file := filepath.Join(t.TempDir(), "run.yaml")
	text := `
models:
  mine: {model: m, base_url: "` + srv.URL + `", temperature: 0.1, max_tokens: 10, top_p: 0.1, extra: {top_k: 1, kept: 1}, with: {drop: [top_p]}}
llm: {model: mine, max_tokens: 20, extra: {top_k: 2}}
agent: {kind: react}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	src, err := configs.ReadSource(file)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(overrides ...string) map[string]any {
		t.Helper()
		cfg, err := configs.Load(configs.Input{Sources: []configs.Source{src}, Overrides: overrides})
		if err != nil {
			t.Fatal(err)
		}
		a, err := NewAgent(cfg, func(string) string { return "" })
		if err != nil {
			t.Fatal(err)
		}
		task := schemas.Task{ID: "t", InstanceID: "one", Instructions: "fix it", Entrypoint: "pytest"}
		p, err := a.Policy(schemas.NewJob("run", task, "agent", 0), task)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Next(t.Context(), &agents.Transcript{Task: task, Steps: []schemas.Step{
			{Turn: -1, Call: -1, Source: "user", Text: "fix it"},
		}}); err != nil {
			t.Fatal(err)
		}
		log := srv.Log()
		last := log[len(log)-1]
		if last.SessionID == "" {
			t.Error("no session is named")
		}
		srv.Reset()
		var body map[string]any
		if err := json.Unmarshal(last.Body, &body); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"messages", "tools", "model"} {
			delete(body, name)
		}
		return body
	}
	if diff := cmp.Diff(map[string]any{"temperature": 0.1, "max_tokens": 20.0, "top_k": 2.0, "kept": 1.0}, ask()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]any{"temperature": 0.3, "max_tokens": 20.0, "top_k": 3.0, "kept": 1.0}, ask("llm.temperature=0.3", "llm.extra.top_k=3", "llm.top_p=0.9")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]any{"temperature": 0.7}, ask("agent.with.sampling.temperature=0.7")); diff != "" {
		t.Error(diff)
	}
}
