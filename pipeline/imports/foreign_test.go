package imports_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/internal/sinktest"
	"github.com/tracesmith/tracesmith/pipeline/imports"
	"github.com/tracesmith/tracesmith/pipeline/normalise"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// masks returns for each step of the agent "train" or the reason why it is masked.
func masks(steps []schemas.StepRow) []string {
	var out []string
	for _, s := range steps {
		switch {
		case s.Source != "agent":
		case s.Train:
			out = append(out, "train")
		case s.MaskReason == nil:
			out = append(out, "masked without a reason")
		default:
			out = append(out, *s.MaskReason)
		}
	}
	return out
}

// According to the ATIF format, models must not be trained on copied context and on steps without a
// model call. A reply without a tool call may be an answer to the user.
func TestATIFMarksUntrainedSteps(t *testing.T) {
	s := read(t, "atif", `{"schema_version": "ATIF-v1.7", "agent": {"name": "a", "version": "1"}, "steps": [
		{"step_id": 1, "source": "user", "message": "Fix it."},
		{"step_id": 2, "timestamp": "2025-10-16T14:30:00.25", "source": "agent", "message": "copied", "is_copied_context": true,
		 "tool_calls": [{"tool_call_id": "a", "function_name": "f", "arguments": {}}], "observation": {"results": [{"source_call_id": "a", "content": ""}]}},
		{"step_id": 3, "source": "agent", "message": "dispatched", "llm_call_count": 0,
		 "tool_calls": [{"tool_call_id": "b", "function_name": "f", "arguments": {}}], "observation": {"results": [{"source_call_id": "b", "content": "x"}]}},
		{"step_id": 4, "source": "agent", "message": "Which one?", "extra": {"source": 3, "mask_reason": ["x"]}},
		{"step_id": 5, "source": "user", "message": "The first."},
		{"step_id": 6, "source": "agent", "message": "", "llm_call_count": 1,
		 "tool_calls": [{"tool_call_id": "c", "function_name": "f", "arguments": {}}, {"tool_call_id": "d", "function_name": "g", "arguments": {}}],
		 "observation": {"results": [{"source_call_id": "d", "content": "two"}]}},
		{"step_id": 7, "source": "user", "message": "And now?"}]}`)
	if diff := cmp.Diff([]string{"copied", "synthetic", "train", "train", "train"}, masks(s.Steps)); diff != "" {
		t.Error(diff)
	}
	want := []string{
		"user: Fix it.", "agent: copied > f{} < ", "agent: dispatched > f{} < x", "agent: Which one? < The first.",
		"agent:  > f{}", "agent:  > g{} < two\n\nAnd now?", // the call of f has no result
	}
	if diff := cmp.Diff(want, transcript(s.Steps)); diff != "" {
		t.Error(diff)
	}
	if at := s.Steps[1].TS; at == nil || at.Format("15:04:05.00") != "14:30:00.25" {
		t.Errorf("a time without a zone is read as %v", at)
	}
}

