package views_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// episodeWithMistake returns an episode with a failed call between correct turns. Each text occurs
// only once in it.
func episodeWithMistake() sinks.Trajectory {
	in := withoutGold(shortEpisode(1))
	call, last := in.Steps[3], in.Steps[3]
	in.Steps = in.Steps[:2:2]
	for i, word := range []string{"ALPHA", "WRONG", "OMEGA"} {
		s := call
		s.StepIndex, s.TurnIndex, s.CallIndex, s.Message, s.Reasoning = int32(2+i), new(int32(i)), new(int32(0)), "I try "+word, nil
		s.ToolCallID, s.ArgumentsJSON, s.Observation = new("call-"+word), new(`{"command":"p `+word+`_name"}`), new(word+" was answered")
		if word == "WRONG" {
			s.Train, s.MaskReason, s.IsError = false, new("tool_error"), new(true)
		}
		in.Steps = append(in.Steps, s)
	}
	last.StepIndex, last.TurnIndex, last.ToolName, last.ToolCallID, last.ArgumentsJSON, last.Message, last.Observation = 5, new(int32(3)), nil, nil, nil, "It is FINAL", nil
	last.CallIndex, last.Reasoning = nil, nil
	in.Steps = append(in.Steps, last)
	return in
}

// splitByKind holds, for kinds of views whose trainers train on every message of the agent, a function
// that splits a row into the texts of these messages and all other texts.
var splitByKind = map[string]func(map[string]any) (trained, shown string){
	"sft-sharegpt": func(row map[string]any) (trained, shown string) {
		return split(row["conversations"], "from", "value", "gpt", "function_call")
	},
	"sft-verl": func(row map[string]any) (trained, shown string) {
		return split(row["messages"], "role", "content", "assistant")
	},
	"debug-gym-sft": func(row map[string]any) (trained, shown string) {
		return split(row["messages"], "role", "content", "assistant")
	},
}

func split(list any, role, content string, agent ...string) (trained, shown string) {
	for _, m := range list.([]any) {
		m := m.(map[string]any)
		text := m[content].(string)
		if calls, ok := m["tool_calls"]; ok {
			line, _ := schemas.CanonicalJSON(calls)
			text += string(line)
		}
		if slices.Contains(agent, m[role].(string)) {
			trained += text
			continue
		}
		shown += text
	}
	return trained, shown
}

// A failed call is not trained on, but the turns after it are.
func TestMistakesDoNotEndARow(t *testing.T) {
	for kind, read := range splitByKind {
		rows, notes := render(t, kind, sinks.ViewOptions{Count: words}, episodeWithMistake())
		if len(rows) != 1 {
			t.Errorf("%s: %d rows, %v", kind, len(rows), notes)
			continue
		}
		trained, shown := read(rows[0])
		for _, word := range []string{"I try ALPHA", "p ALPHA_name", "I try OMEGA", "p OMEGA_name", "It is FINAL"} {
			if !strings.Contains(trained, word) {
				t.Errorf("%s does not train on %q: %s", kind, word, trained)
			}
		}
		for _, word := range []string{"I try WRONG", "p WRONG_name", "WRONG was answered"} {
			if strings.Contains(trained, word) || !strings.Contains(shown, word) {
				t.Errorf("%s: %q is trained on, or not shown: %s", kind, word, shown)
			}
		}
		if notes["turns_masked_tool_error"] != 1 {
			t.Errorf("%s: %v", kind, notes)
		}
	}
}

// The mistake may be the first turn, the last or all of them.
func TestMistakesAtTheEnds(t *testing.T) {
	for kind, read := range splitByKind {
		for name, at := range map[string][]int{"first": {2}, "last": {5}, "all": {2, 3, 4, 5}, "first two": {2, 3}} {
			in := episodeWithMistake()
			in.Steps[3].Train, in.Steps[3].MaskReason = true, nil
			for _, i := range at {
				in.Steps[i].Train, in.Steps[i].MaskReason, in.Steps[i].Message = false, new("tool_error"), "MASKED"
			}
			rows, _ := render(t, kind, sinks.ViewOptions{Count: words}, in)
			if (len(rows) == 0) != (name == "all") {
				t.Errorf("%s, %s: %d rows", kind, name, len(rows))
			}
			for _, row := range rows {
				if trained, _ := read(row); strings.Contains(trained, "MASKED") || !strings.Contains(trained, "OMEGA") {
					t.Errorf("%s, %s: trains on %s", kind, name, trained)
				}
			}
		}
	}
}
