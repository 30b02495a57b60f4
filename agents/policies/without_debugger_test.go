package policies_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/llms/mock"
	"github.com/tracesmith/tracesmith/schemas"
)

func offered(names ...string) []schemas.ToolSchema {
	var out []schemas.ToolSchema
	for _, n := range names {
		out = append(out, schemas.ToolSchema{Name: n, Description: n, Parameters: json.RawMessage(`{"type":"object"}`)})
	}
	return out
}

// The agent rewrite neither offers the debugger to its model, nor mentions it, nor
// runs it.
func TestRewriteHasNoDebugger(t *testing.T) {
	b := &echoEnv{tools: offered("eval", "pdb", "edit", "submit")}
	res, srv := runWithReplies(t, "rewrite", nil, b, raw("pdb", `{"command":"b m.py:2"}`), raw("edit", `{}`), raw("submit", `{}`))
	if res.ExitReason != schemas.ExitSubmitted || res.Agent.Name != "rewrite" {
		t.Fatal(res.ExitReason, res.Agent)
	}
	if got := strings.Join(outline(b.asked), ", "); got != "edit {}, submit {}" {
		t.Errorf("executed %s", got)
	}
	if s := res.Steps[3]; s.Observation.ErrorClass != schemas.ErrUnknownTool || !strings.Contains(s.Observation.Text, "Call one of: eval, edit, submit.") {
		t.Errorf("%+v", s.Observation)
	}
	for _, body := range requestBodies(t, srv) {
		if slices.Contains(body.toolNames(), "pdb") || strings.Contains(body.Messages[0].Content, "pdb") {
			t.Errorf("shown %v, told %s", body.toolNames(), body.Messages[0].Content)
		}
	}
}

// The edit that brings the number of failed edits to `after` unlocks the debugger. Its
// answer says so, and all later requests and recorded tool sets contain the debugger.
func TestDebug5UnlocksTheDebugger(t *testing.T) {
	b := &echoEnv{tools: offered("eval", "pdb", "edit", "submit"), failing: true}
	turns := []mock.Turn{
		raw("edit", `{"n":1}`),  // failed edit 1
		raw("eval", `{}`),       // fails
		raw("edit", `{"broken`), // does not count: the tool did not run
		raw("pdb", `{}`),        // still locked
		raw("edit", `{"n":2}`),  // failed edit 2
		{ToolCalls: []mock.Call{{Name: "edit"}, {Name: "pdb"}}}, // failed edit 3; the request for this turn did not offer pdb
		raw("pdb", `{"command":"w"}`), raw("submit", `{}`),
	}
	res, srv := runWithReplies(t, "debug_5_agent", map[string]any{"after": 3}, b, turns...)
	if res.ExitReason != schemas.ExitSubmitted || res.Agent.Name != "debug5" || !strings.Contains(res.Agent.ConfigJSON, `"after":3`) {
		t.Fatal(res.ExitReason, res.Agent)
	}
	var notes []string
	sets := map[string]bool{}
	for _, s := range res.Steps {
		for _, o := range s.Triggered {
			notes = append(notes, s.ToolCall.Name+": "+o.Text)
		}
		if s.Reply != nil {
			sets[s.Reply.ToolSet] = true
		}
	}
	if len(notes) != 1 || notes[0] != "edit: [From now on you can also call: pdb.]" || len(sets) != 2 || len(res.ToolSets) != 2 {
		t.Errorf("notes %q, %d sets of tools", notes, len(sets))
	}
	for i, body := range requestBodies(t, srv) {
		if got := slices.Contains(body.toolNames(), "pdb"); got != (i >= 6) {
			t.Errorf("request %d shows %v", i, body.toolNames())
		}
	}
	if n := len(b.asked); b.asked[n-2].Name != "pdb" || slices.ContainsFunc(b.asked[:n-2], func(c schemas.ToolCall) bool { return c.Name == "pdb" }) {
		t.Errorf("executed %v", outline(b.asked))
	}
}

// An evaluation that passes resets the count of failed edits, but does not lock the
// debugger again.
func TestDebug5CountsFailedEdits(t *testing.T) {
	b := &echoEnv{tools: offered("eval", "pdb", "edit", "submit")} // evaluations pass after the first edit
	res, srv := runWithReplies(t, "debug5", map[string]any{"after": 2}, b,
		raw("edit", `{"n":1}`), raw("eval", `{}`), raw("edit", `{"n":2}`), raw("eval", `{}`),
		raw("edit", `{"n":3}`), raw("edit", `{"n":4}`), raw("eval", `{}`), raw("submit", `{}`))
	if res.ExitReason != schemas.ExitSubmitted {
		t.Fatal(res.ExitReason)
	}
	for i, body := range requestBodies(t, srv) {
		if got := slices.Contains(body.toolNames(), "pdb"); got != (i >= 6) {
			t.Errorf("request %d shows %v", i, body.toolNames())
		}
	}
}

func TestDebug5NeedsTheDebugger(t *testing.T) {
	for want, with := range map[string]map[string]any{"add it to agent.tools": nil, "at least 1": {"after": 0}} {
		_, err := agents.Registry.Build("debug5", with, agents.Deps{Task: task(), Tools: offered("eval")})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