// Importing an ATIF file that tracesmith exported keeps its masks and gold edits.
func TestOwnATIFKeepsMasks(t *testing.T) {
	in := sinktest.Episode("run", 2).Trajectory()
	in.Episode.GoldUsed, in.Episode.Repo = true, "github.com/owner/repo2"
	bad := &in.Steps[4]
	bad.ArgumentsJSON, bad.ArgumentsRaw, bad.ArgumentsValid = new("{}"), new("[1"), new(false)
	bad.IsError, bad.ErrorClass, bad.FormatError, bad.Train, bad.MaskReason = new(true), new("bad_arguments"), new(true), false, new("format_error")
	v, err := sinks.Views.Build("atif", nil, sinks.ViewOptions{AllowGold: true})
	if err != nil {
		t.Fatal(err)
	}
	rows, _, err := v.Render(in)
	if err != nil {
		t.Fatal(err)
	}
	got, err := imports.Read("atif", "x.json", rows[0].Body, modified, normalise.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range got.Steps {
		exported := in.Steps[i]
		if exported.Source == "agent" && exported.MaskReason != nil && (s.Train || s.MaskReason == nil || *s.MaskReason != *exported.MaskReason) {
			t.Errorf("step %d was masked for %s and is %s now", i, *exported.MaskReason, masks(got.Steps[i:i+1]))
		}
		if exported.GoldEdit != nil && *exported.GoldEdit && (s.GoldEdit == nil || !*s.GoldEdit) {
			t.Errorf("step %d is no longer a gold edit", i)
		}
	}
	if s := got.Steps[4]; *s.ArgumentsRaw != "[1" || *s.ArgumentsValid || *s.ErrorClass != "bad_arguments" {
		t.Errorf("the invalid call: %+v", s)
	}
	a, b := in.Episode, got.Episode
	if b.Repo != a.Repo || b.Policy != a.Policy || !b.GoldUsed {
		t.Errorf("repo %s, policy %s, gold %t", b.Repo, b.Policy, b.GoldUsed)
	}
}

// For models of the Responses API, a mini-swe-agent file contains responses instead of messages.
func TestMiniSWEAgentResponsesAreRead(t *testing.T) {
	s := read(t, "mini-swe-agent", `{"info": {}, "messages": [{"role": "system", "content": "You fix."}, {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Fix it."}]},
		{"object": "response", "output": [{"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "hm"}]},
			{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Look."}]},
			{"type": "function_call", "call_id": "c1", "name": "bash", "arguments": "{\"command\": \"ls\"}"}], "extra": {"actions": [{"command": "ls", "tool_call_id": "c1"}]}},
		{"type": "function_call_output", "call_id": "c1", "output": "a.py", "extra": {"returncode": 0}}]}`)
	if diff := cmp.Diff([]string{"system: You fix.", "user: Fix it.", `agent: Look. > bash{"command":"ls"} < a.py`}, transcript(s.Steps)); diff != "" {
		t.Error(diff)
	}
	if last := s.Steps[2]; *last.Reasoning != "hm" || *last.ToolCallID != "c1" || *last.ExitCode != 0 {
		t.Errorf("%+v", last)
	}
}

// The conversations of an episode stay separate: prompts of the second one are not taken for
// answers to the last call of the first one.
func TestOwnATIFKeepsConversationsSeparate(t *testing.T) {
	in := sinktest.Phased("run", 1).Trajectory()
	v, err := sinks.Views.Build("atif", nil, sinks.ViewOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rows, _, err := v.Render(in)
	if err != nil {
		t.Fatal(err)
	}
	got := read(t, "atif", string(rows[0].Body))
	if diff := cmp.Diff(transcript(in.Steps), transcript(got.Steps)); diff != "" {
		t.Error(diff)
	}
	for i, s := range got.Steps {
		if s.Phase == nil || *s.Phase != *in.Steps[i].Phase {
			t.Errorf("step %d has phase %v", i, s.Phase)
		}
	}
	if diff := cmp.Diff([]string{"seek", "solve"}, got.Episode.Phases); diff != "" {
		t.Error(diff)
	}
}

// The history in a SWE-agent file may be shorter than the trajectory, and lacks the answer to the
// last call. Both come from the trajectory.
func TestLastStepsOfSWEAgentAreKept(t *testing.T) {
	const file = `{"history": [{"role": "system", "content": "You fix."}, {"role": "user", "content": "Fix it."},
		{"role": "assistant", "content": "Shown.", "action": "demo", "is_demo": true}, {"role": "user", "content": "seen", "is_demo": true},
		{"role": "assistant", "content": "Look.", "action": "ls\n", "thinking_blocks": [{"type": "thinking", "thinking": "hm"}]}],
		"trajectory": [{"action": "ls", "observation": "a.py", "response": "Look."}, {"action": "submit", "observation": "diff", "response": "Done."}],
		"info": {"exit_status": "submitted"}}`
	s := read(t, "swe-agent", file)
	want := []string{
		"system: You fix.", "user: Fix it.", `agent: Shown. > bash{"command":"demo"} < seen`,
		`agent: Look. > bash{"command":"ls\n"} < a.py`, `agent: Done. > bash{"command":"submit"} < diff`,
	}
	if diff := cmp.Diff(want, transcript(s.Steps)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"copied", "train", "train"}, masks(s.Steps)); diff != "" {
		t.Error(diff)
	}
	shown := strings.Replace(samples["swe-agent"], `{"role": "user", "content": [`, `{"role": "assistant", "content": "Shown."}, {"role": "user", "content": [`, 1)
	if diff := cmp.Diff([]string{"copied", "train"}, masks(read(t, "swe-agent", shown).Steps)); diff != "" {
		t.Error(diff)
	}
	if r := s.Steps[3].Reasoning; r == nil || *r != "hm" {
		t.Errorf("reasoning %v", r)
	}
}

// Files of the first versions of mini-swe-agent contain commands only in the texts of replies.
func TestCommandsInRepliesOfMiniSWEAgentAreCalls(t *testing.T) {
	const messages = `[{"role": "system", "content": "You fix."}, {"role": "user", "content": "Fix it."},
		{"role": "assistant", "content": "Look.\n\n` + "```bash\\nls -la\\n```" + `"}, {"role": "user", "content": "a.py"},
		{"role": "assistant", "content": "Two:\n` + "```bash\\na\\n```\\n```bash\\nb\\n```" + `"}, {"role": "user", "content": "One, please."},
		{"role": "assistant", "content": "<mswea_bash_command>cat a.py</mswea_bash_command>"}, {"role": "user", "content": ""}]`
	want := []string{`bash{"command":"ls -la"}`, "no call", `bash{"command":"cat a.py"}`}
	for _, raw := range []string{messages, `{"info": {}, "messages": ` + messages + `, "trajectory_format": "mini-swe-agent-1"}`} {
		s := read(t, "mini-swe-agent", raw)
		var got []string
		for _, r := range s.Steps {
			switch {
			case r.ToolName != nil:
				got = append(got, *r.ToolName+*r.ArgumentsJSON)
			case r.Source == "agent":
				got = append(got, "no call")
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"train", "format_error", "train"}, masks(s.Steps)); diff != "" {
			t.Error(diff)
		}
		if last := s.Steps[len(s.Steps)-1]; last.Observation == nil || *last.Observation != "" {
			t.Errorf("the empty answer is %v", last.Observation)
		}
	}
	// If the model wrote its calls as text, views must not render them as tool calls as well.
	for _, c := range []struct{ format, raw, style string }{
		{"mini-swe-agent", messages, "text"}, {"mini-swe-agent", samples["mini-swe-agent"], "native"}, {"swe-agent", samples["swe-agent"], "text"},
		{"swe-agent", strings.Replace(samples["swe-agent"], `"response": "Look.\n`+"```"+`\nls\n`+"```"+`"`, `"response": "Look."`, 1), "native"},
		{"debug-gym", samples["debug-gym"], "native"},
	} {
		s := read(t, c.format, c.raw)
		if got := s.Episode.ToolCallStyle; got == nil || *got != c.style {
			t.Errorf("%s: style %v, want %s", c.format, got, c.style)
		}
		v, err := sinks.Views.Build("sft-openai", nil, sinks.ViewOptions{Mask: sinks.MaskNone})
		if err != nil {
			t.Fatal(err)
		}
		rows, _, err := v.Render(s.Trajectory())
		if err != nil {
			t.Fatal(err)
		}
		if line, _ := schemas.CanonicalJSON(rows[0].Value); strings.Contains(string(line), `"tool_calls"`) != (c.style == "native") {
			t.Errorf("%s: %s", c.format, line)
		}
	}
	own := strings.ReplaceAll(`{"info": {"config": {"agent": {"action_regex": "RUN (.*?) END"}}}, "messages": `+messages+`}`, "<mswea_bash_command>cat a.py</mswea_bash_command>", "RUN x END")
	if s := read(t, "mini-swe-agent", own); *s.Steps[4].ArgumentsJSON != `{"command":"x"}` || s.Steps[2].ToolName != nil {
		t.Errorf("with a configured regular expression: %+v", s.Steps[4])
	}
}
