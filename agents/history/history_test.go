package history_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/agents/history"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

func obs(text string) *schemas.Observation { return &schemas.Observation{Text: text} }

func steps() []schemas.Step {
	a := schemas.ToolCall{ID: "a", Name: "view"}
	b := schemas.ToolCall{ID: "b", Name: "edit"}
	c := schemas.ToolCall{ID: "c", Name: "submit"}
	d := schemas.ToolCall{ID: "d", Name: "eval"}
	return []schemas.Step{
		{Turn: -1, Call: -1, Source: "system", Text: "sys"},
		{Turn: -1, Call: -1, Source: "user", Text: "fix it"},
		{Turn: -1, Call: -1, Source: "env", Text: "tests fail", Observation: obs("tests fail")},
		{Turn: 0, Call: 0, Source: "agent", Reply: &schemas.Reply{Message: "look", Calls: []schemas.ToolCall{a, b}, Extra: json.RawMessage(`{"x":1}`)}, ToolCall: &a, Observation: obs("text")},
		{Turn: 0, Call: 1, Source: "agent", ToolCall: &b, Observation: obs("edited"), Triggered: []schemas.Observation{{Text: "breakpoints moved"}, {}}},
		{Turn: 1, Call: -1, Source: "agent", Reply: &schemas.Reply{Message: "hm"}, Observation: obs("call a tool")},
		{Turn: 2, Call: 0, Source: "agent", Reply: &schemas.Reply{Calls: []schemas.ToolCall{c, d}}, ToolCall: &c, Observation: obs("bye")},
	}
}

func TestMessages(t *testing.T) {
	a, b := schemas.ToolCall{ID: "a", Name: "view"}, schemas.ToolCall{ID: "b", Name: "edit"}
	want := []llms.Message{
		{Role: "system", Content: "sys"},
		{Role: "user", Content: "fix it\n\ntests fail"},
		{Role: "assistant", Content: "look", ToolCalls: []schemas.ToolCall{a, b}, Raw: json.RawMessage(`{"x":1}`)},
		{Role: "tool", ToolCallID: "a", Content: "text"},
		{Role: "tool", ToolCallID: "b", Content: "edited\n\nbreakpoints moved"},
		{Role: "assistant", Content: "hm"},
		{Role: "user", Content: "call a tool"},
		{Role: "assistant", ToolCalls: []schemas.ToolCall{{ID: "c", Name: "submit"}, {ID: "d", Name: "eval"}}},
		{Role: "tool", ToolCallID: "c", Content: "bye"},
		{Role: "tool", ToolCallID: "d", Content: "Not executed."},
	}
	if diff := cmp.Diff(want, history.Messages(steps())); diff != "" {
		t.Error(diff)
	}
}

// Whole turns only ever append.
func TestMessagesGrowByAppending(t *testing.T) {
	all := history.Messages(steps())
	for _, n := range []int{3, 5, 6} { // ends of turns
		part := history.Messages(steps()[:n])
		if diff := cmp.Diff(part, all[:len(part)]); diff != "" {
			t.Errorf("after %d steps: %s", n, diff)
		}
	}
}
