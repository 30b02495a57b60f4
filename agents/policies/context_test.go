package policies_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/agents/history"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/tokens"
	"github.com/tracesmith/tracesmith/pipeline/normalise"
	"github.com/tracesmith/tracesmith/pipeline/redact"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
	"github.com/tracesmith/tracesmith/sinks"
	"github.com/tracesmith/tracesmith/sinks/formats"
	_ "github.com/tracesmith/tracesmith/sinks/views"
)

// verboseEnv is an echoEnv that gives long answers. answers holds special answers by the number of the call.
type verboseEnv struct {
	*echoEnv
	answers map[int]string
}

func (b verboseEnv) Repeat(ctx context.Context, call schemas.ToolCall, _ schemas.Observation) (env.Info, error) {
	return b.Step(ctx, call)
}

func (b verboseEnv) Step(ctx context.Context, c schemas.ToolCall) (env.Info, error) {
	info, err := b.echoEnv.Step(ctx, c)
	text := strings.Repeat(fmt.Sprintf("line %d of the file\n", len(b.asked)), 30)
	if special, ok := b.answers[len(b.asked)]; ok {
		text = special
	}
	info.Observation.Text = text
	info.Observations = []schemas.Observation{info.Observation, {Source: "pdb", Text: "breakpoints moved"}}
	return info, err
}

func newVerboseEnv(answers map[int]string) verboseEnv {
	var tools []schemas.ToolSchema
	for _, name := range []string{"view", "eval", "pdb", "submit"} {
		tools = append(tools, schemas.ToolSchema{Name: name, Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)})
	}
	return verboseEnv{&echoEnv{tools: tools}, answers}
}

