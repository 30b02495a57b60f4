package imports_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/pipeline/imports"
	"github.com/tracesmith/tracesmith/pipeline/normalise"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// rowSamples has small rows in the layouts of public datasets, with invented texts.
var rowSamples = map[string]string{
	"native calls": `{"instance_id": "acme__tool-7", "trajectory_id": "chat-1", "repo": "acme/tool", "model_patch": "diff --git a/a.py b/a.py\n",
		"exit_status": "submit", "resolved": 1, "gen_tests_correct": null,
		"tools": [{"type": "function", "function": {"name": "execute_bash", "description": "d", "parameters": {"type": "object"}}}],
		"trajectory": [
		{"role": "system", "content": "You fix.", "name": null, "tool_calls": null, "tool_call_id": null},
		{"role": "user", "content": "Fix it."},
		{"role": "assistant", "content": "Look.", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "execute_bash", "arguments": "{\"command\": \"ls\"}"}}]},
		{"role": "tool", "content": "ls: no\n[The command completed with exit code 2.]\n[Command finished with exit code 2]", "name": "execute_bash", "tool_call_id": "c1"},
		{"role": "assistant", "content": "", "tool_calls": [
			{"id": "c2", "type": "function", "function": {"name": "str_replace_editor", "arguments": "{\"command\": \"view\", \"path\": \"/a.py\"}"}},
			{"id": "c3", "type": "function", "function": {"name": "str_replace_editor", "arguments": "{\"command\": \"str_replace\", \"path\": \"/a.py\"}"}},
			{"id": "c4", "type": "function", "function": {"name": "think", "arguments": "{\"thought\": \"curl https://example.com would tell\"}"}}]},
		{"role": "tool", "content": "ERROR:\nNo such text.", "name": "str_replace_editor", "tool_call_id": "c3"},
		{"role": "tool", "content": "x = 1", "name": "str_replace_editor", "tool_call_id": "c2"},
		{"role": "tool", "content": "Noted.", "name": "think", "tool_call_id": "c4"},
		{"role": "assistant", "content": "Done?"},
		{"role": "user", "content": "Go on."},
		{"role": "assistant", "content": "", "tool_calls": [{"id": "c5", "type": "function", "function": {"name": "finish", "arguments": "{}"}}]}]}`,
	"calls in texts": `{"instance_id": "acme__tool-7_0", "run_id": "run-1", "resolved": false, "test_result": {"git_patch": "diff"},
		"tools": "[{\"type\": \"function\", \"function\": {\"name\": \"str_replace_editor\", \"parameters\": {\"type\": \"object\", \"properties\": {\"view_range\": {\"type\": \"array\"}, \"path\": {\"type\": \"string\"}}}}}]",
		"messages": "[{\"role\": \"system\", \"content\": \"You fix.\"}, {\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"Fix it.\"}]}, {\"role\": \"assistant\", \"content\": \"Look.\\n\\n<function=str_replace_editor>\\n<parameter=command>view</parameter>\\n<parameter=path>12</parameter>\\n<parameter=view_range>\\n[1, 2]\\n</parameter>\\n</function>\"}, {\"role\": \"user\", \"content\": \"EXECUTION RESULT of [str_replace_editor]:\\nERROR:\\nNo such file.\"}, {\"role\": \"assistant\", \"content\": \"<function=execute_bash>\\n<parameter=command>\\nif a:\\n    b\\n</parameter>\"}, {\"role\": \"user\", \"content\": \"EXECUTION RESULT of [execute_bash]:\\nok\\n[Command finished with exit code 0]\"}]"}`,
	"plain messages": `{"messages": [{"role": "developer", "content": "You fix."}, {"role": "user", "content": "Fix it."},
		{"role": "assistant", "content": null, "reasoning_content": "hm", "tool_calls": [{"id": "a", "function": {"name": "bash", "arguments": {"command": "ls"}}}, {"id": "b", "name": "grep", "arguments": {"pattern": "x"}}]},
		{"role": "tool", "tool_call_id": "b", "content": [{"type": "text", "text": "two"}]}, {"role": "tool", "tool_call_id": "a", "content": "one"},
		{"role": "assistant", "content": "Old.", "function_call": {"name": "bash", "arguments": "{\"command\": \"cat a\"}"}},
		{"role": "function", "name": "bash", "content": "a"},
		{"role": "assistant", "content": "Done."}]}`,
	"SWE-smith": `{"instance_id": "acme__tool.95280573.combine_file__0fwdrjk9", "traj_id": "t-1", "model": "m1", "resolved": true, "patch": "diff",
		"messages": "[{\"role\": \"system\", \"content\": \"You fix.\", \"agent\": \"main\", \"message_type\": \"system_prompt\"}, {\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"Fix it.\"}]}, {\"role\": \"assistant\", \"content\": \"Look.\", \"action\": \"ls\", \"thought\": \"Look.\", \"tool_calls\": [{\"function\": {\"arguments\": \"{\\\"command\\\":\\\"ls\\\"}\", \"name\": \"bash\"}, \"id\": \"t1\", \"type\": \"function\"}], \"message_type\": \"action\"}, {\"role\": \"tool\", \"content\": [{\"type\": \"text\", \"text\": \"OBSERVATION:\\na.py\"}], \"tool_call_ids\": [\"t1\"], \"message_type\": \"observation\"}]"}`,
	"events": `{"instance_id": "acme__tool-7", "instruction": "Fix it.", "metadata": {"agent_class": "CodeActAgent", "llm_config": {"model": "m2"}}, "error": "RuntimeError: Agent reached maximum iteration.",
		"metrics": {"accumulated_cost": 0.5}, "test_result": {"git_patch": "diff", "report": {"resolved": true}}, "history": [
		{"id": 0, "source": "agent", "action": "system", "args": {"content": "You fix.", "tools": [{"type": "function", "function": {"name": "execute_bash", "parameters": {"type": "object"}}}]}},
		{"id": 1, "source": "user", "action": "message", "args": {"content": "Fix it."}, "timestamp": "2025-03-01T10:00:00.500000"},
		{"id": 2, "source": "agent", "action": "recall", "args": {"query": "Fix it."}}, {"id": 3, "cause": 2, "observation": "recall", "content": "secret", "extras": {}},
		{"id": 4, "source": "agent", "action": "run", "args": {"command": "ls", "thought": "ignored"}, "timestamp": "2025-03-01T10:00:01.500000",
		 "tool_call_metadata": {"function_name": "execute_bash", "tool_call_id": "c1", "total_calls_in_response": 2, "model_response": {"id": "r1", "choices": [{"message": {"role": "assistant", "content": "Two.",
		  "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "execute_bash", "arguments": "{\"command\": \"ls\", \"is_input\": \"false\"}"}}, {"id": "c2", "type": "function", "function": {"name": "think", "arguments": "{\"thought\": \"hm\"}"}}]}}]}}},
		{"id": 5, "source": "agent", "cause": 4, "observation": "run", "content": "a.py", "extras": {"metadata": {"exit_code": 0}}, "tool_call_metadata": {"function_name": "execute_bash", "tool_call_id": "c1"}},
		{"id": 6, "source": "agent", "action": "think", "args": {"thought": "hm"}, "tool_call_metadata": {"function_name": "think", "tool_call_id": "c2", "model_response": {"id": "r1", "choices": [{"message": {"role": "assistant", "content": "Two.",
		  "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "execute_bash", "arguments": "{}"}}, {"id": "c2", "type": "function", "function": {"name": "think", "arguments": "{\"thought\": \"hm\"}"}}]}}]}}},
		{"id": 7, "source": "agent", "cause": 6, "observation": "think", "content": "Noted.", "extras": {}, "tool_call_metadata": {"function_name": "think", "tool_call_id": "c2"}},
		{"id": 8, "source": "environment", "observation": "agent_state_changed", "content": "", "extras": {"agent_state": "running"}},
		{"id": 9, "source": "agent", "action": "run", "args": {"command": "pytest", "thought": "Test.", "hidden": false, "cwd": null}},
		{"id": 10, "source": "agent", "cause": 9, "observation": "run", "content": "1 failed", "extras": {"exit_code": 1}},
		{"id": 11, "source": "agent", "action": "message", "args": {"content": "Which one?"}}, {"id": 12, "source": "user", "action": "message", "args": {"content": "The first."}}]}`,
	"pairs of events": `{"instance_id": "acme__tool-7", "history": [
		[{"id": 1, "source": "user", "action": "message", "args": {"content": "Fix it."}}, {"id": -1, "source": "agent", "observation": "null", "content": "", "extras": {}}],
		[{"id": 2, "source": "agent", "action": "run_ipython", "args": {"code": "1 + 1", "thought": {"text": "Try."}}}, {"id": 3, "cause": 2, "source": "agent", "observation": "run_ipython", "content": "2", "extras": {}}]]}`,
	"events of the SDK": `[{"kind": "SystemPromptEvent", "id": "e0", "source": "agent", "system_prompt": {"type": "text", "text": "You fix."}, "tools": [{"name": "terminal", "description": "d", "parameters": {"type": "object"}}]},
		{"kind": "MessageEvent", "id": "e1", "source": "user", "llm_message": {"role": "user", "content": [{"type": "text", "text": "Fix it."}]}},
		{"kind": "ConversationStateUpdateEvent", "id": "e2", "key": "x"},
		{"kind": "ActionEvent", "id": "e3", "source": "agent", "timestamp": "2026-01-01T10:00:00.250000", "thought": [{"type": "text", "text": "Look."}], "reasoning_content": "hm", "action": {"command": "ls", "kind": "TerminalAction"},
		 "tool_name": "terminal", "tool_call_id": "c1", "tool_call": {"id": "c1", "name": "terminal", "arguments": "{\"command\": \"ls\"}"}, "llm_response_id": "r1"},
		{"kind": "ActionEvent", "id": "e4", "source": "agent", "thought": [], "action": {"command": "view", "path": "/a.py", "kind": "FileEditorAction"}, "tool_name": "file_editor", "tool_call_id": "c2", "llm_response_id": "r1"},
		{"kind": "ObservationEvent", "id": "e5", "source": "environment", "tool_name": "terminal", "tool_call_id": "c1", "observation": {"content": [{"type": "text", "text": "a.py"}], "exit_code": 1}},
		{"kind": "AgentErrorEvent", "id": "e6", "source": "agent", "tool_name": "file_editor", "tool_call_id": "c2", "error": "No such file."},
		{"kind": "MessageEvent", "id": "e7", "source": "agent", "llm_message": {"role": "assistant", "content": [{"type": "text", "text": "Done."}]}}]`,
}

