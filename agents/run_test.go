package agents_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

func run(t *testing.T, w *counterEnv, p *scriptedPolicy, more func(*agents.Config)) (agents.Result, error) {
	t.Helper()
	cfg := agents.Config{Env: w, Policy: p, Clock: func() time.Time { return time.Unix(1, 0) },
		Task: schemas.Task{ID: "t", GoldPatch: "GOLD"}, Job: schemas.Job{Seed: 7}}
	if more != nil {
		more(&cfg)
	}
	return agents.Run(t.Context(), cfg)
}

// outline formats each step as "turn.call source/tool: observation".
func outline(steps []schemas.Step) []string {
	var out []string
	for i, s := range steps {
		if s.Index != i {
			out = append(out, fmt.Sprintf("index %d at %d", s.Index, i))
		}
		line := fmt.Sprintf("%d.%d %s", s.Turn, s.Call, s.Source)
		if s.ToolCall != nil {
			line += "/" + s.ToolCall.Name
		}
		if s.Observation != nil {
			line += ": " + s.Observation.Text
		} else {
			line += ": " + s.Text
		}
		out = append(out, line)
	}
	return out
}

func TestStepsOfAnEpisode(t *testing.T) {
	w := &counterEnv{initial: []schemas.Observation{{Source: "eval", Text: "2 failed"}, {Source: "pdb"}}}
	p := &scriptedPolicy{policy: "model", turns: []any{
		calls("add", "add"), schemas.Reply{Message: "thinking"}, calls("read", "submit", "add"),
	}}
	rec := &memoryRecorder{}
	res, err := run(t, w, p, func(c *agents.Config) { c.Recorder = rec })
	if err != nil || res.ExitReason != schemas.ExitSubmitted {
		t.Fatal(res.ExitReason, err)
	}
	want := []string{
		"-1.-1 system: sys", "-1.-1 user: problem", "-1.-1 env: 2 failed",
		"0.0 agent/add: 1", "0.1 agent/add: 2",
		"1.-1 agent: call a tool",
		"2.0 agent/read: n is 2, in 1.2s", "2.1 agent/submit: ok", "2.2 agent/add: Not executed: the episode had already ended.",
	}
	if diff := cmp.Diff(want, outline(res.Steps)); diff != "" {
		t.Error(diff)
	}
	wantLog := []string{"step -1.-1", "step -1.-1", "step -1.-1", "reply 0", "step 0.0", "step 0.1",
		"reply 1", "step 1.-1", "reply 2", "step 2.0", "step 2.1", "step 2.2"}
	if diff := cmp.Diff(wantLog, rec.log); diff != "" {
		t.Error(diff)
	}
	if res.Steps[3].Reply == nil || res.Steps[4].Reply != nil || res.Steps[4].ToolCall.ID != "call_0_1" || string(res.Steps[4].ToolCall.Arguments) != "{}" {
		t.Errorf("reply or call of the second parallel call: %+v", res.Steps[4])
	}
	if s := res.Steps[3]; len(s.Triggered) != 1 || s.EnvMillis != 3 || s.State == nil {
		t.Errorf("step %+v", s)
	}
	if !slices.Equal(w.calls, []string{"add", "add", "read", "submit"}) {
		t.Errorf("executed %v", w.calls)
	}
}

func TestPolicySeesOnlyWhatAModelSees(t *testing.T) {
	var seen agents.Transcript
	p := &scriptedPolicy{turns: []any{calls("add"), func(_ context.Context, tr *agents.Transcript) (schemas.Reply, error) {
		seen = *tr
		return calls("submit"), nil
	}}}
	res, err := run(t, &counterEnv{}, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(seen)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), "GOLD") || strings.Contains(string(raw), "uncut") || len(seen.Tools) != 1 {
		t.Errorf("transcript %s", raw)
	}
	if res.Steps[2].Observation.FullText != "uncut" {
		t.Error("the result lost the full text")
	}
}

