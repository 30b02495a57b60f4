package wire

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/llmtest"
	"github.com/tracesmith/tracesmith/schemas"
)

// No retries means that the model is asked once, and that its failure is told.
func TestWC41NoRetriesIsOneCall(t *testing.T) {
	srv := llmtest.Serve(t, llmtest.Script{Sessions: []llmtest.Session{{Turns: []llmtest.Turn{
		{Fault: &llmtest.Fault{Status: 500, Body: `{"error":{"message":"boom"}}`}},
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

// Whatever a configuration refers to as a secret is known to the redaction.
func TestSecretsOfModels(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("from-the-file\nrest"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := configs.Config{}
	cfg.Agent.Kind = "null"
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
