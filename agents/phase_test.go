package agents_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/schemas"
)

// twoPhasePolicy is a scriptedPolicy with two conversations. The policy answers the tool pass itself: a call of pass
// ends the first conversation once the counter has shown 2.
type twoPhasePolicy struct {
	scriptedPolicy
	limit int   // turns after which the first conversation gives up; 0: no limit
	seen  []int // number of steps in the conversation at each turn
}

func (p *twoPhasePolicy) Phase(t *agents.Transcript, offered []schemas.ToolSchema) (agents.Phase, error) {
	turns := 0
	for _, s := range t.Steps {
		if s.ToolCall != nil && s.ToolCall.Name == "pass" && s.Observation.ErrorClass == "" {
			return agents.Phase{Name: "second", Tools: tools("add", "submit", "die")}, nil
		}
		if s.Reply != nil {
			turns++
		}
	}
	ph := agents.Phase{Name: "first", Tools: append(slices.Clone(offered[:2]), tools("pass")...), NumberSteps: true}
	if p.limit > 0 && turns >= p.limit-1 {
		ph.Tools = tools("pass")
	}
	if p.limit > 0 && turns >= p.limit {
		ph.Exit = schemas.ExitGaveUp
	}
	return ph, nil
}

func (p *twoPhasePolicy) Prompts(t *agents.Transcript) (string, string, error) {
	return "sys " + t.Phase, "problem with " + t.Tools[len(t.Tools)-1].Name, nil
}

func (p *twoPhasePolicy) Answer(t *agents.Transcript, c schemas.ToolCall) (schemas.Observation, bool) {
	if c.Name != "pass" {
		return schemas.Observation{}, false
	}
	if t.Reply == nil || !slices.ContainsFunc(t.Reply.Calls, func(call schemas.ToolCall) bool { return call.ID == c.ID }) {
		panic("t.Reply does not contain the call")
	}
	for _, s := range t.Steps {
		if s.Observation != nil && s.Observation.Text == "2" {
			return schemas.Observation{Source: "pass", Text: "passed"}, true
		}
	}
	return schemas.Observation{Source: "pass", Text: "not yet", IsError: true, ErrorClass: schemas.ErrUserError}, true
}

func (p *twoPhasePolicy) Next(ctx context.Context, t *agents.Transcript) (schemas.Reply, error) {
	p.seen = append(p.seen, len(t.Conversation()))
	return p.scriptedPolicy.Next(ctx, t)
}

func phases(steps []schemas.Step) string {
	var b strings.Builder
	for _, s := range steps {
		b.WriteString(s.Phase[:1])
	}
	return b.String()
}

func newTwoPhasePolicy() (*counterEnv, *twoPhasePolicy) {
	return &counterEnv{tools: tools("add", "read", "submit", "die"), initial: []schemas.Observation{{Source: "eval", Text: "failing"}}},
		&twoPhasePolicy{scriptedPolicy: scriptedPolicy{policy: "model", turns: []any{
			calls("add", "submit"), calls("pass"), calls("add"), calls("pass", "add"), // first
			calls("read", "add"), calls("die"), calls("add"), calls("submit"), // second
		}}}
}

func runTwoPhases(t *testing.T, w *counterEnv, p *twoPhasePolicy, more func(*agents.Config)) (agents.Result, error) {
	t.Helper()
	cfg := agents.Config{Env: w, Policy: p}
	if more != nil {
		more(&cfg)
	}
	return agents.Run(t.Context(), cfg)
}

// Each conversation has its own opening and tools. Calls to tools that the phase does not offer,
// and calls after the end of a phase, are not executed.
func TestPhasesOfAnEpisode(t *testing.T) {
	w, p := newTwoPhasePolicy()
	res, err := runTwoPhases(t, w, p, nil)
	if err != nil || res.ExitReason != schemas.ExitSubmitted {
		t.Fatal(res.ExitReason, err)
	}
	want := []string{
		"-1.-1 system: sys first", "-1.-1 user: problem with pass", "-1.-1 env: failing",
		"0.0 agent/add: 1", `0.1 agent/submit: There is no tool named "submit" here. Call one of: add, read, pass.`,
		"1.0 agent/pass: not yet", "2.0 agent/add: 2",
		"3.0 agent/pass: passed", "3.1 agent/add: Not executed: your part of the work had already ended.",
		"-1.-1 system: sys second", "-1.-1 user: problem with die",
		`4.0 agent/read: There is no tool named "read" here. Call one of: add, submit, die.`, "4.1 agent/add: 3",
		"5.0 agent/die: The sandbox died while this call was running. A new sandbox was started, and your earlier calls were repeated in it, without this one. Do not make this call again: if the sandbox dies once more, the episode ends.",
		"6.0 agent/add: 4", "7.0 agent/submit: ok",
	}
	if diff := cmp.Diff(want, outline(res.Steps)); diff != "" {
		t.Error(diff)
	}
	if got := phases(res.Steps); got != "fffffffffsssssss" {
		t.Errorf("phases %s", got)
	}
	if diff := cmp.Diff([]int{3, 5, 6, 7, 2, 4, 5, 6}, p.seen); diff != "" {
		t.Errorf("steps a model was shown: %s", diff)
	}
	// Three adds and die. In the new sandbox: only the three adds again, then the fourth add and submit.
	if !slices.Equal(w.calls, []string{"add", "add", "add", "die", "add", "add", "add", "add", "submit"}) {
		t.Errorf("executed %v", w.calls)
	}
	if got := res.Steps[2].Text; got != "failing\n\n[This was step 2.]" {
		t.Errorf("%q", got)
	}
	for i, want := range map[int]string{3: "[This was step 3.]", 5: "[This was step 5.]", 8: "", 12: "more"} {
		got := ""
		if n := len(res.Steps[i].Triggered); n > 0 {
			got = res.Steps[i].Triggered[n-1].Text
		}
		if got != want {
			t.Errorf("step %d ends with %q, want %q", i, got, want)
		}
	}
	if diff := cmp.Diff([][]schemas.ToolSchema{tools("add", "read", "pass"), tools("add", "submit", "die")}, res.ToolSets); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(tools("add", "read", "pass", "submit", "die"), res.Tools); diff != "" {
		t.Error(diff)
	}
	if got := res.Steps[11].Reply.ToolSet; got != schemas.Hash(res.ToolSets[1]) {
		t.Errorf("tool set of the second conversation: %s", got)
	}
	if res.Steps[7].State == nil || res.Steps[8].State != nil {
		t.Error("want the previous state for a call that the policy answered, and no state for one that was not executed")
	}
}