func TestExits(t *testing.T) {
	yes := true
	bad := schemas.Reply{Calls: []schemas.ToolCall{{Name: "add", Invalid: "no JSON"}}}
	cases := map[string]struct {
		world  *counterEnv
		turns  []any
		limits agents.Limits
		exit   string
		class  string
		steps  int
	}{
		"max steps":                       {turns: []any{calls("add")}, limits: agents.Limits{MaxSteps: 3}, exit: schemas.ExitMaxSteps, steps: 5},
		"no call":                         {turns: []any{schemas.Reply{Message: "hm"}}, limits: agents.Limits{MaxFormatErrors: 2}, exit: schemas.ExitNoToolCall, steps: 4},
		"cut off":                         {turns: []any{schemas.Reply{Message: "hm", Truncated: true}}, limits: agents.Limits{MaxFormatErrors: 2}, exit: schemas.ExitCutOff, steps: 4},
		"malformed":                       {turns: []any{bad}, limits: agents.Limits{MaxFormatErrors: 2}, exit: schemas.ExitBadCalls, steps: 4},
		"format errors in separate turns": {turns: []any{bad, calls("add"), bad, calls("submit")}, limits: agents.Limits{MaxFormatErrors: 2}, exit: schemas.ExitSubmitted, steps: 6},
		"stuck":                           {turns: []any{calls("read")}, limits: agents.Limits{MaxRepeats: 3}, exit: schemas.ExitStuck, steps: 5},
		"not stuck":                       {turns: []any{calls("add")}, limits: agents.Limits{MaxRepeats: 3, MaxSteps: 9}, exit: schemas.ExitMaxSteps, steps: 11},
		"cycle of two calls":              {turns: []any{calls("read"), calls("warp"), calls("read"), calls("warp"), calls("read"), calls("warp"), calls("read")}, limits: agents.Limits{MaxRepeats: 3}, exit: schemas.ExitStuck, steps: 8},
		"cycle of three calls":            {turns: []any{calls("read", "warp", "spin")}, limits: agents.Limits{MaxRepeats: 3}, exit: schemas.ExitStuck, steps: 11},
		"cycle of four calls":             {turns: []any{calls("read", "warp", "spin", "turn")}, limits: agents.Limits{MaxRepeats: 3, MaxSteps: 4}, exit: schemas.ExitMaxSteps, steps: 18},
		"unknown tools":                   {turns: []any{calls("ghost"), calls("ghost", "ghost")}, limits: agents.Limits{MaxFormatErrors: 2, MaxSteps: 9}, exit: schemas.ExitBadCalls, steps: 5},
		"stop":                            {turns: []any{schemas.Reply{Message: "enough", Stop: schemas.ExitGaveUp}}, exit: schemas.ExitGaveUp, steps: 3},
		"context by count":                {turns: []any{schemas.Reply{Calls: calls("add").Calls, Usage: &schemas.Usage{Prompt: 90, Completion: 10}}}, limits: agents.Limits{MaxPromptTokens: 100}, exit: schemas.ExitMaxContext, steps: 3},
		"context by server":               {turns: []any{&llms.Error{Class: llms.ClassContext}}, exit: schemas.ExitMaxContext, class: "context", steps: 2},
		"refused by policy":               {turns: []any{&llms.Error{Class: llms.ClassRefusal}}, exit: schemas.ExitRefused, class: "refusal", steps: 2},
		"budget":                          {turns: []any{fmt.Errorf("x: %w", llms.ErrBudget)}, exit: schemas.ExitMaxCost, class: "budget", steps: 2},
		"killed twice":                    {turns: []any{calls("add"), calls("die", "add"), calls("die", "read")}, exit: schemas.ExitKilledSandbox, steps: 7},
		"passes at reset":                 {world: &counterEnv{passed: &yes}, turns: []any{calls("add")}, exit: schemas.ExitResolvedAtReset, steps: 2},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := c.world
			if w == nil {
				w = &counterEnv{}
			}
			res, err := run(t, w, &scriptedPolicy{turns: c.turns}, func(cfg *agents.Config) { cfg.Limits = c.limits })
			if err != nil || res.ExitReason != c.exit || res.ErrorClass != c.class || len(res.Steps) != c.steps {
				t.Errorf("exit %s, class %q, %d steps, error %v; want %s, %q, %d\n%s",
					res.ExitReason, res.ErrorClass, len(res.Steps), err, c.exit, c.class, c.steps, strings.Join(outline(res.Steps), "\n"))
			}
		})
	}
}

