package policies_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/internal/mocktest"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/mock"
	"github.com/tracesmith/tracesmith/schemas"
)

// seekerEnv is an echoEnv with the tools of a seeker and a solver, whose view shows
// one line.
type seekerEnv struct{ echoEnv }

func (l *seekerEnv) Reset(ctx context.Context, soft bool) (env.Info, error) {
	info, err := l.echoEnv.Reset(ctx, soft)
	info.Tools = seekerEnvTools()
	return info, err
}

func seekerEnvTools() []schemas.ToolSchema {
	var out []schemas.ToolSchema
	for _, name := range []string{"eval", "view", "grep", "listdir", "pdb", "edit", "submit"} {
		out = append(out, schemas.ToolSchema{Name: name, Description: name, Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)})
	}
	return out
}

func (l *seekerEnv) Repeat(ctx context.Context, call schemas.ToolCall, _ schemas.Observation) (env.Info, error) {
	return l.Step(ctx, call)
}

func (l *seekerEnv) Step(ctx context.Context, c schemas.ToolCall) (env.Info, error) {
	info, err := l.echoEnv.Step(ctx, c)
	if c.Name == "view" {
		o := schemas.Observation{Source: "view", Text: "m.py, lines 2-2 of 3\n    2  x = 1\n", Targets: []string{"m.py:2"}}
		info.Observation, info.Observations = o, []schemas.Observation{o}
	}
	return info, err
}

// handOver is a turn that hands over line 2 of m.py, which it says step showed.
func handOver(step int) mock.Turn {
	return mocktest.Tool("handover", map[string]any{"cause": "x is 1", "cause_steps": []int{step}, "files": []any{map[string]any{"path": "m.py", "start": 2, "step": step}}})
}

