package policies_test

import (
	"context"
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

// recordingOf returns the recording of an episode.
func recordingOf(res agents.Result) *agents.Recording {
	rec := &agents.Recording{Episode: "e1", Style: res.Agent.ToolCallStyle}
	for _, s := range res.Steps {
		if s.Turn < 0 {
			continue
		}
		if s.Reply != nil {
			turn := agents.RecordedTurn{Reply: schemas.Reply{Message: s.Reply.Message, Calls: s.Reply.Calls, Context: s.Reply.Context}, Phase: s.Phase}
			for _, set := range res.ToolSets {
				if schemas.Hash(set) == s.Reply.ToolSet {
					for _, tool := range set {
						turn.Tools = append(turn.Tools, tool.Name)
					}
				}
			}
			rec.Turns = append(rec.Turns, turn)
		}
		turn := &rec.Turns[len(rec.Turns)-1]
		turn.Answers = append(turn.Answers, agents.AnswerHash(s.Observation.Text))
	}
	return rec
}

// answersOf returns one line for each call after the opening: its conversation,
// tool and answer.
func answersOf(steps []schemas.Step) []string {
	var out []string
	for _, s := range steps {
		if s.Turn >= 0 && s.ToolCall != nil {
			out = append(out, s.Phase+" "+s.ToolCall.Name+": "+s.Observation.Text)
		}
	}
	return out
}

// changedEnv is a seekerEnv whose view shows a different line.
type changedEnv struct{ seekerEnv }

func (c *changedEnv) Repeat(ctx context.Context, call schemas.ToolCall, _ schemas.Observation) (env.Info, error) {
	return c.Step(ctx, call)
}

func (c *changedEnv) Step(ctx context.Context, call schemas.ToolCall) (env.Info, error) {
	info, err := c.seekerEnv.Step(ctx, call)
	if call.Name == "view" {
		info.Observation.Text = strings.Replace(info.Observation.Text, "    2  x = 1", "    3  x = 2", 1)
		info.Observations = []schemas.Observation{info.Observation}
	}
	return info, err
}

// A replay repeats both conversations of a seeker without asking a model, and gets
// the same answers. One handover is refused, and one shares its reply with another
// call.
func TestReplayOfBothConversations(t *testing.T) {
	both := handOver(3)
	both.ToolCalls = append(both.ToolCalls, mock.Call{Name: "grep"})
	_, whole, _ := seekAndSolve(t, map[string]any{"seek_steps": 2},
		[]mock.Turn{mocktest.Tool("view", map[string]any{"path": "m.py"}), handOver(2), both},
		[]mock.Turn{mocktest.Tool("edit", nil), mocktest.Tool("submit", nil)})
	rec := recordingOf(whole)
	deps := agents.Deps{Recording: rec, Tools: seekerEnvTools()}
	res := episode(t, &seekerEnv{}, build(t, "replay", map[string]any{"from": "run"}, deps))
	if diff := cmp.Diff(answersOf(whole.Steps), answersOf(res.Steps)); diff != "" || res.ExitReason != schemas.ExitSubmitted {
		t.Errorf("exit %s %s", res.ExitReason, diff)
	}
	if len(answersOf(res.Steps)) != 6 || res.Compared != 6 || len(res.Diverged) != 0 {
		t.Errorf("%d answers compared, diverged: %v", res.Compared, res.Diverged)
	}
	if a := res.Agent; a.Policy != "replay" || a.Model != "" || len(a.Phases) != 2 || a.Phases[1].Name != "solve" {
		t.Errorf("%+v", a)
	}
	deps.Tools = deps.Tools[2:]
	deps.Task = task()
	if _, err := agents.Registry.Build("replay", map[string]any{"from": "run"}, deps); err == nil || !strings.Contains(err.Error(), `cannot be repeated: unknown tool "view"`) {
		t.Error(err)
	}
}

// If the program has changed, the result lists the steps whose answers differ. The
// episode ends before a reply would go to the wrong conversation.
func TestReplayReportsDivergence(t *testing.T) {
	_, whole, _ := seekAndSolve(t, nil, []mock.Turn{mocktest.Tool("view", map[string]any{"path": "m.py"}), handOver(3)}, []mock.Turn{mocktest.Tool("submit", nil)})
	deps := agents.Deps{Recording: recordingOf(whole), Tools: seekerEnvTools()}
	l := &changedEnv{}
	res := episode(t, l, build(t, "replay", map[string]any{"from": "run"}, deps))
	last := res.Steps[len(res.Steps)-1]
	if !slices.Equal(res.Diverged, []int{3, 4}) || res.Compared != 2 || res.ExitReason != schemas.ExitGaveUp {
		t.Errorf("exit %s, compared %d, diverged %v\n%s", res.ExitReason, res.Compared, res.Diverged, strings.Join(answersOf(res.Steps), "\n"))
	}
	if want := "its next reply belongs to solve, and this episode is in seek"; !strings.Contains(last.Reply.Message, want) {
		t.Errorf("%q, want %q", last.Reply.Message, want)
	}
	// Steps that an earlier delivery recorded are also compared with the recording.
	rec := earlierSteps{steps: res.Steps[:4]}
	again, err := agents.Run(t.Context(), agents.Config{Env: &changedEnv{}, Policy: build(t, "replay", map[string]any{"from": "run"}, deps), Task: task(), Recorder: rec})
	if err != nil || !slices.Equal(again.Diverged, res.Diverged) || again.Replayed != 4 {
		t.Errorf("resumed after %d steps, diverged %v, %v", again.Replayed, again.Diverged, err)
	}
}

// A model continues a seeker's recording as a seeker, in either conversation.
func TestReplayContinuesAsASeeker(t *testing.T) {
	look := mocktest.Tool("view", map[string]any{"path": "m.py"})
	_, whole, _ := seekAndSolve(t, nil, []mock.Turn{look, handOver(3)}, []mock.Turn{mocktest.Tool("edit", nil), mocktest.Tool("submit", nil)})
	for turns, want := range map[int]struct{ asked, called string }{
		1: {"seek solve solve", "view handover edit submit"},
		2: {"solve solve", "view handover edit submit"},
		3: {"solve", "view handover edit submit"},
	} {
		srv := mocktest.Serve(t, mock.Script{Sessions: []mock.Session{
			{Model: "seek", Turns: []mock.Turn{look, handOver(3)}},
			{Model: "solve", Turns: []mock.Turn{mocktest.Tool("edit", nil), mocktest.Tool("submit", nil)}},
		}})
		client := func(model string) llms.Client {
			c, err := llms.Providers.Build("openai", map[string]any{"base_url": srv.URL, "model": model}, llms.Deps{})
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		with := map[string]any{"from": "run", "turns": turns, "then": "model", "solver_model": "second"}
		p := build(t, "replay", with, agents.Deps{Recording: recordingOf(whole), Tools: seekerEnvTools(), Client: client("seek"),
			Models: map[string]agents.Model{"second": {Client: client("solve")}}})
		res := episode(t, &seekerEnv{}, p)
		var asked, called []string
		for _, ex := range srv.Log() {
			asked = append(asked, ex.Model)
		}
		for _, s := range res.Steps {
			if s.ToolCall != nil {
				called = append(called, s.ToolCall.Name)
			}
		}
		if got := strings.Join(asked, " "); got != want.asked || strings.Join(called, " ") != want.called || res.ExitReason != schemas.ExitSubmitted {
			t.Errorf("after %d turns: exit %s, asked %s, called %v", turns, res.ExitReason, got, called)
		}
		if a := res.Agent; a.Name != "replay" || a.Policy != "model" || len(a.Phases) != 2 || a.Phases[1].Model != "solve" || res.Compared != turns {
			t.Errorf("%d compared, %+v", res.Compared, a)
		}
	}
}

// If the calls of a recording are written in its messages, the replay parses them
// from there. A model that continues it also writes its calls as text.
func TestReplayOfTexts(t *testing.T) {
	text := func(i int, body string) agents.RecordedTurn {
		return agents.RecordedTurn{Reply: schemas.Reply{Message: fmt.Sprintf("Turn %d.\n%s", i, body)}}
	}
	rec := &agents.Recording{Episode: "e1", Style: "text", Turns: []agents.RecordedTurn{
		text(0, "<function=view>\n<parameter=path>m.py</parameter>\n</function>\n<function=submit></function>"),
		text(1, "<function=edit>\n<parameter=path>m.py\n</function>"),
		text(2, "no call at all"),
	}}
	deps := agents.Deps{Recording: rec, Tools: seekerEnvTools()}
	b := &seekerEnv{}
	res := episode(t, b, build(t, "replay", map[string]any{"from": "run"}, deps))
	var classes []string
	for _, s := range res.Steps {
		if s.Observation != nil && s.Turn >= 0 {
			classes = append(classes, s.Observation.ErrorClass)
		}
	}
	want := []string{"", schemas.ErrNotExecuted, schemas.ErrBadArguments, schemas.ErrNoToolCall}
	if !slices.Equal(classes, want) || res.ExitReason != schemas.ExitGaveUp || res.Agent.ToolCallStyle != "text" || len(b.asked) != 1 {
		t.Errorf("exit %s, %s, executed %v, errors %q", res.ExitReason, res.Agent.ToolCallStyle, outline(b.asked), classes)
	}
	srv := mocktest.Serve(t, mock.Script{Sessions: []mock.Session{{Turns: []mock.Turn{
		mocktest.Text("zero"), mocktest.Text("one"), mocktest.Text("two"), mocktest.Text("Done.\n<function=submit></function>"),
	}}}})
	var err error
	if deps.Client, err = llms.Providers.Build("openai", map[string]any{"base_url": srv.URL, "model": "m"}, llms.Deps{}); err != nil {
		t.Fatal(err)
	}
	res = episode(t, &seekerEnv{}, build(t, "replay", map[string]any{"from": "run", "then": "model"}, deps))
	if n := len(srv.Log()); n != 1 || res.ExitReason != schemas.ExitSubmitted || res.Agent.Model != "m" {
		t.Errorf("%d requests, exit %s, %+v", n, res.ExitReason, res.Agent)
	}
}
