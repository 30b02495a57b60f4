package policies_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/agents"
	_ "github.com/tracesmith/tracesmith/agents/policies"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/internal/mocktest"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/middle"
	"github.com/tracesmith/tracesmith/llms/mock"
	_ "github.com/tracesmith/tracesmith/llms/providers"
	"github.com/tracesmith/tracesmith/schemas"
)

// Numbers such as A20 in the names of tests are rows of docs/internals/parity.md.

// echoEnv is an environment that answers every call with the call itself, and whose tests pass after
// the first edit.
type echoEnv struct {
	extra   []schemas.Observation // additional observations of every call
	passed  bool
	broken  string               // a tool that always fails
	failing bool                 // the tests fail even after an edit
	tools   []schemas.ToolSchema // nil: eval
	asked   []schemas.ToolCall
}

func (b *echoEnv) Reset(context.Context, bool) (env.Info, error) {
	own := schemas.Observation{Source: "env", Text: "instructions"}
	testRun := schemas.Observation{Source: "eval", Text: "1 failed"}
	if b.tools == nil {
		b.tools = []schemas.ToolSchema{{Name: "eval", Description: "run the tests", Parameters: json.RawMessage(`{"type":"object"}`)}}
	}
	return env.Info{Observation: own, Observations: []schemas.Observation{own, testRun}, Tools: b.tools}, nil
}

func (b *echoEnv) Repeat(ctx context.Context, call schemas.ToolCall, _ schemas.Observation) (env.Info, error) {
	return b.Step(ctx, call)
}

func (b *echoEnv) Step(_ context.Context, c schemas.ToolCall) (env.Info, error) {
	b.asked = append(b.asked, c)
	o := schemas.Observation{Source: c.Name, Text: c.Name + " " + string(c.Arguments)}
	if c.Invalid != "" || c.Name == b.broken {
		o = schemas.Observation{Source: c.Name, Text: "broken", IsError: true, ErrorClass: schemas.ErrBadArguments}
	} else if c.Name == "edit" {
		b.passed = true
	}
	state := schemas.EnvState{Terminated: c.Name == "submit"}
	if c.Name == "eval" {
		passed := b.passed && !b.failing
		state.EvalPassed = &passed
	}
	return env.Info{Observation: o, Observations: append([]schemas.Observation{o}, b.extra...), State: state}, nil
}

func (b *echoEnv) NoCall(context.Context) (env.Info, error) {
	return env.Info{Observation: schemas.Observation{Source: "env", Text: "call a tool", IsError: true, ErrorClass: schemas.ErrNoToolCall}}, nil
}
func (b *echoEnv) Patch(context.Context) ([]byte, string, error) { return nil, "", nil }
func (b *echoEnv) Key() schemas.EnvKey                           { return schemas.EnvKey{} }
func (b *echoEnv) Close(context.Context) error                   { return nil }

const gold = "diff --git a/m.py b/m.py\n--- a/m.py\n+++ b/m.py\n@@ -1,3 +1,3 @@\n import os\n-x = 1\n+x = 2\n y = 3\n"

func task() schemas.Task {
	return schemas.Task{ID: "t1", InstanceID: "one", Instructions: "x is wrong", Entrypoint: "pytest", Workdir: "/testbed"}
}