// shown returns the transcript with the category, error and exit code of each call.
func shown(steps []schemas.StepRow) []string {
	lines := transcript(steps)
	for i, s := range steps {
		if s.ToolCategory == nil {
			continue
		}
		lines[i] += " [" + *s.ToolCategory + " " + s.ActionKind
		if s.IsError != nil && *s.IsError {
			lines[i] += " " + *s.ErrorClass
		}
		lines[i] += "]"
	}
	return lines
}

func TestRowsOfDatasetsAreRead(t *testing.T) {
	for _, c := range []struct {
		sample, format, style string
		want                  []string
	}{
		{"native calls", "openhands", "native", []string{
			"system: You fix.", "user: Fix it.",
			"agent: Look. > execute_bash{\"command\":\"ls\"} < ls: no\n[The command completed with exit code 2.]\n[Command finished with exit code 2] [bash seek_static nonzero_exit]",
			`agent:  > str_replace_editor{"command":"view","path":"/a.py"} < x = 1 [view seek_static]`,
			"agent:  > str_replace_editor{\"command\":\"str_replace\",\"path\":\"/a.py\"} < ERROR:\nNo such text. [edit edit user_error]",
			`agent:  > think{"thought":"curl https://example.com would tell"} < Noted. [other think]`,
			"agent: Done? < Go on.", `agent:  > finish{} [submit submit]`,
		}},
		{"calls in texts", "openhands", "text", []string{
			"system: You fix.", "user: Fix it.",
			"agent: Look.\n\n<function=str_replace_editor>\n<parameter=command>view</parameter>\n<parameter=path>12</parameter>\n<parameter=view_range>\n[1, 2]\n</parameter>\n</function>" +
				" > str_replace_editor{\"command\":\"view\",\"path\":\"12\",\"view_range\":[1,2]} < EXECUTION RESULT of [str_replace_editor]:\nERROR:\nNo such file. [view seek_static user_error]",
			"agent: <function=execute_bash>\n<parameter=command>\nif a:\n    b\n</parameter>" +
				" > execute_bash{\"command\":\"if a:\\n    b\"} < EXECUTION RESULT of [execute_bash]:\nok\n[Command finished with exit code 0] [bash exec]",
		}},
		{"plain messages", "messages", "native", []string{
			"system: You fix.", "user: Fix it.",
			`agent:  > bash{"command":"ls"} < one [bash seek_static]`, `agent:  > grep{"pattern":"x"} < two [grep seek_static]`,
			`agent: Old. > bash{"command":"cat a"} < a [bash seek_static]`, "agent: Done.",
		}},
		{"SWE-smith", "messages", "native", []string{
			"system: You fix.", "user: Fix it.", "agent: Look. > bash{\"command\":\"ls\"} < OBSERVATION:\na.py [bash seek_static]",
		}},
		{"events", "openhands", "native", []string{
			"system: You fix.", "user: Fix it.",
			`agent: Two. > execute_bash{"command":"ls","is_input":"false"} < a.py [bash seek_static]`, `agent:  > think{"thought":"hm"} < Noted. [other think]`,
			`agent: Test. > execute_bash{"command":"pytest"} < 1 failed [bash verify nonzero_exit]`, "agent: Which one? < The first.",
		}},
		{"pairs of events", "openhands", "native", []string{"user: Fix it.", `agent: Try. > execute_ipython_cell{"code":"1 + 1"} < 2 [other exec]`}},
		{"events of the SDK", "openhands", "native", []string{
			"system: You fix.", "user: Fix it.", `agent: Look. > terminal{"command":"ls"} < a.py [bash seek_static nonzero_exit]`,
			`agent:  > file_editor{"command":"view","path":"/a.py"} < No such file. [view seek_static user_error]`, "agent: Done.",
		}},
	} {
		s := read(t, c.format, rowSamples[c.sample])
		if diff := cmp.Diff(c.want, shown(s.Steps)); diff != "" {
			t.Errorf("%s: %s", c.sample, diff)
		}
		if e := s.Episode; e.Resolved != nil || e.VerifyStatus != "not_run" || *e.Outcome != "unverified" || *e.ToolCallStyle != c.style {
			t.Errorf("%s: %+v", c.sample, e)
		}
		for _, step := range s.Steps {
			if len(step.LeakPatterns) > 0 || step.ToolCategory != nil && *step.ToolCategory == "edit" && step.FilesChanged != nil {
				t.Errorf("%s: step %d has the leak patterns %v and changed %v", c.sample, step.StepIndex, step.LeakPatterns, step.FilesChanged)
			}
		}
	}
}

