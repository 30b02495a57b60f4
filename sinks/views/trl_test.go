package views_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/internal/sinktest"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// trlLine is a line of testdata/trl/rows.jsonl: a row of sft-trl and the options with which
// it was written. Both options are "" for the defaults.
type trlLine struct {
	Mask     string `json:"mask"`
	Template string `json:"chat_template"`
	Row      any    `json:"row"`
}

// trlMasks is testdata/trl/masks.json, which make trainers writes.
type trlMasks struct {
	Versions map[string]string            `json:"versions"`
	SHA256   string                       `json:"rows_sha256"`
	Trained  map[string]map[string]trlRow `json:"trained"` // by template and line, counted from 0
	Thinking map[string]bool              `json:"thinking"`
}

// trlRow is TRL's result for a row: the texts whose tokens have a loss, or why the template
// refuses the row.
type trlRow struct {
	Spans   []string `json:"spans"`
	Refused string   `json:"refused"`
}

// trlTemplates lists TRL's chat templates in masks.json, and the parts of a reply that each renders.
var trlTemplates = map[string]struct{ thoughts, textBesideCalls, callsAtOnce bool }{
	"glm4moe":          {true, true, true},
	"lfm2_v2":          {false, true, true},
	"llama3_1":         {false, false, false},
	"qwen2_5":          {false, true, true},
	"qwen3":            {true, true, true},
	"qwen3_5_think":    {true, true, true},
	"qwen3_8_training": {true, true, true},
	"qwen3_training":   {true, true, true},
}

// reply is a turn of the agent in a fixture. masked is the reason why it must not be trained on, or "".
type reply struct {
	thought, text string
	calls         []fixtureCall
	masked        string
}

type fixtureCall struct{ tool, args, answer string }

// marked returns episodes in which each text has a unique word: one with reasoning and
// parallel calls, and one with neither. In both, a call fails, and its turn and another are
// masked.
func marked() []sinks.Trajectory {
	return []sinks.Trajectory{
		markedEpisode(1,
			reply{thought: "thought01 is first", text: "agent02 looks twice", calls: []fixtureCall{
				{"view", `{"line":3,"path":"agent03.py"}`, "answer04 x = 1  # ünïcode\n"}, {"pdb", `{"command":"b agent05.py:7"}`, "answer06 Breakpoint 1"},
			}},
			reply{thought: "masked07 is wrong", text: "masked08 tries", calls: []fixtureCall{{"view", `{"path":"masked09.py"}`, "answer10 Error: no such file"}}, masked: "tool_error"},
			reply{calls: []fixtureCall{{"pdb", `{"command":"p agent11 + \"<b>\""}`, "answer12 </tool_call> <|im_end|>"}}},
			reply{text: "masked13 repeats", calls: []fixtureCall{{"pdb", `{"command":"p masked14"}`, "answer15 again"}}, masked: "repeat"},
			reply{thought: "thought16 is last", calls: []fixtureCall{{"edit", `{"path":"agent17.py","text":"agent18"}`, "answer19 edited"}}},
			reply{text: "agent20 is done"},
		),
		markedEpisode(2,
			reply{text: "agent31 looks", calls: []fixtureCall{{"view", `{"line":1,"path":"agent32.py"}`, "answer33 def f"}}},
			reply{text: "masked34 tries", calls: []fixtureCall{{"pdb", `{"command":"p masked35"}`, "answer36 NameError"}}, masked: "tool_error"},
			reply{text: "agent37 says\n\ntwo things", calls: []fixtureCall{{"pdb", `{"command":"p agent38"}`, "answer39 7"}}},
			reply{text: "agent42 goes on", calls: []fixtureCall{{"pdb", `{"command":"where agent43"}`, "answer44 in f"}}},
			reply{text: "masked40 has no call", masked: "format_error"},
			reply{text: "agent41 submits", calls: []fixtureCall{{"submit", `{}`, ""}}},
		),
	}
}