func build(t *testing.T, kind string, with map[string]any, deps agents.Deps) agents.Policy {
	t.Helper()
	deps.Task = task()
	p, err := agents.Registry.Build(kind, with, deps)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func episode(t *testing.T, e env.Env, p agents.Policy) agents.Result {
	t.Helper()
	res, err := agents.Run(t.Context(), agents.Config{Env: e, Policy: p, Task: task(), Limits: agents.Limits{MaxSteps: 50}})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func outline(asked []schemas.ToolCall) []string {
	var out []string
	for _, c := range asked {
		out = append(out, c.Name+" "+string(c.Arguments))
	}
	return out
}

// An episode with a model over HTTP. The mock server checks that each call is answered once, that
// messages are in order, and that the prefix never changes.
func TestReactOverHTTP(t *testing.T) {
	text := func(s string) *string { return &s }
	srv := mocktest.Serve(t, mock.Script{Sessions: []mock.Session{{Model: "m", Tag: "expert Python debugger", Turns: []mock.Turn{
		{Content: text("Let me see it fail."), Reasoning: "hm", ReasoningField: "reasoning", Usage: &mock.Usage{Prompt: 1000, Completion: 10, Cached: 500},
			ToolCalls: []mock.Call{{Name: "eval"}, {ID: text(""), Name: "view", Arguments: map[string]any{"path": "m.py"}}}},
		mocktest.Text("I think I know."),
		{ToolCalls: []mock.Call{{Name: "edit", Raw: text(`{"path": "m.py`)}}, Fault: &mock.Fault{Status: 503, Body: "busy", Times: 2}},
		{ToolCalls: []mock.Call{{Name: "warp"}}},
		{ToolCalls: []mock.Call{{Name: "submit"}}},
	}}}})
	client, err := llms.Providers.Build("openai", map[string]any{"base_url": srv.URL, "model": "m"}, llms.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	client, err = middle.Wrap([]middle.Endpoint{{Client: client}}, middle.Config{
		Retry:  middle.RetryConfig{Initial: 1}, // nanosecond
		Prices: middle.Prices{{Model: "m", Input: 1, Output: 2}}, Limited: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	p := build(t, "react", map[string]any{"sampling": map[string]any{"temperature": 0}, "seeded": true}, agents.Deps{Client: client, Seed: 1 << 40})
	b := &echoEnv{}
	res := episode(t, b, p)
	if res.ExitReason != schemas.ExitSubmitted {
		t.Fatal(res.ExitReason)
	}
	want := []string{"eval {}", `view {"path":"m.py"}`, "edit {}", "warp {}", "submit {}"}
	if diff := cmp.Diff(want, outline(b.asked)); diff != "" {
		t.Error(diff)
	}
	first := res.Steps[3]
	if first.Reply.Reasoning != "hm" || first.Reply.CostUSD == nil || *first.Reply.CostUSD != 0.00102 || first.Reply.PromptCount != 2 {
		t.Errorf("first reply %+v", first.Reply)
	}
	if id := res.Steps[4].ToolCall.ID; id != "call_0_1" {
		t.Errorf("made-up id %q", id)
	}
	malformed := res.Steps[6]
	if malformed.Reply.Retries != 2 || malformed.Reply.LLMCalls != 3 || malformed.ToolCall.Invalid == "" || malformed.ToolCall.Raw == "" {
		t.Errorf("malformed call %+v, reply %+v", malformed.ToolCall, malformed.Reply)
	}
	info := res.Agent
	if info.Policy != "model" || info.GoldUsed || info.Model != "m" || info.Provider != "openai" || !strings.Contains(info.SamplingJSON, `"temperature":0`) {
		t.Errorf("info %+v", info)
	}
	log := srv.Log()
	var body struct {
		Seed     int64
		Messages []struct{ Role, Content string }
	}
	if err := json.Unmarshal(log[0].Body, &body); err != nil {
		t.Fatal(err)
	}
	if body.Seed != 0 { // 1<<40 has no bits in the range servers take
		t.Errorf("seed %d", body.Seed)
	}
	if got := body.Messages[1].Content; got != "x is wrong\n\nThe tests are run with: pytest\n\n1 failed" {
		t.Errorf("problem %q", got)
	}
	if log[0].SessionID == "" {
		t.Error("no session id was sent")
	}
}

func TestA20SolutionAppliesTheGoldPatch(t *testing.T) {
	p := build(t, "solution", nil, agents.Deps{Gold: &agents.Privileged{GoldPatch: gold}})
	b := &echoEnv{}
	res := episode(t, b, p)
	want := []string{"eval {}", `pdb {"command":"b m.py:2"}`, `pdb {"command":"c"}`, `pdb {"command":"restart"}`, `pdb {"command":"w"}`,
		`edit {"end":2,"new_code":"x = 2\n","path":"m.py","start":2}`, "eval {}", "submit {}"}
	if diff := cmp.Diff(want, outline(b.asked)); diff != "" {
		t.Error(diff)
	}
	if res.ExitReason != schemas.ExitSubmitted || !res.Agent.GoldUsed || res.Agent.Policy != "solution" || !b.asked[5].GoldEdit || b.asked[4].GoldEdit {
		t.Errorf("exit %s, %+v", res.ExitReason, res.Agent)
	}
	for _, broken := range []string{"pdb", "edit"} {
		b := &echoEnv{broken: broken}
		res := episode(t, b, build(t, "solution", nil, agents.Deps{Gold: &agents.Privileged{GoldPatch: gold}}))
		last := res.Steps[len(res.Steps)-1]
		if res.ExitReason != schemas.ExitGaveUp || last.Reply.Message == "" {
			t.Errorf("without %s: exit %s", broken, res.ExitReason)
		}
	}
	res = episode(t, &echoEnv{passed: true}, build(t, "solution", nil, agents.Deps{Gold: &agents.Privileged{GoldPatch: gold}}))
	if res.ExitReason != schemas.ExitGaveUp || len(res.Steps) != 4 {
		t.Errorf("tests that already pass: exit %s, %d steps", res.ExitReason, len(res.Steps))
	}
}

func TestScriptedAndNoop(t *testing.T) {
	file := filepath.Join(t.TempDir(), "calls.yaml")
	if err := os.WriteFile(file, []byte("- {tool: eval, message: first}\n- {tool: view, arguments: {path: m.py, start: 1}}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	inline := []any{map[string]any{"tool": "eval", "message": "first"}, map[string]any{"tool": "view", "arguments": map[string]any{"path": "m.py", "start": 1}}}
	fromFile, fromConfig := build(t, "scripted", map[string]any{"file": file}, agents.Deps{}), build(t, "scripted", map[string]any{"calls": inline}, agents.Deps{})
	if diff := cmp.Diff(fromFile.Info(), fromConfig.Info()); diff != "" {
		t.Errorf("the same calls give different agents: %s", diff)
	}
	b := &echoEnv{}
	res := episode(t, b, fromFile)
	if diff := cmp.Diff([]string{"eval {}", `view {"path":"m.py","start":1}`}, outline(b.asked)); diff != "" || res.ExitReason != schemas.ExitGaveUp {
		t.Errorf("exit %s %s", res.ExitReason, diff)
	}
	if res.Steps[2].Reply.Message != "first" || res.Steps[0].Text != "x is wrong" {
		t.Errorf("steps %+v", res.Steps[:2])
	}
	b = &echoEnv{}
	if res := episode(t, b, build(t, "noop", nil, agents.Deps{})); res.ExitReason != schemas.ExitSubmitted || len(b.asked) != 1 {
		t.Errorf("noop: exit %s, %v", res.ExitReason, outline(b.asked))
	}
}

func TestNeeds(t *testing.T) {
	for kind, want := range map[string]agents.Needs{
		"react": {Model: true}, "solution": {Gold: true}, "scripted": {}, "noop": {},
	} {
		if got, err := agents.NeedsOf(kind, nil); !cmp.Equal(got, want) || err != nil {
			t.Errorf("%s needs %+v, want %+v (%v)", kind, got, want, err)
		}
	}
}

func TestSettings(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("- {tol: eval}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kind string
		with map[string]any
		want string
	}{
		{"react", nil, "no model is configured"},
		{"solution", nil, "no gold patch"},
		{"scripted", nil, "either file or calls"},
		{"scripted", map[string]any{"file": "/nowhere.yaml"}, "opening the script"},
		{"scripted", map[string]any{"file": bad}, "must be a list of"},
		{"scripted", map[string]any{"calls": []any{map[string]any{"message": "x"}}}, "call 1 has no tool"},
		{"noop", map[string]any{"x": 1}, "takes no settings"},
	} {
		_, err := agents.Registry.Build(c.kind, c.with, agents.Deps{Task: task()})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.kind, err, c.want)
		}
	}
}