// Rows say which instance, repository and model they are about, how they ended, and whether they
// claim success.
func TestRowsKeepTheirFacts(t *testing.T) {
	type facts struct{ Instance, Repo, Model, Agent, Exit, Patch, Claim, Session string }
	for sample, want := range map[string]facts{
		"native calls":   {"acme__tool-7", "github.com/acme/tool", "unknown", "openhands", "submitted", "diff --git a/a.py b/a.py\n", "openhands.resolved says true; nothing was verified here", "chat-1"},
		"calls in texts": {"acme__tool-7_0", "github.com/acme/tool", "unknown", "openhands", "unknown", "diff", "openhands.resolved says false; nothing was verified here", ""},
		"events":         {"acme__tool-7", "github.com/acme/tool", "m2", "CodeActAgent", "max_steps", "diff", "openhands.test_result.report.resolved says true; nothing was verified here", ""},
		"SWE-smith":      {"acme__tool.95280573.combine_file__0fwdrjk9", "github.com/acme/tool", "m1", "unknown", "unknown", "diff", "messages.resolved says true; nothing was verified here", "t-1"},
	} {
		format := "openhands"
		if sample == "SWE-smith" {
			format = "messages"
		}
		e := read(t, format, rowSamples[sample]).Episode
		got := facts{e.InstanceID, e.Repo, e.Model, e.AgentName, e.ExitReason, schemas.Value(e.Patch), schemas.Value(e.VerifyReason), schemas.Value(e.SessionID)}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", sample, diff)
		}
	}
	events := read(t, "openhands", rowSamples["events"])
	if e := events.Episode; *e.CostUSD != 0.5 || e.CreatedAt.Format("05.0") != "00.5" || cmp.Diff([]string{"execute_bash"}, e.ToolNames) != "" {
		t.Errorf("%+v", e)
	}
	if s := read(t, "messages", rowSamples["plain messages"]); *s.Steps[2].Reasoning != "hm" || s.Episode.Harness != "unknown" {
		t.Errorf("%+v", s.Episode)
	}
	gold := strings.Replace(rowSamples["SWE-smith"], `"traj_id": "t-1"`, `"trajectory_id": "t-1"`, 1)
	if e := read(t, "messages", gold).Episode; e.Patch != nil {
		t.Errorf("the column patch of a dataset of tasks is the fix, but was imported as the agent's patch")
	}
	reward := strings.Replace(rowSamples["plain messages"], `{"messages"`, `{"reward": 1.0, "messages"`, 1)
	if e := read(t, "messages", reward).Episode; *e.VerifyMethod != "messages.reward" {
		t.Errorf("%+v", e)
	}
}