// runSmallModel runs an episode with a small model, and returns it with its rows as read back from a
// Parquet file.
func runSmallModel(t *testing.T, s *smallModel, with map[string]any, traits llms.Traits, answers map[int]string) (agents.Result, sinks.Trajectory) {
	t.Helper()
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	client, err := llms.Providers.Build("openai", map[string]any{"base_url": srv.URL, "model": "m"}, llms.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	kind := "react"
	if s.text {
		kind = "simple"
	}
	res := episode(t, newVerboseEnv(answers), build(t, kind, with, agents.Deps{Client: llms.WithTraits(client, traits)}))
	if res.ExitReason != schemas.ExitSubmitted {
		t.Fatalf("exit %s after %d turns", res.ExitReason, len(s.received))
	}
	staged, err := normalise.Episode(&schemas.Episode{Job: schemas.NewJob("run", task(), "agent", 1), Task: task(), Agent: res.Agent,
		Tools: res.Tools, Steps: res.Steps, ExitReason: res.ExitReason}, normalise.Config{Secrets: redact.NewKnown([]string{"hunter2-hunter2"})})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	shard, err := formats.CreateParquet[schemas.StepRow](dir, "train", arrowrec.Steps, arrowrec.Meta{Producer: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if err := shard.Append(staged.Steps); err != nil {
		t.Fatal(err)
	}
	info, err := shard.Close()
	if err != nil {
		t.Fatal(err)
	}
	read := staged.Trajectory()
	read.Steps = nil
	for row, err := range formats.Read[schemas.StepRow](info.Path, arrowrec.Steps) {
		if err != nil {
			t.Fatal(err)
		}
		read.Steps = append(read.Steps, row)
	}
	if trimmed := *staged.Episode.ContextTrimmed; trimmed != (len(s.received) > 3) {
		t.Errorf("context_trimmed is %v", trimmed)
	}
	lost := slices.ContainsFunc(staged.Steps, func(r schemas.StepRow) bool { return r.PromptRebuilds != nil && !*r.PromptRebuilds })
	if same := staged.Episode.PromptsRebuild; same == nil || *same == lost {
		t.Errorf("prompts_rebuild of the episode contradicts its steps: a prompt does not rebuild: %v", lost)
	}
	return res, read
}

// comparePrompts compares each answered request with the row of its reply, and returns the number of cuts.
func comparePrompts(t *testing.T, s *smallModel, rows []schemas.StepRow, same func(turn int) bool) (cuts int) {
	t.Helper()
	turn, dropped := 0, ""
	for n, r := range rows {
		if r.PromptSHA256 == nil {
			continue
		}
		received := s.received[turn]
		if *r.PromptSHA256 != schemas.Hash(received) || int(*r.PromptMessages) != len(received) {
			t.Errorf("turn %d: prompt_sha256 is not that of what the server got", turn)
		}
		if *r.PromptRebuilds != same(turn) {
			t.Errorf("turn %d: prompt_rebuilds is %v", turn, *r.PromptRebuilds)
		}
		messages, err := history.Rebuild(rows, n)
		if err != nil {
			t.Fatal(err)
		}
		var got []promptMessage
		for _, m := range messages {
			message := promptMessage{Role: m.Role, Content: m.Content, ToolCallID: m.ToolCallID}
			for _, c := range m.ToolCalls {
				message.ToolCalls = append(message.ToolCalls, promptCall{c.ID, c.Name, c.Arguments})
			}
			got = append(got, message)
		}
		want, err := schemas.CanonicalJSON(received)
		if err != nil {
			t.Fatal(err)
		}
		have, err := schemas.CanonicalJSON(got)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(have)); (diff == "") != same(turn) {
			t.Errorf("turn %d: %s", turn, diff)
		}
		var op schemas.ContextOp
		if r.ContextOpJSON != nil {
			if err := json.Unmarshal([]byte(*r.ContextOpJSON), &op); err != nil {
				t.Fatal(err)
			}
		}
		if *r.ContextOp != op.Kind() {
			t.Errorf("turn %d: context_op %s of %s", turn, *r.ContextOp, *r.ContextOpJSON)
		}
		if now := fmt.Sprint(op.Dropped); len(op.Dropped) > 0 && now != dropped {
			cuts, dropped = cuts+1, now
		}
		turn++
	}
	if turn != len(s.received) {
		t.Errorf("%d prompts in the rows, the server answered %d", turn, len(s.received))
	}
	return cuts
}

func always(int) bool { return true }

// checkTrainingRows checks that each row of an export is a prompt that the server received, and that the rows
// contain every reply to train on once.
func checkTrainingRows(t *testing.T, s *smallModel, read sinks.Trajectory, cuts int) {
	t.Helper()
	sent := map[string]bool{}
	for _, received := range s.received {
		list, err := schemas.CanonicalJSON(received)
		if err != nil {
			t.Fatal(err)
		}
		sent[string(list)] = true
	}
	for mask, want := range map[string]int{sinks.MaskNone: cuts + 1, sinks.MaskSplitRows: len(s.received)} {
		view, err := sinks.Views.Build("sft-trl", nil, sinks.ViewOptions{Mask: mask})
		if err != nil {
			t.Fatal(err)
		}
		for i := range read.Steps { // every turn may be trained on
			read.Steps[i].Train, read.Steps[i].MaskReason = true, nil
		}
		rows, notes, err := view.Render(read)
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) != want {
			t.Errorf("mask %s: %d rows, want %d; notes %v", mask, len(rows), want, notes)
		}
		turns := 0
		for i, row := range rows {
			raw, err := json.Marshal(row.Value)
			if err != nil {
				t.Fatal(err)
			}
			var got struct{ Prompt, Completion []trainingMessage }
			if err := json.Unmarshal(raw, &got); err != nil {
				t.Fatal(err)
			}
			var list []promptMessage
			for _, m := range slices.Concat(got.Prompt, got.Completion[:len(got.Completion)-1]) {
				list = append(list, m.promptMessage())
			}
			for _, m := range got.Completion {
				if m.Role == "assistant" {
					turns++
				}
			}
			if text, err := schemas.CanonicalJSON(list); err != nil || !sent[string(text)] {
				t.Errorf("mask %s, row %d is not a prompt that was sent: %v", mask, i, err)
			}
		}
		if turns != len(s.received) {
			t.Errorf("mask %s: %d turns to train on, the model took %d", mask, turns, len(s.received))
		}
	}
}

// trainingMessage is a message of an exported row.
type trainingMessage struct {
	Role, Content string
	ToolCallID    string `json:"tool_call_id"`
	ToolCalls     []struct {
		ID       string
		Function struct {
			Name      string
			Arguments json.RawMessage
		}
	} `json:"tool_calls"`
}

func (m trainingMessage) promptMessage() promptMessage {
	out := promptMessage{Role: m.Role, Content: m.Content, ToolCallID: m.ToolCallID}
	for _, c := range m.ToolCalls {
		out.ToolCalls = append(out.ToolCalls, promptCall{c.ID, c.Function.Name, c.Function.Arguments})
	}
	return out
}

// Rows hold what the model saw at each turn word for word, with cuts, trims, refused prompts,
// parallel calls and replies without a call.
func TestEveryPromptIsInTheRows(t *testing.T) {
	long := strings.Repeat("a very long line\n", 2000)
	for name, c := range map[string]struct {
		limit   int
		with    map[string]any
		traits  llms.Traits
		refused bool
		text    bool
	}{
		"limit is known":        {4000, map[string]any{"sampling": map[string]any{"max_tokens": 500}}, llms.Traits{ContextLimit: 4000}, false, false},
		"limit must be learned": {4000, nil, llms.Traits{}, true, false},
		"tokens":                {100000, map[string]any{"history": map[string]any{"max_tokens": 3000}}, llms.Traits{}, false, false},
		"turns":                 {100000, map[string]any{"history": map[string]any{"max_steps": 5}}, llms.Traits{}, false, false},
		"no system role":        {4000, nil, llms.Traits{NoSystem: true, Vocabulary: "cl100k_base"}, true, false},
		"calls as text":         {4000, nil, llms.Traits{NoSystem: true}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &smallModel{limit: c.limit, turns: 30, text: c.text}
			_, read := runSmallModel(t, s, c.with, c.traits, map[int]string{3: "\x1b[31mred\x1b[0m\a 10%\r20%\r\n\xff", 12: long})
			cuts := comparePrompts(t, s, read.Steps, always)
			if cuts < 3 {
				t.Errorf("%d cuts", cuts)
			}
			checkTrainingRows(t, s, read, cuts)
			if (s.refused > 0) != c.refused {
				t.Errorf("%d prompts were refused", s.refused)
			}
		})
	}
}

