package imports_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/internal/sinktest"
	"github.com/tracesmith/tracesmith/pipeline/imports"
	"github.com/tracesmith/tracesmith/pipeline/normalise"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
	_ "github.com/tracesmith/tracesmith/sinks/views"
)

var modified = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Small files of each format, as their tools write them.
var samples = map[string]string{
	"debug-gym": `{"problem": "django-1", "config": {"llm_name": "m1"}, "uuid": "u-1", "success": true, "agent_type": "froggy", "logger": "/x",
		"tools": [{"type": "function", "function": {"name": "pdb", "description": "d", "parameters": {"type": "object"}}}],
		"log": [
		{"step_id": 0, "reasoning": null, "content": null, "action": null, "obs": "Fix it.", "prompt_response_pairs": null,
		 "system_message": {"role": "system", "content": "You debug."}, "problem_message": {"role": "user", "content": "Fix it."}},
		{"step_id": 1, "content": "I look.", "reasoning": "hm", "action": {"id": "c1", "name": "pdb", "arguments": {"command": "b 3"}}, "obs": "Breakpoint 1",
		 "prompt_response_pairs": [{"prompt": [], "response": "I look.", "token_usage": {"prompt": 10, "response": 2}}]},
		{"step_id": 2, "content": "Well.", "reasoning": null, "action": {"id": "empty_tool_response", "name": "empty_tool_response", "arguments": {}}, "obs": "No tool call was generated.",
		 "prompt_response_pairs": [{"prompt": [], "response": "Well.", "token_usage": {"prompt": 20, "response": 3}}]}]}`,
	"mini-swe-agent": `{"info": {"model_stats": {"instance_cost": 0.5, "api_calls": 2}, "mini_version": "2.0.0", "exit_status": "Submitted", "submission": "diff --git a/a b/a\n",
		"config": {"agent_type": "x.DefaultAgent", "model": {"model_name": "m2"}}}, "trajectory_format": "mini-swe-agent-1.1",
		"messages": [{"role": "system", "content": "You fix."}, {"role": "user", "content": "Fix it."},
		{"role": "assistant", "content": "Look.", "extra": {"actions": [{"command": "ls"}], "cost": 0.2, "timestamp": 1706000000.5}},
		{"role": "user", "content": "a.py", "extra": {"returncode": 1, "timestamp": 1706000001.0}},
		{"role": "assistant", "content": null, "tool_calls": [{"id": "t1", "type": "function", "function": {"name": "bash", "arguments": "{\"command\": \"cat a.py\"}"}}]},
		{"role": "tool", "tool_call_id": "t1", "content": "x = 1"},
		{"role": "user", "content": "", "extra": {"exit_status": "Submitted", "submission": "d"}}]}`,
	"swe-agent": `{"trajectory": [{"action": "ls", "observation": "a.py", "response": "Look.\n` + "```" + `\nls\n` + "```" + `", "thought": "Look.", "state": {}, "execution_time": 0.1,
		"query": [{"role": "system", "content": "You fix."}, {"role": "user", "content": [{"type": "text", "text": "Fix it."}]}], "extra_info": {}}],
		"history": [], "info": {"exit_status": "exit_cost", "submission": null, "model_stats": {"instance_cost": 3}}, "replay_config": "{}"}`,
	"atif": `{"schema_version": "ATIF-v1.4", "agent": {"name": "other", "version": "3", "model_name": "m4"}, "steps": [
		{"step_id": 1, "source": "user", "message": "Fix it."},
		{"step_id": 2, "timestamp": "2025-10-16T14:30:00Z", "source": "agent", "message": "", "reasoning_content": "hm",
		 "tool_calls": [{"tool_call_id": "a", "function_name": "view", "arguments": {"p": 1}}, {"tool_call_id": "b", "function_name": "view", "arguments": {"p": 2}}],
		 "observation": {"results": [{"source_call_id": "b", "content": "two"}, {"source_call_id": "a", "content": [{"type": "text", "text": "one"}]}]},
		 "metrics": {"prompt_tokens": 7, "completion_tokens": 1}}]}`,
}