// Rows that tracesmith exported for trainers keep their repository and split.
func TestOwnRowsKeepRepositoryAndSplit(t *testing.T) {
	row := strings.Replace(rowSamples["plain messages"], `{"messages"`, `{"episode_id": "e1", "instance_id": "stockroom", "repo": "local/stockroom", "split": "validation", "messages"`, 1)
	if e := read(t, "messages", row).Episode; e.Repo != "local/stockroom" || e.Split != "validation" || e.InstanceID != "stockroom" {
		t.Errorf("%s %s %s", e.Repo, e.Split, e.InstanceID)
	}
	foreign := strings.Replace(row, "episode_id", "id", 1)
	if e := read(t, "messages", foreign).Episode; e.Split == "validation" {
		t.Error("the split of a foreign dataset was taken for that of the repository")
	}
}

func TestErrorsOfRowsHaveThePosition(t *testing.T) {
	for _, c := range []struct{ raw, want string }{
		{`{"instance_id": "x"}`, "messages, trajectory, history are missing"},
		{`{"messages": 3}`, "messages is not a list"},
		{`{"messages": "[{"}`, "messages is not a list"},
		{`{"messages": []}`, "no step of an agent"},
		{`{"messages": [{"role": "wizard"}]}`, `messages[0]: role "wizard"`},
		{`{"messages": [{"role": "user", "content": 3}]}`, "messages[0]: content is neither"},
		{`{"messages": [{"role": "user"}, 3]}`, "messages[1] is not a message"},
		{`{"messages": [{"role": "assistant", "tool_calls": "[{"}]}`, "messages[0] is not a message"},
		{`{"history": [{"x": 1}]}`, "history[0] has no role, action, observation or kind"},
		{`{"history": [{"action": {}}]}`, "history[0]: action is not a name"},
		{`[{"observation": 3}]`, "events[0]: observation is not a name"},
		{`3`, "line 1: the file is a number"},
	} {
		_, err := imports.Read("openhands", "f.json", []byte(c.raw), modified, normalise.Config{})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Count(err.Error(), "\n") > 0 {
			t.Errorf("%q: %v, want %q", c.raw, err, c.want)
		}
	}
}

// Every imported row can be rendered, and its calls have JSON objects as arguments.
func FuzzReadRow(f *testing.F) {
	for sample, raw := range rowSamples {
		format := "openhands"
		if sample == "plain messages" || sample == "SWE-smith" {
			format = "messages"
		}
		f.Add(format, []byte(raw))
	}
	f.Fuzz(func(t *testing.T, format string, raw []byte) {
		if format != "openhands" && format != "messages" {
			return
		}
		s, err := imports.Read(format, "f.json", raw, modified, normalise.Config{})
		if err != nil {
			return
		}
		for _, step := range s.Steps {
			var object map[string]any
			if step.ArgumentsJSON != nil && json.Unmarshal([]byte(*step.ArgumentsJSON), &object) != nil {
				t.Errorf("step %d has the arguments %s", step.StepIndex, *step.ArgumentsJSON)
			}
		}
		for _, kind := range []string{"atif", "sft-openai", "sft-text"} {
			v, err := sinks.Views.Build(kind, nil, sinks.ViewOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := v.Render(s.Trajectory()); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		}
	})
}