// The Python program in docs/history.md also rebuilds the prompts.
func TestPromptsByTheProgramInTheDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/history.md")
	if err != nil {
		t.Fatal(err)
	}
	_, program, _ := strings.Cut(string(page), "```python\n")
	program, _, _ = strings.Cut(program, "```\n")
	s := &smallModel{limit: 4000, turns: 30}
	_, read := runSmallModel(t, s, nil, llms.Traits{}, map[int]string{6: "\u2028 \u00e9 \U0001f41b <b>\\", 12: strings.Repeat("a very löng line\n", 2000)})
	raw, err := json.Marshal(read.Steps)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/usr/bin/python3", "-c", program+`
import sys
rows = json.load(sys.stdin)
same = [prompt_sha256(prompt(rows, n)) == row["prompt_sha256"] for n, row in enumerate(rows) if row.get("prompt_sha256")]
print(len(same), sum(same), sum(row["prompt_rebuilds"] for row in rows if row.get("prompt_sha256")))
`)
	cmd.Stdin = bytes.NewReader(raw)
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "30 30 30\n" {
		t.Errorf("%s, %v", out, err)
	}
}

// earlierSteps is a Recorder with the steps of an earlier delivery.
type earlierSteps struct{ steps []schemas.Step }

func (r earlierSteps) Replayed() ([]schemas.Step, *schemas.Reply) { return r.steps, nil }
func (earlierSteps) TurnContext(ctx context.Context) (context.Context, func()) {
	return ctx, func() {}
}
func (earlierSteps) Reply(context.Context, int, schemas.Reply) error { return nil }
func (earlierSteps) Step(context.Context, schemas.Step) error        { return nil }

// An episode that is resumed between turns or within one sends the prompts that it would have sent
// without the interruption.
func TestResumedEpisodesSendTheSamePrompts(t *testing.T) {
	answers := map[int]string{12: strings.Repeat("a very long line\n", 2000)}
	s := &smallModel{limit: 4000, turns: 30}
	whole, _ := runSmallModel(t, s, nil, llms.Traits{}, answers)
	raw, err := json.Marshal(whole.Steps)
	if err != nil {
		t.Fatal(err)
	}
	for cut := 4; cut < len(whole.Steps); cut += 3 {
		var steps []schemas.Step
		if err := json.Unmarshal(raw, &steps); err != nil {
			t.Fatal(err)
		}
		again := &smallModel{limit: 4000, turns: 30, received: append([][]promptMessage{}, s.received[:steps[cut-1].Turn+1]...)}
		srv := httptest.NewServer(again)
		client, err := llms.Providers.Build("openai", map[string]any{"base_url": srv.URL, "model": "m"}, llms.Deps{})
		if err != nil {
			t.Fatal(err)
		}
		res, err := agents.Run(t.Context(), agents.Config{Env: newVerboseEnv(answers), Task: task(), Recorder: earlierSteps{steps[:cut]},
			Policy: build(t, "react", nil, agents.Deps{Client: client}), Limits: agents.Limits{MaxSteps: 50}})
		srv.Close()
		if err != nil || res.ExitReason != schemas.ExitSubmitted || res.Replayed != cut {
			t.Fatalf("after %d steps: exit %s, %d replayed, %v", cut, res.ExitReason, res.Replayed, err)
		}
		if diff := cmp.Diff(s.received, again.received); diff != "" {
			t.Errorf("after %d steps: %s", cut, diff)
		}
	}
}

// prompt_rebuilds is false for prompts that contained a redacted secret, and true again after the
// secret was cut from the prompt.
func TestRedactedPromptsDoNotRebuild(t *testing.T) {
	s := &smallModel{limit: 4000, turns: 30}
	_, read := runSmallModel(t, s, nil, llms.Traits{}, map[int]string{5: "password: hunter2-hunter2 is it"})
	clean := func(turn int) bool { return !strings.Contains(fmt.Sprint(s.received[turn]), "hunter2-hunter2") }
	comparePrompts(t, s, read.Steps, clean)
	if !clean(2) || clean(8) || !clean(29) {
		t.Error("want the secret in the prompts of some turns only")
	}
}

// Episodes that fit have no context_op_json.
func TestShortEpisodesAreNotCut(t *testing.T) {
	s := &smallModel{limit: 100000, turns: 3}
	res, read := runSmallModel(t, s, nil, llms.Traits{ContextLimit: 100000}, nil)
	if n := comparePrompts(t, s, read.Steps, always); n != 0 {
		t.Errorf("%d cuts", n)
	}
	for _, r := range read.Steps {
		if r.ContextOpJSON != nil {
			t.Errorf("context_op_json %s", *r.ContextOpJSON)
		}
	}
	if n := tokens.For("m").Prompt(llms.Request{Messages: history.Messages(res.Steps, schemas.ContextOp{})}); n > 2000 {
		t.Errorf("%d tokens", n)
	}
}