func TestErrors(t *testing.T) {
	boom := errors.New("boom")
	cases := map[string]struct {
		world *counterEnv
		turn  any
		fatal llms.Class
		exit  string
	}{
		"refused key":      {turn: &llms.Error{Class: llms.ClassAuth}, fatal: llms.ClassAuth, exit: schemas.ExitLLMError},
		"out of credit":    {turn: &llms.Error{Class: llms.ClassQuota}, fatal: llms.ClassQuota, exit: schemas.ExitLLMError},
		"unknown model":    {turn: &llms.Error{Class: llms.ClassNotFound}, fatal: llms.ClassNotFound, exit: schemas.ExitLLMError},
		"server":           {turn: &llms.Error{Class: llms.ClassServer}, exit: schemas.ExitLLMError},
		"timeout":          {turn: &llms.Error{Class: llms.ClassTimeout}, exit: schemas.ExitLLMTimeout},
		"environment":      {world: &counterEnv{stepErr: boom}, turn: calls("add"), exit: schemas.ExitEnvError},
		"reset":            {world: &counterEnv{resetErr: boom}, turn: calls("add"), exit: schemas.ExitEnvError},
		"sandbox killed":   {world: &counterEnv{stepErr: &env.DiedError{Reason: "another process killed it"}}, turn: calls("add"), exit: schemas.ExitSandboxError},
		"sandbox at reset": {world: &counterEnv{resetErr: env.ErrSandboxDied}, turn: calls("add"), exit: schemas.ExitSandboxError},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := c.world
			if w == nil {
				w = &counterEnv{}
			}
			res, err := run(t, w, &scriptedPolicy{turns: []any{c.turn}}, nil)
			infra, isInfra := errors.AsType[*agents.InfraError](err)
			fatal, isFatal := errors.AsType[*agents.FatalError](err)
			switch {
			case res.ExitReason != c.exit || res.ErrorMessage == "":
				t.Errorf("exit %s, message %q", res.ExitReason, res.ErrorMessage)
			case c.fatal != "" && (!isFatal || fatal.Class != c.fatal):
				t.Errorf("got %v, want fatal %s", err, c.fatal)
			case c.fatal == "" && (!isInfra || infra.Exit != c.exit):
				t.Errorf("got %v, want infrastructure %s", err, c.exit)
			}
		})
	}
}

func TestKilledSandboxIsRebuiltOnce(t *testing.T) {
	w := &counterEnv{}
	res, err := run(t, w, &scriptedPolicy{turns: []any{calls("add"), calls("add", "die", "add"), calls("read", "submit")}}, nil)
	if err != nil || res.ExitReason != schemas.ExitSubmitted {
		t.Fatal(res.ExitReason, err)
	}
	// Before the sandbox dies: add, add, die. After the rebuild, the first two again, and then the third.
	if !slices.Equal(w.calls, []string{"add", "add", "die", "add", "add", "add", "read", "submit"}) || w.resets != 2 {
		t.Errorf("%d resets, executed %v", w.resets, w.calls)
	}
	died := res.Steps[4]
	if died.Observation.ErrorClass != schemas.ErrSandboxDied || died.State.Terminated || !strings.Contains(died.Observation.Text, "new sandbox") {
		t.Errorf("step %+v", died)
	}
	if got := res.Steps[6].Observation.Text; !strings.HasPrefix(got, "n is 3") {
		t.Errorf("state after the rebuild: %s", got)
	}
}

// The opening steps begin with the reset.
func TestFirstStepsBeginWithTheReset(t *testing.T) {
	now := time.Unix(1, 0)
	w := &counterEnv{onReset: func() { now = now.Add(time.Minute) }}
	res, err := run(t, w, &scriptedPolicy{turns: []any{calls("submit")}}, func(c *agents.Config) { c.Clock = func() time.Time { return now } })
	if err != nil || len(res.Steps) != 3 {
		t.Fatal(res.Steps, err)
	}
	if s := res.Steps; !s[0].At.Equal(res.Started) || !s[1].At.Equal(res.Started) || s[2].At.Sub(s[1].At) != time.Minute {
		t.Errorf("started %v, steps at %v %v %v", res.Started, s[0].At, s[1].At, s[2].At)
	}
}