func markedEpisode(n int, replies ...reply) sinks.Trajectory {
	in := sinktest.Episode("trl", n).Trajectory()
	base := in.Steps[3]
	in.Steps = in.Steps[:3:3]
	for i, text := range []string{"system debugs", "issue says the total is wrong", "output 1 failed"} {
		in.Steps[i].Message = text
	}
	for turn, r := range replies {
		for at := range max(1, len(r.calls)) {
			s := base
			s.StepIndex, s.TurnIndex, s.CallIndex, s.Message, s.Reasoning = int32(len(in.Steps)), new(int32(turn)), new(int32(at)), "", nil
			s.ToolCallID, s.ToolName, s.ArgumentsJSON, s.Observation = nil, nil, nil, nil
			if at == 0 {
				s.Message = r.text
			}
			if at == 0 && r.thought != "" {
				s.Reasoning = &r.thought
			}
			if len(r.calls) > 0 {
				c := r.calls[at]
				s.ToolName, s.ArgumentsJSON, s.Observation = &c.tool, &c.args, &c.answer
				s.ToolCallID = new("call_" + string(schemas.HashBytes([]byte(c.args)))[:8])
			} else if r.masked != "" {
				s.Observation = new("answer99 call a tool")
			}
			if r.masked != "" {
				s.Train, s.MaskReason = false, &r.masked
			}
			in.Steps = append(in.Steps, s)
		}
	}
	return in
}

// trlLines returns the rows as the view writes them: with the defaults, and with
// enable_thinking for rows that train on one turn (split-rows) and for rows that hold a
// whole conversation (context).
func trlLines(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	for _, o := range []sinks.ViewOptions{{}, {Mask: sinks.MaskSplitRows, ChatTemplate: "qwen3_training"}, {Mask: sinks.MaskContext, ChatTemplate: "qwen3_training"}} {
		for _, in := range marked() {
			rows, _ := rowsOf(t, "sft-trl", o, in)
			for _, row := range rows {
				line, err := schemas.CanonicalJSON(trlLine{o.Mask, o.ChatTemplate, row.Value}) // the masks do not depend on the order of keys
				if err != nil {
					t.Fatal(err)
				}
				out.Write(append(line, '\n'))
			}
		}
	}
	return out.Bytes()
}

// The rows on which TRL was measured are those that the view writes now.
func TestTRLRows(t *testing.T) {
	path := "testdata/trl/rows.jsonl"
	got := trlLines(t)
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("sft-trl writes other rows than those that TRL was measured on; if this is intended, run `make trainers`:\n%s", diff)
	}
}

// readTRL reads the masks and the rows of the defaults, by their line.
func readTRL(t *testing.T) (masks trlMasks, rows map[string]trlExample) {
	t.Helper()
	raw, err := os.ReadFile("testdata/trl/masks.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &masks); err != nil {
		t.Fatal(err)
	}
	raw, err = os.ReadFile("testdata/trl/rows.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if sum := schemas.HashBytes(raw); sum != masks.SHA256 {
		t.Errorf("rows.jsonl has the SHA-256 %s, and masks.json was made from %s: run `make trainers`", sum, masks.SHA256)
	}
	rows = map[string]trlExample{}
	for i, line := range bytes.Split(bytes.TrimSpace(raw), []byte("\n")) {
		var x struct {
			trlLine
			Row trlExample `json:"row"`
		}
		if err := json.Unmarshal(line, &x); err != nil {
			t.Fatal(err)
		}
		if x.Mask == "" {
			rows[strconv.Itoa(i)] = x.Row
		}
	}
	return masks, rows
}

// trlExample is a row in the form that TRL reads.
type trlExample struct{ Prompt, Completion []trlMessage }

type trlMessage struct {
	Role, Content string
	Reasoning     string `json:"reasoning_content"`
	Calls         []struct {
		Function struct {
			Name      string
			Arguments json.RawMessage
		}
	} `json:"tool_calls"`
}

