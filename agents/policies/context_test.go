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

// talkative is a bench that gives long answers. at holds answers by the number of the call.
type talkative struct {
	*bench
	at map[int]string
}

func (b talkative) Repeat(ctx context.Context, call schemas.ToolCall, _ schemas.Observation) (env.Info, error) {
	return b.Step(ctx, call)
}

func (b talkative) Step(ctx context.Context, c schemas.ToolCall) (env.Info, error) {
	info, err := b.bench.Step(ctx, c)
	text := strings.Repeat(fmt.Sprintf("line %d of the file\n", len(b.asked)), 30)
	if special, ok := b.at[len(b.asked)]; ok {
		text = special
	}
	info.Observation.Text = text
	info.Observations = []schemas.Observation{info.Observation, {Source: "pdb", Text: "breakpoints moved"}}
	return info, err
}

func newTalkative(at map[int]string) talkative {
	var tools []schemas.ToolSchema
	for _, name := range []string{"view", "eval", "pdb", "submit"} {
		tools = append(tools, schemas.ToolSchema{Name: name, Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)})
	}
	return talkative{&bench{tools: tools}, at}
}

// lengthy runs an episode with a small model, and returns it with its rows as read back from a
// Parquet file.
func lengthy(t *testing.T, s *small, with map[string]any, traits llms.Traits, at map[int]string) (agents.Result, sinks.Trajectory) {
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
	res := episode(t, newTalkative(at), build(t, kind, with, agents.Deps{Client: llms.WithTraits(client, traits)}))
	if res.ExitReason != schemas.ExitSubmitted {
		t.Fatalf("exit %s after %d turns", res.ExitReason, len(s.heard))
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
	if trimmed := *staged.Episode.ContextTrimmed; trimmed != (len(s.heard) > 3) {
		t.Errorf("context_trimmed is %v", trimmed)
	}
	lost := slices.ContainsFunc(staged.Steps, func(r schemas.StepRow) bool { return r.PromptRebuilds != nil && !*r.PromptRebuilds })
	if same := staged.Episode.PromptsRebuild; same == nil || *same == lost {
		t.Errorf("prompts_rebuild of the episode is not what its steps say: one is lost: %v", lost)
	}
	return res, read
}

// prompts compares each answered request with the row of its reply, and returns the number of cuts.
func prompts(t *testing.T, s *small, rows []schemas.StepRow, same func(turn int) bool) (cuts int) {
	t.Helper()
	turn, dropped := 0, ""
	for n, r := range rows {
		if r.PromptSHA256 == nil {
			continue
		}
		heard := s.heard[turn]
		if *r.PromptSHA256 != schemas.Hash(heard) || int(*r.PromptMessages) != len(heard) {
			t.Errorf("turn %d: prompt_sha256 is not that of what the server got", turn)
		}
		if *r.PromptRebuilds != same(turn) {
			t.Errorf("turn %d: prompt_rebuilds is %v", turn, *r.PromptRebuilds)
		}
		messages, err := history.Rebuild(rows, n)
		if err != nil {
			t.Fatal(err)
		}
		var got []said
		for _, m := range messages {
			one := said{Role: m.Role, Content: m.Content, ToolCallID: m.ToolCallID}
			for _, c := range m.ToolCalls {
				one.ToolCalls = append(one.ToolCalls, saidCall{c.ID, c.Name, c.Arguments})
			}
			got = append(got, one)
		}
		want, err := schemas.CanonicalJSON(heard)
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
	if turn != len(s.heard) {
		t.Errorf("%d prompts in the rows, the server answered %d", turn, len(s.heard))
	}
	return cuts
}

func all(int) bool { return true }

// trained checks that each row of an export is a prompt that the server received, and that the rows
// contain every reply to train on once.
func trained(t *testing.T, s *small, read sinks.Trajectory, cuts int) {
	t.Helper()
	sent := map[string]bool{}
	for _, heard := range s.heard {
		list, err := schemas.CanonicalJSON(heard)
		if err != nil {
			t.Fatal(err)
		}
		sent[string(list)] = true
	}
	for mask, want := range map[string]int{sinks.MaskNone: cuts + 1, sinks.MaskSplitRows: len(s.heard)} {
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
			var got struct{ Prompt, Completion []trainedOn }
			if err := json.Unmarshal(raw, &got); err != nil {
				t.Fatal(err)
			}
			var list []said
			for _, m := range slices.Concat(got.Prompt, got.Completion[:len(got.Completion)-1]) {
				list = append(list, m.said())
			}
			for _, m := range got.Completion {
				if m.Role == "assistant" {
					turns++
				}
			}
			if text, err := schemas.CanonicalJSON(list); err != nil || !sent[string(text)] {
				t.Errorf("mask %s, row %d is no prompt that was sent: %v", mask, i, err)
			}
		}
		if turns != len(s.heard) {
			t.Errorf("mask %s: %d turns to train on, the model took %d", mask, turns, len(s.heard))
		}
	}
}

// trainedOn is a message of an exported row.
type trainedOn struct {
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

func (m trainedOn) said() said {
	out := said{Role: m.Role, Content: m.Content, ToolCallID: m.ToolCallID}
	for _, c := range m.ToolCalls {
		out.ToolCalls = append(out.ToolCalls, saidCall{c.ID, c.Function.Name, c.Function.Arguments})
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
			s := &small{limit: c.limit, turns: 30, text: c.text}
			_, read := lengthy(t, s, c.with, c.traits, map[int]string{3: "\x1b[31mred\x1b[0m\a 10%\r20%\r\n\xff", 12: long})
			cuts := prompts(t, s, read.Steps, all)
			if cuts < 3 {
				t.Errorf("%d cuts", cuts)
			}
			trained(t, s, read, cuts)
			if (s.refused > 0) != c.refused {
				t.Errorf("%d prompts were refused", s.refused)
			}
		})
	}
}