// A resumed episode began when its first execution did.
func TestResumedEpisodesKeepTheirStart(t *testing.T) {
	now := time.Unix(1, 0)
	rec := &memoryRecorder{failAt: 4}
	start := func(c *agents.Config) { c.Recorder, c.Clock = rec, func() time.Time { return now } }
	turns := []any{calls("add"), calls("submit")}
	if _, err := run(t, &counterEnv{}, &scriptedPolicy{turns: turns}, start); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	now, rec.failAt = now.Add(time.Hour), 0
	res, err := run(t, &counterEnv{}, &scriptedPolicy{policy: "model", turns: turns}, start)
	if err != nil || !res.Started.Equal(time.Unix(1, 0)) || res.Ended.Sub(res.Started) != time.Hour {
		t.Errorf("started %v, ended %v, %v", res.Started, res.Ended, err)
	}
}

// This test proves row WC19 of docs/internals/parity.md.
func TestWC19WallLimitEndsTheCallUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &counterEnv{}
		res, err := run(t, w, &scriptedPolicy{turns: []any{calls("add", "block", "add")}}, func(c *agents.Config) { c.Limits.Wall = time.Hour })
		if err != nil || res.ExitReason != schemas.ExitWallTimeout {
			t.Fatal(res.ExitReason, err)
		}
		if n := len(res.Steps); n != 5 || res.Steps[3].Observation.ErrorClass != schemas.ErrNotExecuted || res.Steps[4].Synthetic {
			t.Errorf("%s", strings.Join(outline(res.Steps), "\n"))
		}
		wait := func(ctx context.Context, _ *agents.Transcript) (schemas.Reply, error) {
			<-ctx.Done()
			return schemas.Reply{}, fmt.Errorf("asking: %w", ctx.Err())
		}
		res, err = run(t, w, &scriptedPolicy{turns: []any{wait}}, func(c *agents.Config) { c.Limits.Wall = time.Hour })
		if err != nil || res.ExitReason != schemas.ExitWallTimeout {
			t.Error(res.ExitReason, err)
		}
	})
}

