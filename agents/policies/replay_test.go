package policies_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/agents/handover"
	"github.com/tracesmith/tracesmith/internal/mocktest"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/mock"
	"github.com/tracesmith/tracesmith/schemas"
)

// Numbers such as F12 in the names of tests are rows of docs/internals/parity.md.

// recording returns a recording with one turn for each text, which calls view.
func recording(texts ...string) *agents.Recording {
	rec := &agents.Recording{Episode: "e1"}
	for i, text := range texts {
		rec.Turns = append(rec.Turns, agents.RecordedTurn{Reply: schemas.Reply{Message: text, Calls: []schemas.ToolCall{
			{ID: fmt.Sprint("r", i), Name: "view", Arguments: []byte(fmt.Sprintf(`{"n":%d}`, i))}}}})
	}
	return rec
}

// A replay repeats the recorded replies in order without asking a model. The model
// continues after the last one, and its prompt contains them all.
func TestF12RecordingThenModel(t *testing.T) {
	srv := mocktest.Serve(t, mock.Script{Sessions: []mock.Session{{Turns: []mock.Turn{
		mocktest.Text("zero"), mocktest.Text("one"), // never sent: the server counts the replies in a request to find its turn
		raw("edit", `{}`), raw("submit", `{}`),
	}}}})
	client, err := llms.Providers.Build("openai", map[string]any{"base_url": srv.URL, "model": "m"}, llms.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	deps := agents.Deps{Client: client, Recording: recording("first", "second")}
	with := map[string]any{"from": "run", "then": "model"}
	b := &echoEnv{}
	res := episode(t, b, build(t, "replay", with, deps))
	want := []string{`view {"n":0}`, `view {"n":1}`, "edit {}", "submit {}"}
	if diff := cmp.Diff(want, outline(b.asked)); diff != "" || res.ExitReason != schemas.ExitSubmitted {
		t.Errorf("exit %s %s", res.ExitReason, diff)
	}
	if n := len(srv.Log()); n != 2 {
		t.Errorf("%d requests", n)
	}
	messages := requestBodies(t, srv)[0].Messages
	if len(messages) != 6 || messages[2].Content != "first" || messages[3].Content != `view {"n":0}` || messages[4].Content != "second" {
		t.Errorf("the model was sent %+v", messages)
	}
	info := res.Agent
	if info.Name != "replay" || info.Policy != "model" || info.Model != "m" || !strings.Contains(info.ConfigJSON, `"episode":"e1"`) {
		t.Errorf("%+v", info)
	}
	for _, s := range res.Steps[3:5] {
		if s.Reply.LLMCalls != 0 || s.Reply.Usage != nil {
			t.Errorf("a recorded reply cost something: %+v", s.Reply)
		}
	}
}

// Without a model, the episode ends after the recording, or after `turns` if that is
// earlier. With an empty recording, it ends at once.
func TestF12RecordingAlone(t *testing.T) {
	for turns, want := range map[int]int{0: 3, 2: 2, 9: 3} {
		b := &echoEnv{}
		res := episode(t, b, build(t, "replay", map[string]any{"from": "run", "turns": turns}, agents.Deps{Recording: recording("a", "b", "c")}))
		if len(b.asked) != want || res.ExitReason != schemas.ExitGaveUp || res.Agent.Policy != "replay" {
			t.Errorf("%d turns: %v, exit %s", turns, outline(b.asked), res.ExitReason)
		}
	}
	b := &echoEnv{}
	if res := episode(t, b, build(t, "replay", map[string]any{"from": "run"}, agents.Deps{Recording: recording()})); len(b.asked) != 0 || res.ExitReason != schemas.ExitGaveUp {
		t.Errorf("an empty recording: %v, exit %s", outline(b.asked), res.ExitReason)
	}
	gold := recording("a")
	gold.GoldUsed = true
	if !build(t, "replay", map[string]any{"from": "run"}, agents.Deps{Recording: gold}).Info().GoldUsed {
		t.Error("the replay of an agent that used the gold patch must say so")
	}
}

func TestReplaySettings(t *testing.T) {
	for want, with := range map[string]map[string]any{
		"from is empty":                  nil,
		"choose stop or model":           {"from": "run", "then": "more"},
		"run holds no episode of task":   {"from": "run"},
		"turns must not be negative":     {"from": "run", "turns": -1},
		`unknown field "until": known`:   {"until": 3},
		`setting "then" must not be a n`: {"then": 3},
	} {
		_, err := agents.Registry.Build("replay", with, agents.Deps{Task: task()})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	needs, err := agents.NeedsOf("replay", map[string]any{"from": "run", "episode": "ab", "then": "model"})
	want := agents.Needs{Model: true, Recording: "run", Episode: "ab", Tools: []schemas.ToolSchema{handover.Schema()}}
	if err != nil || !cmp.Equal(needs, want) {
		t.Errorf("needs %+v, %v", needs, err)
	}
}