// With SFTConfig() and only paths set, TRL trains on exactly the agent's text of each row.
func TestTRLTrainsOnlyOnTheAgent(t *testing.T) {
	masks, rows := readTRL(t)
	if len(rows) < 8 {
		t.Errorf("%d rows, and the fixtures have 8 turns to train on", len(rows))
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(trlTemplates)), slices.Sorted(maps.Keys(masks.Trained))); diff != "" {
		t.Errorf("the templates of masks.json: %s", diff)
	}
	for name, has := range trlTemplates {
		for line, row := range rows {
			got, kept := masks.Trained[name][line]
			atOnce := slices.ContainsFunc(slices.Concat(row.Prompt, row.Completion), func(m trlMessage) bool { return len(m.Calls) > 1 })
			switch {
			case got.Refused != "" && atOnce && !has.callsAtOnce:
				continue
			case !kept || len(got.Spans) != 1:
				t.Errorf("%s, line %s: TRL trains on %q (refused: %q), want one span", name, line, got.Spans, got.Refused)
				continue
			}
			var agent []string
			for _, m := range row.Completion {
				if m.Role != "assistant" {
					continue
				}
				if has.thoughts {
					agent = append(agent, m.Reasoning)
				}
				if has.textBesideCalls || len(m.Calls) == 0 {
					agent = append(agent, m.Content)
				}
				for _, c := range m.Calls {
					agent = append(agent, c.Function.Name, string(c.Function.Arguments))
				}
			}
			want := wordsOf(strings.Join(agent, " "))
			if diff := cmp.Diff(want, slices.DeleteFunc(wordsOf(got.Spans[0]), func(s string) bool { return slices.Contains(trlMarkup, s) })); diff != "" || len(want) == 0 {
				t.Errorf("%s, line %s: TRL trains on other words than the agent's:\n%s", name, line, diff)
			}
		}
	}
}

// trlMarkup lists the words that templates add to the agent's.
var trlMarkup = strings.Fields("think tool_call tool_call_start tool_call_end function parameter name arguments parameters arg_key arg_value im_end eot_id")

var word = regexp.MustCompile(`[\pL\pN_]+`)

// wordsOf returns the words of a text.
func wordsOf(text string) []string { return word.FindAllString(text, -1) }

// Each text of the agent in the fixtures is trained on in exactly one row, and no other text in any.
func TestTRLTrainsOnEachTurnOnce(t *testing.T) {
	masks, _ := readTRL(t)
	count := map[string]int{}
	for _, row := range masks.Trained["qwen3"] {
		for _, s := range wordsOf(strings.Join(row.Spans, " ")) {
			if regexp.MustCompile(`^[a-z]+\d\d$`).MatchString(s) {
				count[s]++
			}
		}
	}
	want := map[string]int{}
	for _, s := range strings.Fields("thought01 agent02 agent03 agent05 agent11 thought16 agent17 agent18 agent20 agent31 agent32 agent37 agent38 agent42 agent43 agent41") {
		want[s] = 1
	}
	if diff := cmp.Diff(want, count); diff != "" {
		t.Error(diff)
	}
}

// --chat-template accepts the templates with which, as measured with enable_thinking, the
// rendered prompt is a prefix of the rendered prompt and completion.
func TestThinkingTemplatesAreTheMeasuredOnes(t *testing.T) {
	masks, _ := readTRL(t)
	_, err := sinks.Views.Build("sft-trl", nil, sinks.ViewOptions{ChatTemplate: "none"})
	if err == nil {
		t.Fatal("a template that does not exist is accepted")
	}
	list := regexp.MustCompile(`choose one of (.*), or omit`).FindStringSubmatch(err.Error())
	if list == nil {
		t.Fatalf("no templates in: %v", err)
	}
	var measured []string
	for name, stays := range masks.Thinking {
		if stays {
			measured = append(measured, name)
		}
	}
	slices.Sort(measured)
	if diff := cmp.Diff(measured, strings.Split(list[1], ", ")); diff != "" {
		t.Errorf("thinkingTemplates are not the measured ones:\n%s", diff)
	}
}

// masks.json comes from the versions that `make trainers` installs.
func TestTRLMasksAreOfThePinnedVersions(t *testing.T) {
	masks, _ := readTRL(t)
	pins, err := os.ReadFile("../../scripts/trainers.txt")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^(\w+)==(\S+)$`).FindAllStringSubmatch(string(pins), -1)
	if len(found) < 5 {
		t.Errorf("%d versions in scripts/trainers.txt", len(found))
	}
	for _, pin := range found {
		if got := masks.Versions[pin[1]]; got != pin[2] {
			t.Errorf("masks.json was made with %s %q, and scripts/trainers.txt names %s: run `make trainers`", pin[1], got, pin[2])
		}
	}
}