func read(t *testing.T, format, raw string) sinks.Staged {
	t.Helper()
	s, err := imports.Read(format, "django-1.traj.json", []byte(raw), modified, normalise.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// transcript returns one line per step with its message, call and observation.
func transcript(steps []schemas.StepRow) []string {
	var out []string
	for _, s := range steps {
		line := s.Source + ": " + s.Message
		if s.ToolName != nil {
			line += " > " + *s.ToolName + *s.ArgumentsJSON
		}
		if s.Observation != nil {
			line += " < " + *s.Observation
		}
		out = append(out, line)
	}
	return out
}

func TestFormatsAreRead(t *testing.T) {
	for format, want := range map[string][]string{
		"debug-gym": {
			"system: You debug.", "user: Fix it.", `agent: I look. > pdb{"command":"b 3"} < Breakpoint 1`, "agent: Well. < No tool call was generated.",
		},
		"mini-swe-agent": {
			"system: You fix.", "user: Fix it.", `agent: Look. > bash{"command":"ls"} < a.py`, `agent:  > bash{"command":"cat a.py"} < x = 1`,
		},
		"swe-agent": {"system: You fix.", "user: Fix it.", "agent: Look.\n```\nls\n``` > bash{\"command\":\"ls\"} < a.py"},
		"atif":      {"user: Fix it.", `agent:  > view{"p":1} < one`, `agent:  > view{"p":2} < two`},
	} {
		s := read(t, format, samples[format])
		if diff := cmp.Diff(want, transcript(s.Steps)); diff != "" {
			t.Errorf("%s: %s", format, diff)
		}
		e := s.Episode
		if e.InstanceID != "django-1" || e.Resolved != nil || e.VerifyStatus != "not_run" || *e.Outcome != map[string]string{"submitted": "unverified", "unknown": "unverified", "max_cost": "limit"}[e.ExitReason] || e.TaskSource != "import/"+format {
			t.Errorf("%s: %+v", format, e)
		}
		for name, unknown := range map[string]bool{
			"seed": e.Seed == nil, "env_ms": e.EnvMS == nil, "queue_ms": e.QueueMS == nil, "history_stripped": e.HistoryStripped == nil,
			"env_key": e.EnvKey == nil, "f2p": e.F2PTotal == nil, "test_visibility": e.TestVisibility == nil,
		} {
			if !unknown {
				t.Errorf("%s: %s has a value, although the file contains none", format, name)
			}
		}
		var config struct {
			Import struct{ Format, File, SHA256 string }
		}
		if err := json.Unmarshal([]byte(*e.ConfigJSON), &config); err != nil || config.Import.Format != format || config.Import.SHA256 != schemas.HashBytes([]byte(samples[format])) {
			t.Errorf("%s: source %+v, %v", format, config, err)
		}
	}
}

func TestImportedVerdictsStayClaims(t *testing.T) {
	gym := read(t, "debug-gym", samples["debug-gym"])
	if e := gym.Episode; e.Resolved != nil || e.VerifyStatus != schemas.VerifyNotRun || *e.VerifyMethod != "debug-gym.success" || !strings.Contains(*e.VerifyReason, "true") || e.ExitReason != "unknown" || *e.Outcome != schemas.OutcomeUnverified || *e.PromptTokens != 30 {
		t.Errorf("%+v", e)
	}
	if s := gym.Steps[2]; s.TS != nil || s.IsError != nil || *s.Reasoning != "hm" {
		t.Errorf("%+v", s)
	}
	mini := read(t, "mini-swe-agent", samples["mini-swe-agent"])
	if e := mini.Episode; e.ExitReason != "submitted" || *e.CostUSD != 0.5 || *e.Patch == "" || e.Model != "m2" || e.CreatedAt.Year() != 2024 {
		t.Errorf("%+v", e)
	}
	if s := mini.Steps[2]; *s.ExitCode != 1 || !*s.IsError || s.TS == nil {
		t.Errorf("%+v", s)
	}
	if e := read(t, "swe-agent", samples["swe-agent"]).Episode; e.ExitReason != "max_cost" || e.Patch != nil || !e.CreatedAt.Equal(modified) || e.EndedAt != nil {
		t.Errorf("%+v", e)
	}
}

// All trajectories of a repository belong to one split, including imported ones.
func TestImportsGetTheSplitOfTheirRepository(t *testing.T) {
	for instance, want := range map[string][2]string{
		"django__django-11099":                       {"github.com/django/django", "test"},
		"acme__tool.95280573.combine_file__0fwdrjk9": {"github.com/acme/tool", "train"},
		"mine": {"import/debug-gym/mine", "train"},
	} {
		raw := strings.ReplaceAll(samples["debug-gym"], "django-1", instance)
		e := read(t, "debug-gym", raw).Episode
		if got := [2]string{e.Repo, e.Split}; got != want || *e.SplitGroup != e.Repo || e.TaskSource != "import/debug-gym" {
			t.Errorf("%s: %v, want %v", instance, got, want)
		}
	}
}

// An imported export of tracesmith keeps the repository, the split, the policy, and the mark that
// the policy could see the fix.
func TestOwnExportsKeepRepositoryAndSplit(t *testing.T) {
	from := sinktest.Episode("run", 2)
	from.Episode.TaskSource, from.Episode.Repo, from.Episode.InstanceID, from.Episode.Split = "builtin", "builtin/stockroom", "stockroom", "validation"
	from.Episode.Policy, from.Episode.GoldUsed = "solution", true
	for kind, format := range map[string]string{"atif": "atif", "debug-gym-json": "debug-gym"} {
		v, err := sinks.Views.Build(kind, nil, sinks.ViewOptions{AllowGold: true})
		if err != nil {
			t.Fatal(err)
		}
		rows, _, err := v.Render(from.Trajectory())
		if err != nil {
			t.Fatal(err)
		}
		got := read(t, format, string(rows[0].Body))
		e := got.Episode
		if e.Repo != "builtin/stockroom" || e.Split != "validation" || e.Policy != "solution" || !e.GoldUsed || e.TaskSource != "import/"+format {
			t.Errorf("%s: %s %s %s %t %s", kind, e.Repo, e.Split, e.Policy, e.GoldUsed, e.TaskSource)
		}
		for i, s := range got.Steps {
			if s.Train || s.Split != "validation" {
				t.Errorf("%s: step %d: train %t, split %s", kind, i, s.Train, s.Split)
			}
		}
	}
}

// A value that a file does not contain is null, not 0.
func TestUnknownCostsAreNull(t *testing.T) {
	raw := strings.ReplaceAll(samples["debug-gym"], `"token_usage": {"prompt": 10, "response": 2}`, `"token_usage": null`)
	for format, raw := range map[string]string{"debug-gym": raw, "mini-swe-agent": samples["mini-swe-agent"], "swe-agent": samples["swe-agent"]} {
		got := read(t, format, raw)
		e := got.Episode
		for name, n := range map[string]*int64{
			"prompt": e.PromptTokens, "completion": e.CompletionTokens, "cached": e.CachedTokens, "reasoning": e.ReasoningTokens, "max_prompt": e.MaxPromptTokens,
		} {
			if n != nil {
				t.Errorf("%s: %s tokens are %d", format, name, *n)
			}
		}
	}
	withUsage := read(t, "atif", samples["atif"])
	if e := withUsage.Episode; *e.PromptTokens != 7 || *e.CompletionTokens != 1 || e.CachedTokens != nil || withUsage.Steps[1].CachedTokens != nil || withUsage.Steps[1].ContextOp != nil {
		t.Errorf("tokens of a file with usage: %+v", e)
	}
	copied := read(t, "atif", strings.Replace(samples["atif"], `"message": "", "reasoning_content"`, `"message": "", "is_copied_context": true, "reasoning_content"`, 1))
	if s := copied.Steps[1]; !*s.IsCopiedContext || s.Train || *s.MaskReason != "copied" {
		t.Errorf("copied step: %+v", s)
	}
}

// Importing an export gives the same calls and observations.
func TestExportsSurviveRoundTrip(t *testing.T) {
	for kind, format := range map[string]string{"atif": "atif", "debug-gym-json": "debug-gym"} {
		for _, from := range []sinks.Staged{sinktest.Episode("run", 2)} {
			in := from.Trajectory()
			v, err := sinks.Views.Build(kind, nil, sinks.ViewOptions{AllowGold: true})
			if err != nil {
				t.Fatal(err)
			}
			rows, _, err := v.Render(in)
			if err != nil {
				t.Fatal(err)
			}
			got, err := imports.Read(format, "x.json", rows[0].Body, modified, normalise.Config{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(callsOf(in.Steps), callsOf(got.Steps)); diff != "" {
				t.Errorf("%s: %s", kind, diff)
			}
			if kind == "atif" && (got.Episode.InstanceID != in.Episode.InstanceID || got.Episode.ExitReason != "submitted" || len(got.Steps) != len(in.Steps)) {
				t.Errorf("%s: %d steps of %d, %+v", kind, len(got.Steps), len(in.Steps), got.Episode)
			}
		}
	}
}

func callsOf(steps []schemas.StepRow) []string {
	var out []string
	for _, s := range steps {
		if s.ToolName == nil {
			continue
		}
		observation := ""
		if s.Observation != nil {
			observation = strings.TrimSpace(strings.Split(*s.Observation, "\n")[0])
		}
		out = append(out, *s.ToolName+*s.ArgumentsJSON+" "+strings.ReplaceAll(observation, "\x00", ""))
	}
	return out
}

// The error for a broken file is one line with the position in the file.
func TestErrorsOfBrokenFilesHaveThePosition(t *testing.T) {
	for _, c := range []struct{ format, raw, want string }{
		{"debug-gym", "", "line 1: not valid JSON"},
		{"debug-gym", "{\n\"log\": [", "line 2: not valid JSON"},
		{"debug-gym", "{}", "log is missing"},
		{"debug-gym", "{\"log\":\n 3}", "line 2: log is a number"},
		{"debug-gym", `{"log": []}`, "no step of an agent"},
		{"debug-gym", `{"log": [{}, {"obs": "[{"}, {"prompt_response_pairs": [{}, {"token_usage": {"prompt": 1}, "response": {"a": [1]}}]}]}`, "log[2].prompt_response_pairs[1].response is an object: it must be text"},
		{"debug-gym", `{"log": [{"action": {"name": ["x"]}}]}`, "log[0].action.name is a list: it must be text"},
		{"debug-gym", `{"log": [{"step_id": true}]}`, "log[0].step_id is true or false: it must be a number"},
		{"debug-gym", `[]`, "the file is a list: it must be an object"},
		{"debug-gym", `{"log": []} {}`, "more than one JSON value"},
		{"debug-gym", `{"log": [{"system_message": 4}]}`, "log[0].system_message: content is neither"},
		{"swe-agent", "{}", "trajectory and history are missing"},
		{"swe-agent", `{"history": [{"role": "wizard"}]}`, `history[0]: role "wizard"`},
		{"mini-swe-agent", "{}", "messages are missing"},
		{"mini-swe-agent", `{"messages": [{"role": "user", "content": 3}]}`, "messages[0]: content is neither"},
		{"atif", "{}", `schema_version is ""`},
		{"atif", `{"schema_version": "ATIF-v1.7", "agent": {"name": "a"}, "steps": [{"step_id": 2}]}`, "steps[0].step_id is 2, want 1"},
		{"atif", `{"schema_version": "ATIF-v1.7", "agent": {"name": "a"}, "steps": [{"step_id": 1, "source": "dog"}]}`, `steps[0].source "dog"`},
		{"atif", `{"schema_version": "ATIF-v1.7", "agent": {"name": "a"}, "steps": [{"step_id": 1, "source": "user", "timestamp": "noon"}]}`, `steps[0].timestamp "noon"`},
		{"csv", "{}", `unknown format "csv": choose one of atif, debug-gym, messages, mini-swe-agent, openhands, swe-agent`},
	} {
		_, err := imports.Read(c.format, "f.json", []byte(c.raw), modified, normalise.Config{})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Count(err.Error(), "\n") > 0 {
			t.Errorf("%s %q: %v, want %q", c.format, c.raw, err, c.want)
		}
	}
}

// Secrets in imported files do not appear in the rows.
func TestImportsAreRedacted(t *testing.T) {
	const key = "AKIAIOSFODNN7EXAMPLQ"
	s := read(t, "debug-gym", strings.ReplaceAll(samples["debug-gym"], "Breakpoint 1", "aws_access_key_id = "+key))
	body, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(body), key) {
		t.Error("a key is in the rows")
	}
}

func FuzzRead(f *testing.F) {
	for format, raw := range samples {
		f.Add(format, []byte(raw))
	}
	f.Add("atif", []byte(`{"schema_version":"ATIF-v1.7","agent":{"name":"a"},"steps":[{"step_id":1,"source":"agent","message":"","observation":{"results":[{"source_call_id":"x"}]}}]}`))
	f.Fuzz(func(t *testing.T, format string, raw []byte) {
		s, err := imports.Read(format, "f.json", raw, modified, normalise.Config{})
		if err != nil {
			return
		}
		for _, kind := range []string{"atif", "sft-openai", "sft-sharegpt", "sft-text"} { // every imported episode can be rendered
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

// A file of mini-swe-agent may have any name, because it contains the ID of its instance.
func TestFilesOfMiniSWEContainTheirInstance(t *testing.T) {
	s := read(t, "mini-swe-agent", strings.Replace(samples["mini-swe-agent"], `"trajectory_format"`, `"instance_id": "acme__tool-7", "trajectory_format"`, 1))
	if s.Episode.InstanceID != "acme__tool-7" {
		t.Errorf("instance %s", s.Episode.InstanceID)
	}
}
