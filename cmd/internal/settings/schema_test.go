package settings

import (
	"encoding/json"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/tracesmith/tracesmith/configs"
)

// resolve returns a schema after it was written to JSON and read again, as an editor reads it.
func resolve(t *testing.T, s *jsonschema.Schema) *jsonschema.Resolved {
	t.Helper()
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var read jsonschema.Schema
	if err := json.Unmarshal(raw, &read); err != nil {
		t.Fatal(err)
	}
	resolved, err := read.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

func parse(t *testing.T, text string) any {
	t.Helper()
	var doc any
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// The schema and the program accept and refuse the same configurations.
func TestSchemaAgreesWithTheProgram(t *testing.T) {
	t.Parallel()
	schema := resolve(t, Schema())
	valid := []string{
		"run: {workers: 3}\nsandbox: {memory: 2GiB, disk: 100, command_timeout: 1m30s}",
		"version: 1\nrun:\nagent: {kind: react, tools: [bash, {submit: {eval_on_submit: true}}], with: {}}",
		"llm: {model: m, base_url: 'http://a/v1', endpoints: [], price: {free: true}}",
		"models: {mine: {model: m, temperature: 0.5, headers: {X-A: b}}}",
		"mcp: {docs: {command: docs, args: [a], env: {TOKEN: 'env:TOKEN'}}}",
		"prices: [{model: m, input: 1, output: 2.5}]",
		"nats: {url: 'nats://a:1', tls: {ca: ca.pem}}",
	}
	for _, name := range configs.Profiles() {
		profile, _ := configs.Profile(name)
		valid = append(valid, string(profile))
	}
	for _, text := range valid {
		if err := schema.Validate(parse(t, text)); err != nil {
			t.Errorf("the schema refuses %s: %v", text, err)
		}
		if _, err := configs.Load(configs.Input{Sources: []configs.Source{{Name: "a.yaml", Data: []byte(text)}}}); err != nil {
			t.Errorf("the program refuses %s: %v", text, err)
		}
	}
	for _, text := range []string{
		"rnu: {}", "run: {wrokers: 3}", "run: {workers: three}", "run: {workers: 1.5}", "agent: {wall: soon}", "sandbox: {memory: lots}",
		"agent: {kind: 5}", "tasks: {ids: one}", "llm: {temperature: hot}", "prices: [{modell: m}]", "mcp: {docs: {comand: a}}",
		"models: {mine: {modell: m}}", "agent: {tools: [{a: {}, b: {}}]}",
	} {
		if err := schema.Validate(parse(t, text)); err == nil {
			t.Errorf("the schema accepts %s", text)
		}
		if _, err := configs.Load(configs.Input{Sources: []configs.Source{{Name: "a.yaml", Data: []byte(text)}}}); err == nil {
			t.Errorf("the program accepts %s", text)
		}
	}
	// Components, which the program checks when it builds them.
	for _, text := range []string{
		"agent: {kind: raect}", "sandbox: {kind: podman}", "tasks: {source: nowhere}", "llm: {provider: opnai}", "agent: {tools: [bahs]}",
		"agent: {kind: oracle, with: {colour: red}}", "agent: {tools: [{bash: {colour: red}}]}", "tasks: {source: dir, with: {pth: a}}",
	} {
		if err := schema.Validate(parse(t, text)); err == nil {
			t.Errorf("the schema accepts %s", text)
		}
	}
}

// The schema has the defaults and the meanings that the reference has.
func TestSchemaHasDefaultsAndMeanings(t *testing.T) {
	t.Parallel()
	raw, err := json.Marshal(Schema())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"default":"1m"`, `"default":2`, "Number of episodes that run at once.", `"default":"20GiB"`, `"enum":["aider"`} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("the schema does not contain %s", want)
		}
	}
}