// An episode that is killed after any write and resumed has the same steps, and requests no recorded
// reply again.
func TestResumeAfterAnyWrite(t *testing.T) {
	turns := []any{calls("add"), schemas.Reply{Message: "hm"}, calls("add", "die", "add"), calls("read", "submit", "read")}
	whole, err := run(t, &counterEnv{}, &scriptedPolicy{policy: "model", turns: turns}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for kill := 1; ; kill++ {
		rec := &memoryRecorder{failAt: kill}
		_, err := run(t, &counterEnv{}, &scriptedPolicy{policy: "model", turns: turns}, func(c *agents.Config) { c.Recorder = rec })
		if err == nil {
			if kill < 10 {
				t.Fatalf("only %d writes", kill)
			}
			break
		}
		if !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		recorded := len(rec.replies)
		rec.failAt = 0
		again := &scriptedPolicy{policy: "model", turns: turns}
		res, err := run(t, &counterEnv{}, again, func(c *agents.Config) { c.Recorder = rec })
		if err != nil || res.ExitReason != whole.ExitReason || len(res.Diverged) != 0 {
			t.Fatalf("killed after %d writes: exit %s, diverged %v, %v", kill, res.ExitReason, res.Diverged, err)
		}
		// How long a read takes differs from sandbox to sandbox; settle hides it.
		settle := cmp.Transformer("settle", func(s string) string { return strings.Replace(s, "in 2.", "in 1.", 1) })
		if diff := cmp.Diff(outline(whole.Steps), outline(res.Steps), settle); diff != "" {
			t.Errorf("killed after %d writes: %s", kill, diff)
		}
		if diff := cmp.Diff(outline(res.Steps), outline(rec.steps)); diff != "" {
			t.Errorf("killed after %d writes, the log differs from the result: %s", kill, diff)
		}
		for _, turn := range again.asked {
			if turn < recorded {
				t.Errorf("killed after %d writes: turn %d was asked for again", kill, turn)
			}
		}
	}
}

func TestDivergenceIsCountedNotShown(t *testing.T) {
	rec := &memoryRecorder{failAt: 7}
	turns := []any{calls("read"), calls("add"), calls("submit")}
	if _, err := run(t, &counterEnv{}, &scriptedPolicy{turns: turns}, func(c *agents.Config) { c.Recorder = rec }); err == nil {
		t.Fatal("not killed")
	}
	rec.failAt = 0
	for i := range rec.steps {
		if o := rec.steps[i].Observation; o != nil && rec.steps[i].Turn == 0 {
			o.Text = "as it was before"
		}
	}
	w := &counterEnv{}
	res, err := run(t, w, &scriptedPolicy{turns: turns}, func(c *agents.Config) { c.Recorder = rec })
	if got := strings.Join(w.recorded, ", "); got != "read as it was before, add 1" || len(w.calls) != 3 {
		t.Errorf("executed %v, repeated %s", w.calls, got)
	}
	if err != nil || len(res.Diverged) != 1 || !res.Steps[2].Replayed || res.Steps[2].Observation.Text != "as it was before" {
		t.Errorf("diverged %v, %v\n%s", res.Diverged, err, strings.Join(outline(res.Steps), "\n"))
	}
}

func TestA11InterruptIsAnOutcomeThatResumes(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	rec := &memoryRecorder{}
	p := &scriptedPolicy{turns: []any{calls("add"), func(context.Context, *agents.Transcript) (schemas.Reply, error) {
		cancel() // while the model answers: the paid reply is kept
		return calls("add"), nil
	}}}
	res, err := agents.Run(ctx, agents.Config{Env: &counterEnv{}, Policy: p, Recorder: rec})
	if err != nil || res.ExitReason != schemas.ExitCancelled || len(res.Steps) != 3 {
		t.Fatalf("exit %s, %d steps, %v", res.ExitReason, len(res.Steps), err)
	}
	if _, kept := rec.replies[1]; !kept {
		t.Error("the reply that had arrived was not recorded")
	}
	res, err = run(t, &counterEnv{}, p, func(c *agents.Config) { c.Recorder, c.Limits.MaxSteps = rec, 2 })
	if err != nil || res.ExitReason != schemas.ExitMaxSteps || len(res.Steps) != 4 {
		t.Errorf("resumed: exit %s, %d steps, %v", res.ExitReason, len(res.Steps), err)
	}
}

// All calls of a reply are executed in order and answered under their ids.
func TestEachCallOfAReplyIsAnswered(t *testing.T) {
	w := &counterEnv{}
	bad := schemas.ToolCall{ID: "b", Name: "add", Arguments: json.RawMessage(`{}`), Raw: "{", Invalid: "cut"}
	p := &scriptedPolicy{policy: "model", turns: []any{schemas.Reply{Calls: []schemas.ToolCall{
		{ID: "a", Name: "add", Arguments: json.RawMessage(`{}`)}, bad, {ID: "c", Name: "submit", Arguments: json.RawMessage(`{}`)},
		{ID: "d", Name: "add", Arguments: json.RawMessage(`{}`)},
	}}}}
	res, err := run(t, w, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, s := range res.Steps {
		if s.ToolCall != nil && s.Observation != nil {
			ids = append(ids, s.ToolCall.ID)
		}
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "d"}, ids); diff != "" {
		t.Error(diff)
	}
}

// Replies with a call written as text, or cut off before their call, get their own error class.
// Nothing is executed.
func TestWrittenAndCutOffReplies(t *testing.T) {
	w := &counterEnv{}
	p := &scriptedPolicy{policy: "model", turns: []any{
		schemas.Reply{Message: "<tool_call>add", CallAsText: true}, schemas.Reply{Message: "so I", Truncated: true},
		schemas.Reply{Message: "hm"}, calls("submit"),
	}}
	res, err := run(t, w, p, nil)
	if err != nil {
		t.Fatal(err)
	}
	var classes []string
	for _, s := range res.Steps {
		if s.Reply != nil && s.ToolCall == nil {
			classes = append(classes, s.Observation.ErrorClass)
		}
	}
	if diff := cmp.Diff([]string{schemas.ErrCallAsText, schemas.ErrCutOff, schemas.ErrNoToolCall}, classes); diff != "" {
		t.Error(diff)
	}
	if !slices.Equal(w.calls, []string{"submit"}) {
		t.Errorf("executed %v", w.calls)
	}
}