// seekAndSolve runs the seeker against a server with one script for each model.
func seekAndSolve(t *testing.T, with map[string]any, seek, solve []mock.Turn) (*seekerEnv, agents.Result, *mocktest.Server) {
	t.Helper()
	srv := mocktest.Serve(t, mock.Script{Sessions: []mock.Session{
		{Model: "seek", Turns: seek, Repeat: true, Rewrites: true}, {Model: "solve", Turns: solve, Repeat: true}}})
	client := func(model string) llms.Client {
		c, err := llms.Providers.Build("openai", map[string]any{"base_url": srv.URL, "model": model}, llms.Deps{})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	warm := 0.9
	if with == nil {
		with = map[string]any{}
	}
	with["solver_model"] = "second"
	p := build(t, "seeker", with, agents.Deps{Client: client("seek"), Tools: seekerEnvTools(), Seed: 3,
		Models: map[string]agents.Model{"second": {Client: client("solve"), Sampling: llms.Sampling{Temperature: &warm}}}})
	l := &seekerEnv{}
	return l, episode(t, l, p), srv
}

// The exit reasons of a seeker, and the number of replies in each conversation.
func TestSeekerEnds(t *testing.T) {
	look, used := mocktest.Tool("view", map[string]any{"path": "m.py"}), mocktest.Tool("view", map[string]any{"path": "n.py"})
	used.Usage = &mock.Usage{Prompt: 90, Completion: 10}
	for name, c := range map[string]struct {
		with        map[string]any
		seek, solve []mock.Turn
		exit        string
		replies     string // number of the seeker's replies, and of the solver's
	}{
		"solved":                    {nil, []mock.Turn{look, handOver(3)}, []mock.Turn{mocktest.Tool("edit", nil), mocktest.Tool("submit", nil)}, schemas.ExitSubmitted, "2 2"},
		"steps used up":             {map[string]any{"seek_steps": 3}, []mock.Turn{look}, nil, schemas.ExitNoHandover, "5 0"},
		"handover after the budget": {map[string]any{"seek_steps": 1}, []mock.Turn{look, handOver(2), handOver(3)}, []mock.Turn{mocktest.Tool("submit", nil)}, schemas.ExitSubmitted, "3 1"},
		"no second handover turn":   {map[string]any{"seek_steps": 1, "handover_turns": 1}, []mock.Turn{look, handOver(2), handOver(3)}, nil, schemas.ExitNoHandover, "2 0"},
		"tokens used up":            {map[string]any{"seek_tokens": 150, "handover_turns": 1}, []mock.Turn{used}, nil, schemas.ExitNoHandover, "3 0"},
		"no budget":                 {map[string]any{"seek_steps": 0, "seek_tokens": 0}, []mock.Turn{used}, nil, schemas.ExitMaxSteps, "50 0"},
		"solver without end":        {map[string]any{"solve_steps": 4}, []mock.Turn{look, handOver(3)}, []mock.Turn{mocktest.Tool("edit", nil)}, schemas.ExitMaxSteps, "2 4"},
		"solver may look":           {map[string]any{"solve_tools": []string{"view", "submit"}}, []mock.Turn{look, handOver(3)}, []mock.Turn{look, mocktest.Tool("submit", nil)}, schemas.ExitSubmitted, "2 2"},
	} {
		t.Run(name, func(t *testing.T) {
			_, res, _ := seekAndSolve(t, c.with, c.seek, c.solve)
			count := map[string]int{}
			for _, s := range res.Steps {
				if s.Reply != nil {
					count[s.Phase]++
				}
			}
			if got := fmt.Sprint(count["seek"], count["solve"]); res.ExitReason != c.exit || got != c.replies {
				t.Errorf("exit %s after %s replies, want %s after %s", res.ExitReason, got, c.exit, c.replies)
			}
		})
	}
}

// Each model has its own sampling, conversation and tools. The solver does not see the observations
// at the reset.
func TestSolverKnowsIssueAndPack(t *testing.T) {
	l, res, srv := seekAndSolve(t, map[string]any{"sampling": map[string]any{"temperature": 0.1}, "seek_steps": 2},
		[]mock.Turn{mocktest.Tool("edit", nil), mocktest.Tool("view", map[string]any{"path": "m.py"}), handOver(4)},
		[]mock.Turn{mocktest.Tool("handover", nil), mocktest.Tool("edit", nil), mocktest.Tool("submit", nil)})
	if res.ExitReason != schemas.ExitSubmitted || !slices.Equal(outline(l.asked), []string{`view {"path":"m.py"}`, "edit {}", "submit {}"}) {
		t.Fatalf("exit %s, executed %v", res.ExitReason, outline(l.asked))
	}
	if info := res.Agent; info.Model != "seek" || len(info.Phases) != 2 || info.Phases[1].Model != "solve" || !strings.Contains(info.ConfigJSON, `"temperature":0.9`) {
		t.Errorf("%+v", info)
	}
	for _, ex := range srv.Log() {
		var body struct {
			Model       string
			Temperature float64
			ToolChoice  any `json:"tool_choice"`
			Messages    []struct{ Role, Content string }
			Tools       []struct{ Function struct{ Name string } }
		}
		if err := json.Unmarshal(ex.Body, &body); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tool := range body.Tools {
			names = append(names, tool.Function.Name)
		}
		want, temperature := []string{"view", "grep", "listdir", "pdb", "handover"}, 0.1
		switch {
		case body.Model == "solve":
			want, temperature = []string{"edit", "submit"}, 0.9
			if text := string(ex.Body); strings.Contains(text, "1 failed") || strings.Contains(text, "This was step") {
				t.Errorf("the solver was sent %s", text)
			}
			if diff := cmp.Diff("x is wrong\n\n# Findings\n\nCause: x is 1 (step 4)\n\n# Code\n\nm.py, line 2 (step 4, view)\n    2  x = 1", body.Messages[1].Content); diff != "" {
				t.Error(diff)
			}
		case ex.Turn == 2: // the budget is used up
			want = []string{"handover"}
			if fmt.Sprint(body.ToolChoice) != "map[function:map[name:handover] type:function]" {
				t.Errorf("tool_choice %v", body.ToolChoice)
			}
		}
		if !slices.Equal(names, want) || body.Temperature != temperature || body.ToolChoice != nil && len(want) > 1 {
			t.Errorf("%s, turn %d: tools %v, %v, tool_choice %v", body.Model, ex.Turn, names, body.Temperature, body.ToolChoice)
		}
	}
}

func TestSeekerSettings(t *testing.T) {
	client, err := llms.Providers.Build("openai", map[string]any{"base_url": "http://127.0.0.1:1/v1", "model": "m"}, llms.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	for want, with := range map[string]map[string]any{
		"seek_tools: submit is not for the seeker":                 {"seek_tools": []string{"submit"}},
		`solve_tools: unknown tool "bash": list it in agent.tools`: {"solve_tools": []string{"bash"}},
		"solve_tools: a solver cannot hand over":                   {"solve_tools": []string{"handover"}},
		"must not be negative, handover_turns at least 1":          {"handover_turns": 0},
		`solver_model: there is no "other" in section models`:      {"solver_model": "other"},
		`unknown field "seek_step"`:                                {"seek_step": 1},
	} {
		_, err := agents.Registry.Build("seeker", with, agents.Deps{Client: client, Tools: seekerEnvTools()})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", with, err, want)
		}
	}
	needs, err := agents.NeedsOf("seeker", map[string]any{"solver_model": "b"})
	if err != nil || !slices.Equal(needs.Models, []string{"b"}) || len(needs.Tools) != 1 || needs.Tools[0].Name != "handover" {
		t.Error(needs, err)
	}
	if plain, err := agents.NeedsOf("react", nil); err != nil || plain.Tools != nil {
		t.Error(plain, err)
	}
}

// If the server does not report the tokens of a call, the seeker counts them.
func TestSeekerCountsUnreportedTokens(t *testing.T) {
	client, err := llms.Providers.Build("openai", map[string]any{"base_url": "http://127.0.0.1:1/v1", "model": "m"}, llms.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	p := build(t, "seeker", map[string]any{"seek_tokens": 1000}, agents.Deps{Client: client, Tools: seekerEnvTools()}).(agents.Phased)
	for words, want := range map[int]int{1: 5, 2000: 1} { // length of the problem; number of tools that the model still sees
		tr := &agents.Transcript{Task: task(), Phase: "seek", Steps: []schemas.Step{
			{Turn: -1, Call: -1, Source: "user", Phase: "seek", Text: strings.Repeat("wrong ", words)},
			{Index: 1, Call: -1, Source: "agent", Phase: "seek", Reply: &schemas.Reply{Message: "hm", LLMCalls: 1}, Observation: &schemas.Observation{Text: "call a tool"}},
		}}
		ph, err := p.Phase(tr, seekerEnvTools())
		if err != nil || len(ph.Tools) != want {
			t.Errorf("after %d words %d tools, want %d, %v", words, len(ph.Tools), want, err)
		}
	}
}
