package configs

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// A configuration is sent to workers as JSON. The round trip must not lose anything but Places, which
// names the lines of the configuration files for messages.
func TestConfigurationsSurviveJSON(t *testing.T) {
	docs := map[string]string{"rich": `
sandbox: {memory: 2GiB, disk: -1, cpus: 1.5}
agent: {kind: react, tools: [bash, {submit: {eval_on_submit: true}}], wall: 90s, with: {Case: {Kept: [1, 2.5, x]}}}
llm: {model: m, base_url: "http://h/v1", api_key: "env:KEY", temperature: 0.2, headers: {X-One: "env:ONE"}, extra: {Top: 1}}
prices: [{model: m, input: 1, output: 2.5}]
run: {staging: "s3://b/p", workers: 7}
engine: {lease: 90s}
`}
	for _, name := range Profiles() {
		docs[name] = ""
	}
	for name, doc := range docs {
		src := Source{Name: name + ".yaml", Data: []byte(doc)}
		if doc == "" {
			var err error
			if src, err = ReadSource(name); err != nil {
				t.Fatal(err)
			}
		}
		cfg, err := Load(Input{Sources: []Source{src}})
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(cfg)
		if err != nil {
			t.Fatal(err)
		}
		var back Config
		if err := json.Unmarshal(raw, &back); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		again, err := json.Marshal(back)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(raw), string(again)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(cfg, back, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Config{}, "Places"), cmp.FilterPath(func(p cmp.Path) bool {
			return p.Last().Type().String() == "configs.Block" // numbers become float64 on the way, and are checked as text above
		}, cmp.Ignore())); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
