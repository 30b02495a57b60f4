package configs

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestToolsTakeSettings(t *testing.T) {
	want := []Tool{{Name: "bash", With: Block{"timeout": 120.0, "Setup": []any{"echo A"}}}, {Name: "view"}, {Name: "eval"}}
	got, err := load(t, nil, nil, "agent:\n  tools:\n  - bash: {timeout: 120, Setup: [echo A]}\n  - view\n  - eval:\n")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got.Agent.Tools); d != "" {
		t.Errorf("file (-want +got)\n%s", d)
	}
	if got, err = load(t, nil, []string{"agent.tools=[bash: {timeout: 120, Setup: [echo A]}, view, {eval: }]"}, "{}"); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got.Agent.Tools); d != "" {
		t.Errorf("override (-want +got)\n%s", d)
	}
	parsed, err := ParseTools("{bash: {timeout: 120, Setup: [echo A]}},view,{eval: }")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, parsed); d != "" {
		t.Errorf("flag (-want +got)\n%s", d)
	}
	raw, err := json.Marshal(got.Agent.Tools)
	if err != nil || string(raw) != `[{"bash":{"Setup":["echo A"],"timeout":120}},"view","eval"]` {
		t.Errorf("written as %s, %v", raw, err)
	}
	var again []Tool
	if err := json.Unmarshal(raw, &again); err != nil || cmp.Diff(want, again) != "" {
		t.Errorf("read back as %+v, %v", again, err)
	}
	for text, says := range map[string]string{
		"[":              "not a list of tools",
		"{a: {}, b: {}}": "an item must be a tool's name",
		"bash: slow":     `bash must have a block of settings, not "slow"`,
		"{7: {a: b}":     "not a list of tools",
		"[a]":            "an item must be",
	} {
		if _, err := ParseTools(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %s", text, err, says)
		}
	}
}