// The Python program in docs/history.md rebuilds the prompts, too.
func TestPromptsByTheProgramInTheDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/history.md")
	if err != nil {
		t.Fatal(err)
	}
	_, program, _ := strings.Cut(string(page), "```python\n")
	program, _, _ = strings.Cut(program, "```\n")
	s := &small{limit: 4000, turns: 30}
	_, read := lengthy(t, s, nil, llms.Traits{}, map[int]string{6: "\u2028 \u00e9 \U0001f41b <b>\\", 12: strings.Repeat("a very löng line\n", 2000)})
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

// recorded is a Recorder with the steps of an earlier delivery.
type recorded struct{ steps []schemas.Step }

func (r recorded) Replayed() ([]schemas.Step, *schemas.Reply) { return r.steps, nil }
func (recorded) Asking(ctx context.Context) (context.Context, func()) {
	return ctx, func() {}
}
func (recorded) Reply(context.Context, int, schemas.Reply) error { return nil }
func (recorded) Step(context.Context, schemas.Step) error        { return nil }

// An episode that is resumed between turns or within one sends the prompts that it would have sent
// without the interruption.
func TestResumedEpisodesSendTheSamePrompts(t *testing.T) {
	at := map[int]string{12: strings.Repeat("a very long line\n", 2000)}
	s := &small{limit: 4000, turns: 30}
	whole, _ := lengthy(t, s, nil, llms.Traits{}, at)
	raw, err := json.Marshal(whole.Steps)
	if err != nil {
		t.Fatal(err)
	}
	for cut := 4; cut < len(whole.Steps); cut += 3 {
		var steps []schemas.Step
		if err := json.Unmarshal(raw, &steps); err != nil {
			t.Fatal(err)
		}
		again := &small{limit: 4000, turns: 30, heard: append([][]said{}, s.heard[:steps[cut-1].Turn+1]...)}
		srv := httptest.NewServer(again)
		client, err := llms.Providers.Build("openai", map[string]any{"base_url": srv.URL, "model": "m"}, llms.Deps{})
		if err != nil {
			t.Fatal(err)
		}
		res, err := agents.Run(t.Context(), agents.Config{Env: newTalkative(at), Task: task(), Recorder: recorded{steps[:cut]},
			Policy: build(t, "react", nil, agents.Deps{Client: client}), Limits: agents.Limits{MaxSteps: 50}})
		srv.Close()
		if err != nil || res.ExitReason != schemas.ExitSubmitted || res.Replayed != cut {
			t.Fatalf("after %d steps: exit %s, %d replayed, %v", cut, res.ExitReason, res.Replayed, err)
		}
		if diff := cmp.Diff(s.heard, again.heard); diff != "" {
			t.Errorf("after %d steps: %s", cut, diff)
		}
	}
}

// prompt_rebuilds is false for prompts that contained a redacted secret, and true again after the
// secret was cut from the prompt.
func TestRedactedPromptsDoNotRebuild(t *testing.T) {
	s := &small{limit: 4000, turns: 30}
	_, read := lengthy(t, s, nil, llms.Traits{}, map[int]string{5: "password: hunter2-hunter2 is it"})
	clean := func(turn int) bool { return !strings.Contains(fmt.Sprint(s.heard[turn]), "hunter2-hunter2") }
	prompts(t, s, read.Steps, clean)
	if !clean(2) || clean(8) || !clean(29) {
		t.Error("the secret was not there for some turns only")
	}
}

// Episodes that fit have no context_op_json.
func TestShortEpisodesAreNotCut(t *testing.T) {
	s := &small{limit: 100000, turns: 3}
	res, read := lengthy(t, s, nil, llms.Traits{ContextLimit: 100000}, nil)
	if n := prompts(t, s, read.Steps, all); n != 0 {
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
