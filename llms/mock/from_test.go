package mock_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/llms/mock"
	"github.com/tracesmith/tracesmith/schemas"
)

// An episode has two conversations with parallel, repaired and copied calls, and steps of the
// policy between them. The script contains only the answers of the models.
func TestScriptOfAnEpisode(t *testing.T) {
	modelStep := func(phase string, turn int32, calls int32, text string) schemas.StepRow {
		return schemas.StepRow{Source: "agent", Phase: &phase, TurnIndex: &turn, LLMCallCount: &calls, Message: text, PromptTokens: new(int64(10 + turn))}
	}
	call := func(s schemas.StepRow, id, name, arguments string) schemas.StepRow {
		s.ToolCallID, s.ToolName, s.ArgumentsJSON = &id, &name, &arguments
		return s
	}
	sameTurn := func(turn int32, phase string) schemas.StepRow {
		return schemas.StepRow{Source: "agent", Phase: &phase, TurnIndex: &turn}
	}
	repaired := call(modelStep("seek", 1, 1, "again"), "c", "view", `{"path":"a"}`)
	repaired.ArgumentsRaw, repaired.ContextOp = new(`{"path":"a"`), new("cut")
	copied := modelStep("solve", 2, 1, "a copy")
	copied.IsCopiedContext = new(true)
	steps := []schemas.StepRow{
		{Source: "system", Phase: new("seek"), Message: "scene"}, {Source: "user", Phase: new("seek"), Message: "why?"},
		call(modelStep("seek", 0, 1, "two"), "a", "view", `{"line":12345678901234567}`), call(sameTurn(0, "seek"), "b", "grep", `{}`),
		{Source: "env", Message: "told"}, repaired, copied,
		{Source: "user", Phase: new("solve"), Message: "fix it"},
		call(modelStep("solve", 3, 0, "the policy's"), "p", "reset", `{}`), call(sameTurn(3, "solve"), "q", "reset", `{}`),
		modelStep("solve", 4, 1, "done"),
	}
	got := mock.FromEpisode(schemas.EpisodeRow{}, steps)
	want := []mock.Session{
		{User: "why?", Rewrites: true, Turns: []mock.Turn{
			{Content: new("two"), Usage: &mock.Usage{Prompt: 10}, ToolCalls: []mock.Call{
				{ID: new("a"), Name: "view", Raw: new(`{"line":12345678901234567}`)}, {ID: new("b"), Name: "grep", Raw: new("{}")}}},
			{Content: new("again"), Usage: &mock.Usage{Prompt: 11}, ToolCalls: []mock.Call{{ID: new("c"), Name: "view", Raw: new(`{"path":"a"`)}}},
		}},
		{User: "fix it", Turns: []mock.Turn{{Content: new("done"), Usage: &mock.Usage{Prompt: 14}}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got = mock.FromEpisode(schemas.EpisodeRow{ToolCallStyle: new("text")}, steps)
	if len(got) != 2 || got[0].Turns[0].ToolCalls != nil || *got[0].Turns[0].Content != "two" {
		t.Errorf("calls as text: %+v", got)
	}
}
