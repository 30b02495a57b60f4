package policies_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/schemas"
)

// The name of each test in this file contains the number of a row of docs/internals/parity.md.

// An agent records its settings. It refuses an unknown setting, and the error lists the known ones.
func TestF1SettingsAreDeclared(t *testing.T) {
	b := &echoEnv{}
	res, _ := runWithReplies(t, "react", map[string]any{"sampling": map[string]any{"temperature": 0.5}, "history": map[string]any{"max_steps": 7}}, b, raw("submit", `{}`))
	if !strings.Contains(res.Agent.ConfigJSON, `"max_steps":7`) || !strings.Contains(res.Agent.SamplingJSON, `"temperature":0.5`) {
		t.Errorf("%+v", res.Agent)
	}
	for _, kind := range []string{"react", "simple", "rewrite", "debug5", "replay"} {
		_, err := agents.Registry.Config(kind, map[string]any{"max_history_steps_cutof": 3})
		if err == nil || !strings.Contains(err.Error(), `unknown field "max_history_steps_cutof": known are`) || !strings.Contains(err.Error(), "history") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// An alias selects an agent, and the record has the agent's kind instead of the alias. A name that
// is not registered is refused, and loads no code.
func TestF2AgentsByName(t *testing.T) {
	for alias, kind := range map[string]string{
		"froggy": "react", "froggy_agent": "react", "react": "react", "simple_agent": "simple", "solution_agent": "solution",
		"rewrite_agent": "rewrite", "debug_5_agent": "debug5", "debug_5": "debug5",
	} {
		if spec, ok := agents.Registry.Lookup(alias); !ok || spec.Kind != kind {
			t.Errorf("%s is %q, want %s", alias, spec.Kind, kind)
		}
	}
	b := &echoEnv{}
	if res, _ := runWithReplies(t, "froggy", nil, b, raw("submit", `{}`)); res.Agent.Name != "react" {
		t.Errorf("recorded as %s", res.Agent.Name)
	}
	_, err := agents.Registry.Build("my.package.Agent", nil, agents.Deps{Task: task()})
	if err == nil || !strings.Contains(err.Error(), `unknown agent "my.package.Agent": choose one of baseline, debug5, human,`) || strings.Contains(err.Error(), "froggy") {
		t.Error(err)
	}
}

// The prompts are rendered once and do not change. Each request contains all observations so far.
func TestF5PromptsAreRenderedOnce(t *testing.T) {
	b := &echoEnv{extra: []schemas.Observation{{Source: "eval", Text: "2 failed"}}}
	_, srv := runWithReplies(t, "react", nil, b, raw("view", `{"path":"a"}`), raw("view", `{"path":"b"}`), raw("submit", `{}`))
	log := requestBodies(t, srv)
	if len(log) != 3 {
		t.Fatalf("%d requests", len(log))
	}
	for i, body := range log {
		if diff := cmp.Diff(log[0].Messages[:2], body.Messages[:2]); diff != "" || len(body.Messages) != 2+2*i {
			t.Errorf("request %d: %d messages %s", i, len(body.Messages), diff)
		}
	}
	if got := log[2].Messages[5].Content; got != "view {\"path\":\"b\"}\n\n2 failed" {
		t.Errorf("%q", got)
	}
}

// The solution agent skips steps whose tools are missing, and requires a tool that edits.
func TestF10SolutionChecksWhatThereIs(t *testing.T) {
	for tools, want := range map[string][]string{
		"eval pdb edit submit": {"eval", "pdb", "pdb", "pdb", "pdb", "edit", "eval", "submit"},
		"eval edit submit":     {"eval", "edit", "eval", "submit"},
		"edit submit":          {"edit", "submit"},
	} {
		b := &echoEnv{}
		res := episode(t, b, build(t, "solution_agent", nil, agents.Deps{Gold: &agents.Privileged{GoldPatch: gold}, Tools: offered(strings.Fields(tools)...)}))
		var names []string
		for _, c := range b.asked {
			names = append(names, c.Name)
		}
		if !slices.Equal(names, want) || res.ExitReason != schemas.ExitSubmitted {
			t.Errorf("%s: %v, exit %s", tools, names, res.ExitReason)
		}
	}
	_, err := agents.Registry.Build("solution", nil, agents.Deps{Task: task(), Gold: &agents.Privileged{GoldPatch: gold}, Tools: offered("eval")})
	if err == nil || !strings.Contains(err.Error(), "agent.tools") {
		t.Error(err)
	}
	// The agent gives up if the tests pass before the patch, or if the debugger does not work.
	for why, b := range map[string]*echoEnv{"The tests pass before": {passed: true}, "The debugger does not work": {broken: "pdb"}} {
		res := episode(t, b, build(t, "solution", nil, agents.Deps{Gold: &agents.Privileged{GoldPatch: gold}}))
		if last := res.Steps[len(res.Steps)-1]; res.ExitReason != schemas.ExitGaveUp || !strings.HasPrefix(last.Reply.Message, why) {
			t.Errorf("exit %s, %+v", res.ExitReason, last.Reply)
		}
	}
}