// The tools may change within a conversation, and the policy may end it.
func TestPhaseEndsTheEpisode(t *testing.T) {
	w, p := newTwoPhasePolicy()
	p.turns, p.limit = []any{calls("add"), calls("read")}, 2
	res, err := runTwoPhases(t, w, p, nil)
	if err != nil || res.ExitReason != schemas.ExitGaveUp || len(res.Steps) != 5 || !slices.Equal(w.calls, []string{"add"}) {
		t.Fatal(res.ExitReason, err, outline(res.Steps), w.calls)
	}
	if got := res.Steps[4].Observation.Text; !strings.HasSuffix(got, "Call one of: pass.") || res.Steps[4].Reply.ToolSet != schemas.Hash(tools("pass")) {
		t.Error(got)
	}
	if len(res.ToolSets) != 2 || len(res.Tools) != 3 {
		t.Error(res.ToolSets, res.Tools)
	}
}

// After a crash at any write, the resumed episode has the same steps.
func TestPhasesResumeAfterAnyWrite(t *testing.T) {
	w, p := newTwoPhasePolicy()
	whole, err := runTwoPhases(t, w, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	for kill := 1; ; kill++ {
		rec := &memoryRecorder{failAt: kill}
		w, p := newTwoPhasePolicy()
		if _, err := runTwoPhases(t, w, p, func(c *agents.Config) { c.Recorder = rec }); err == nil {
			if kill < 20 {
				t.Fatalf("only %d writes", kill)
			}
			break
		} else if !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		recorded := len(rec.replies)
		rec.failAt = 0
		w, p = newTwoPhasePolicy()
		res, err := runTwoPhases(t, w, p, func(c *agents.Config) { c.Recorder = rec })
		if err != nil || res.ExitReason != whole.ExitReason || len(res.Diverged) != 0 {
			t.Fatalf("killed after %d writes: exit %s, diverged %v, %v", kill, res.ExitReason, res.Diverged, err)
		}
		if diff := cmp.Diff(outline(whole.Steps), outline(res.Steps)); diff != "" || phases(res.Steps) != phases(whole.Steps) {
			t.Errorf("killed after %d writes: %s", kill, diff)
		}
		if diff := cmp.Diff(outline(res.Steps), outline(rec.steps)); diff != "" {
			t.Errorf("killed after %d writes, the log differs from the result: %s", kill, diff)
		}
		if diff := cmp.Diff(whole.ToolSets, res.ToolSets); diff != "" {
			t.Errorf("killed after %d writes: %s", kill, diff)
		}
		for _, turn := range p.asked {
			if turn < recorded {
				t.Errorf("killed after %d writes: turn %d was asked for again", kill, turn)
			}
		}
	}
}

// MaxPromptTokens applies to each conversation separately.
func TestMaxPromptTokensLimitsEachConversation(t *testing.T) {
	w, p := newTwoPhasePolicy()
	long := p.turns[3].(schemas.Reply) // ends the first conversation
	long.Usage = &schemas.Usage{Prompt: 900, Completion: 100}
	p.turns[3] = long
	cfg := agents.Config{Env: w, Policy: p, Limits: agents.Limits{MaxPromptTokens: 500}}
	if res, err := agents.Run(t.Context(), cfg); err != nil || res.ExitReason != schemas.ExitSubmitted {
		t.Errorf("exit %s, %v\n%s", res.ExitReason, err, strings.Join(outline(res.Steps), "\n"))
	}
}

// A call that the policy answers itself records the previous state, but without FilesChanged.
func TestAnsweredCallsLeaveTheState(t *testing.T) {
	w, p := newTwoPhasePolicy()
	w.changed = []string{"a.py"}
	res, err := agents.Run(t.Context(), agents.Config{Env: w, Policy: p})
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, s := range res.Steps {
		if s.ToolCall != nil && s.ToolCall.Name == "pass" && s.State != nil {
			seen++
			if s.State.FilesChanged != nil {
				t.Errorf("step %d changed %v", s.Index, s.State.FilesChanged)
			}
		}
	}
	if seen == 0 {
		t.Error("no call of pass has a state")
	}
}
