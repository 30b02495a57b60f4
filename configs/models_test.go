package configs

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const twoModels = `
models:
  Org/Big-2.5:
    endpoints: [{base_url: "http://a/v1", weight: 2, rpm: 5}, {base_url: "http://b/v1", api_key: env:B}]
    api_key: env:KEY
    rpm: 60
    temperature: 0.5
    headers: {X-Team: One}
    extra: {topK: 3, nested: {a: 1, b: 2}}
    price: {input: 1, output: 2}
  plain: {model: real-name, base_url: "http://c/v1", context_limit: 8192, tokenizer: cl100k_base, system_role: false}
`

func TestNamedModels(t *testing.T) {
	got, err := load(t, nil, []string{"llm.temperature=0", "llm.extra.nested.a=9"}, twoModels, "llm: {model: Org/Big-2.5, timeout: 9s}")
	if err != nil {
		t.Fatal(err)
	}
	l := got.LLM
	if l.Model != "Org/Big-2.5" || l.ModelsEntry != "Org/Big-2.5" || l.Timeout != 9*time.Second || *l.Temperature != 0 ||
		l.Provider != "openai" || l.MaxRetries != 6 {
		t.Errorf("llm %+v", l)
	}
	want := []LLMEndpoint{{BaseURL: "http://a/v1", APIKey: "env:KEY", Weight: 2, RPM: 5}, {BaseURL: "http://b/v1", APIKey: "env:B", RPM: 60}}
	if diff := cmp.Diff(want, l.AllEndpoints()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Block{"topK": 3, "nested": map[string]any{"a": 9, "b": 2}}, l.Extra); diff != "" {
		t.Error("the names of settings keep their case: ", diff)
	}
	if l.Headers["X-Team"] != "One" || l.Price.Output != 2 {
		t.Errorf("llm %+v", l)
	}
	// Changes in section llm do not affect the named model.
	if m := got.Models["Org/Big-2.5"]; *m.Temperature != 0.5 || m.Timeout != 5*time.Minute || m.Extra["nested"].(map[string]any)["a"] != 1 {
		t.Errorf("model %+v", m)
	}
	if m := got.Models["plain"]; m.Model != "real-name" || m.AllEndpoints()[0].BaseURL != "http://c/v1" || m.ContextLimit != 8192 || m.Tokenizer != "cl100k_base" || *m.SystemRole {
		t.Errorf("model %+v", m)
	}
	if got, err := load(t, nil, []string{"llm.model=plain"}, twoModels); err != nil || got.LLM.Model != "real-name" || got.LLM.BaseURL != "http://c/v1" {
		t.Errorf("%v: %+v", err, got.LLM)
	}
	if got, err := load(t, nil, []string{"llm.model=other"}, twoModels); err != nil || got.LLM.Model != "other" || got.LLM.ModelsEntry != "" {
		t.Errorf("%v: %+v", err, got.LLM)
	}
}

func TestProblemsOfModelsAreReportedOnce(t *testing.T) {
	_, err := load(t, nil, nil, "llm: {model: a}\nmodels: {a: {base_url: nowhere, api_key: sk-123, rpm: -1, timeout: 0s, context_limit: -1}}")
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{`models.a.base_url: "nowhere" is not`, "models.a.api_key: never write a key", "models.a.rpm", "models.a.timeout", "models.a.context_limit"} {
		if strings.Count(err.Error(), want) != 1 || strings.Contains(err.Error(), "llm.") {
			t.Errorf("want %q once in:\n%v", want, err)
		}
	}
	if _, err := load(t, nil, nil, "models: {a: {rpm: many}}"); err == nil || !strings.Contains(err.Error(), "run.yaml:1: models.a.rpm must be a whole number") {
		t.Errorf("got %v", err)
	}
}

// Problems name the place of the setting: a file, the named model that section llm was
// filled from, or an override, whose value is not shown.
func TestProblemsNameTheirPlace(t *testing.T) {
	_, err := load(t, nil, nil, "version: 1\nmodels:\n  a:\n    base_url: http://a/v1\n    max_tokens: 0\nrun: {workers: 0}\nllm: {model: a}\n")
	if err == nil || err.Error() != "run.yaml:6: run.workers: must be between 1 and 4096\nrun.yaml:5: models.a.max_tokens: must be at least 1; leave it out for the server's own limit" {
		t.Error(err)
	}
	got, err := load(t, []string{"TRACESMITH_LLM__MAX_RETRIES=2"}, []string{"llm.with.secret=env:X", "llm.top_p=0.5"}, twoModels, "llm: {model: plain}")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"models.Org/Big-2.5.extra.nested.b": "run.yaml:9",
		"llm.context_limit":                 "run.yaml:11",
		"llm.with.secret":                   "-p llm.with.secret",
		"llm.with.unknown":                  "run.yaml:1",
		"llm.max_retries":                   "TRACESMITH_LLM__MAX_RETRIES",
		"llm.model":                         "run.yaml:1",
		"nowhere.at.all":                    "",
	} {
		if at := got.Place(path); at != want {
			t.Errorf("the place of %s is %q, want %q", path, at, want)
		}
	}
}

func TestPricesAreNotNegative(t *testing.T) {
	_, err := load(t, nil, nil, "prices: [{model: a, input: 1, output: 1}, {model: b, input: -1, output: 1, cache_write_1h: -0.5}]\nmodels: {c: {model: m, base_url: 'http://a/v1', price: {input: 1, output: -2}}}\n")
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"prices[1].input: must be an amount in USD", "prices[1].cache_write_1h: must be an amount in USD", "models.c.price.output: must be an amount in USD"} {
		if strings.Count(err.Error(), want) != 1 {
			t.Errorf("want %q once in:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "prices[0]") {
		t.Error(err)
	}
}
