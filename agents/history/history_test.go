package history_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/agents/history"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

func obs(text string) *schemas.Observation { return &schemas.Observation{Text: text} }

// numbered sets the indexes of steps.
func numbered(steps []schemas.Step) []schemas.Step {
	for i := range steps {
		steps[i].Index = i
	}
	return steps
}

func steps() []schemas.Step {
	a := schemas.ToolCall{ID: "a", Name: "view"}
	b := schemas.ToolCall{ID: "b", Name: "edit"}
	c := schemas.ToolCall{ID: "c", Name: "submit"}
	d := schemas.ToolCall{ID: "d", Name: "eval"}
	return numbered([]schemas.Step{
		{Turn: -1, Call: -1, Source: "system", Text: "sys"},
		{Turn: -1, Call: -1, Source: "user", Text: "fix it"},
		{Turn: -1, Call: -1, Source: "env", Text: "tests fail", Observation: obs("tests fail")},
		{Turn: 0, Call: 0, Source: "agent", Reply: &schemas.Reply{Message: "look", Calls: []schemas.ToolCall{a, b}, Extra: json.RawMessage(`{"x":1}`)}, ToolCall: &a, Observation: obs("text")},
		{Turn: 0, Call: 1, Source: "agent", ToolCall: &b, Observation: obs("edited"), Triggered: []schemas.Observation{{Text: "breakpoints moved"}, {}}},
		{Turn: 1, Call: -1, Source: "agent", Reply: &schemas.Reply{Message: "hm"}, Observation: obs("call a tool")},
		{Turn: 2, Call: 0, Source: "agent", Reply: &schemas.Reply{Calls: []schemas.ToolCall{c, d}}, ToolCall: &c, Observation: obs("bye")},
	})
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
	if diff := cmp.Diff(want, history.Messages(steps(), schemas.ContextOp{})); diff != "" {
		t.Error(diff)
	}
}

// Rebuild and CheckPrompts do not panic, whatever the rows contain. Rebuilding prompts one after
// the other gives the same result as rebuilding each alone.
func FuzzRebuild(f *testing.F) {
	f.Add(`{"dropped":[[3,5]],"note":"n","trimmed":[{"step":6,"from":1,"to":2,"mark":"m"}],"system_as":"user"}`, `[{"text":"more"}]`, "é text", int32(1))
	f.Add(`{"dropped":[[-1,9]],"trimmed":[{"step":2,"from":-1,"to":99}],"style":"text"}`, `{`, "", int32(-1))
	f.Fuzz(func(t *testing.T, op, triggered, text string, call int32) {
		var rows []schemas.StepRow
		for i := range int32(8) {
			r := schemas.StepRow{StepIndex: i, Source: "agent", Message: text, TurnIndex: new(i / 2), Observation: &text, ContextOpJSON: &op}
			if i < 2 {
				r.TurnIndex, r.Source = nil, "user"
			}
			if i%3 == 0 {
				r.ToolName, r.CallIndex, r.TriggeredJSON = &text, &call, &triggered
			}
			if i == 3 {
				r.Phase = new("other")
			}
			if i == 5 || i == 7 {
				r.ContextOpJSON = nil
			}
			rows = append(rows, r)
		}
		_, err := history.Steps(rows)
		for n := range rows {
			messages, bad := history.Rebuild(rows, n)
			rows[n].PromptSHA256 = new(llms.PromptSHA256(messages))
			err = errors.Join(err, bad)
		}
		got := history.CheckPrompts(rows)
		if len(got) != len(rows) {
			t.Errorf("%d answers for %d rows", len(got), len(rows))
		}
		for n, same := range got {
			// With a call index above 0, later rows add calls to an earlier reply. Rebuild does not read
			// these rows, so its prompt differs.
			if err == nil && call <= 0 && (same == nil || !*same) {
				t.Errorf("the prompt of row %d differs", n)
			}
		}
	})
}

// Later turns only append messages: the earlier messages do not change.
func TestMessagesGrowByAppending(t *testing.T) {
	all := history.Messages(steps(), schemas.ContextOp{})
	for _, n := range []int{3, 5, 6} { // ends of turns
		part := history.Messages(steps()[:n], schemas.ContextOp{})
		if diff := cmp.Diff(part, all[:len(part)]); diff != "" {
			t.Errorf("after %d steps: %s", n, diff)
		}
	}
}

// Wherever an episode ends, each tool message answers a call of the assistant message before it,
// in order, and each call has an answer.
// This test proves row WC31 of docs/internals/parity.md.
func TestWC31NoOrphanToolMessage(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		all := []schemas.Step{{Turn: -1, Call: -1, Source: "system", Text: "sys"}, {Turn: -1, Call: -1, Source: "user", Text: "fix it"}}
		for turn := range 1 + rng.IntN(6) {
			reply := schemas.Reply{Message: "m"}
			for i := range rng.IntN(4) {
				reply.Calls = append(reply.Calls, schemas.ToolCall{ID: fmt.Sprintf("%d_%d", turn, i), Name: "view"})
			}
			if len(reply.Calls) == 0 {
				all = append(all, schemas.Step{Turn: turn, Call: -1, Source: "agent", Reply: &reply, Observation: obs("call a tool")})
			}
			for i := range reply.Calls {
				s := schemas.Step{Turn: turn, Call: i, Source: "agent", ToolCall: &reply.Calls[i], Observation: obs("o")}
				if i == 0 {
					s.Reply = &reply
				}
				all = append(all, s)
			}
		}
		for cut := 2; cut <= len(all); cut++ {
			var open []string
			for i, m := range history.Messages(all[:cut], schemas.ContextOp{}) {
				switch {
				case m.Role == "tool" && (len(open) == 0 || open[0] != m.ToolCallID):
					t.Fatalf("after %d steps, message %d answers call %q, but the calls without an answer are %q",
						cut, i, m.ToolCallID, open)
				case m.Role == "tool":
					open = open[1:]
					continue
				case len(open) > 0:
					t.Fatalf("after %d steps, message %d comes before the answers to the calls %q", cut, i, open)
				}
				for _, c := range m.ToolCalls {
					open = append(open, c.ID)
				}
			}
			if len(open) > 0 {
				t.Fatalf("after %d steps, the calls %q have no answer", cut, open)
			}
		}
	}
}
