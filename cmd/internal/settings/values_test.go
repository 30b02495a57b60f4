package settings

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/configs"
)

func load(t *testing.T, in configs.Input) configs.Config {
	t.Helper()
	cfg, err := configs.Load(in)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// A new configuration file loads as it is, and with every commented setting that has a default, and
// changes nothing but the settings that it sets.
func TestTemplate(t *testing.T) {
	t.Parallel()
	text := Template(80)
	for line := range strings.Lines(text) {
		if len(strings.TrimSuffix(line, "\n")) > 80 {
			t.Errorf("longer than 80 columns: %s", line)
		}
	}
	uncommented := regexp.MustCompile(`(?m)^( *)#([a-z0-9_]+:( .*)?)$`).ReplaceAllString(text, "$1$2")
	uncommented = regexp.MustCompile(`(?ms)^mcp:.*?^$`).ReplaceAllString(uncommented, "") // a server needs more than its defaults
	if strings.Count(uncommented, "#") >= strings.Count(text, "#")-50 {
		t.Fatal("few settings are commented out")
	}
	want := configs.Default()
	want.Run.Name, want.Run.Dir = "my-run", "runs/my-run"
	for _, body := range []string{text, uncommented} {
		have := load(t, configs.Input{Sources: []configs.Source{{Name: "a.yaml", Data: []byte(body)}}})
		have.Places = nil
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("%s\n%s", diff, body)
		}
	}
	if err := resolve(t, Schema()).Validate(parse(t, text)); err != nil {
		t.Error(err)
	}
}

// Every value has the origin that won: the default, a file, the environment or -p.
func TestOrigins(t *testing.T) {
	t.Parallel()
	cfg := load(t, configs.Input{
		Sources: []configs.Source{
			{Name: "a.yaml", Data: []byte("run:\n  workers: 3\n  attempts: 2\nllm:\n  model: mine\nmodels:\n  mine:\n    base_url: http://a/v1\n")},
			{Name: "b.yaml", Data: []byte("run: {attempts: 4}\ntasks: {source: dir, with: {path: here}}\nprices:\n- {model: m, free: true}\n")},
		},
		Environ: []string{"TRACESMITH_RUN__NAME=env", "TRACESMITH_RUN__STARTS=5"}, Overrides: []string{"run.starts=6"},
	})
	values, err := Effective(cfg)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, v := range values {
		found[v.Key] = v.Text() + " " + v.Origin
	}
	for key, want := range map[string]string{
		"run.workers": "3 a.yaml:2", "run.attempts": "4 b.yaml:1", "run.name": "env TRACESMITH_RUN__NAME", "run.starts": "6 -p run.starts",
		"run.gradings": "0 default", "tasks.with.path": "here b.yaml:2", "agent.kind": "oracle default", "agent.with.gold_edit": "false default",
		"llm.base_url": "http://a/v1 a.yaml:8", "models.mine.base_url": "http://a/v1 a.yaml:8", "sandbox.setup_timeout": "20m default",
		"agent.tools": "[bash, view, grep, listdir, pdb, edit, eval, submit] default", "run.staging": " default",
	} {
		if found[key] != want {
			t.Errorf("%s: got %q, want %q", key, found[key], want)
		}
	}
	if !strings.HasSuffix(found["prices"], " b.yaml:3") {
		t.Errorf("prices: %q", found["prices"])
	}
}

// Secrets are hidden. References to secrets are shown.
func TestSecretsAreHidden(t *testing.T) {
	t.Parallel()
	cfg := configs.Default()
	cfg.NATS.URL = "nats://user:s3cret@a:1,nats://b:2"
	cfg.LLM.BaseURL = "http://user:s3cret@a/v1"
	cfg.LLM.APIKey = "env:KEY"
	cfg.LLM.Headers = map[string]string{"Authorization": "s3cret", "X-Team": "blue"}
	cfg.LLM.Extra = configs.Block{"nested": map[string]any{"password": "s3cret"}, "list": []any{"http://u:s3cret@h"}}
	values, err := Effective(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, v := range values {
		all.WriteString(v.Key + "=" + v.Text() + "\n")
	}
	for _, want := range []string{"nats.url=nats://hidden@a:1,nats://b:2", "llm.api_key=env:KEY", "blue", "llm.base_url=http://hidden@a/v1"} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("%s is missing in\n%s", want, all.String())
		}
	}
	if strings.Contains(all.String(), "s3cret") {
		t.Error(all.String())
	}
}
