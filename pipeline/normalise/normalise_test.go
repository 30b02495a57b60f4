package normalise

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/internal/specimen"
	"github.com/tracesmith/tracesmith/pipeline/redact"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

var update = flag.Bool("update", false, "rewrite golden files")

// planted holds secrets of several kinds. They are split, so that secret scanners do not report
// this file.
var planted = map[string]string{
	"aws_key":      "AKIA" + "IOSFODNN7EXAMPLE",
	"github_token": "ghp_" + strings.Repeat("a1B2", 9),
	"openai_key":   "sk-proj-" + "Zx9QwErTy12UiOpAs34DfGhJk56",
	"google_key":   "AIza" + "SyA1234567890abcdefghijklmnopqrstuv",
	"slack_token":  "xoxb-" + "123456789012-abcdefGHIJKL",
	"private_key":  "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEow\nIBAAK\n-----END RSA PRIVATE KEY-----",
	"assigned":     "q7Zk1xVb93LmPw82TyRs",
	"known":        "hunter2-hunter2",
}

const patch = "diff --git a/calc.py b/calc.py\nindex 1111111..2222222 100644\n--- a/calc.py\n+++ b/calc.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n" +
	"diff --git a/tests/test_calc.py b/tests/test_calc.py\nindex 1111111..2222222 100644\n--- a/tests/test_calc.py\n+++ b/tests/test_calc.py\n@@ -1 +1 @@\n-assert False\r\n+assert True\r\n"

// golden returns an episode that fills almost all columns.
func golden() *schemas.Episode {
	at := func(s int) time.Time { return time.Date(2026, 1, 2, 3, 4, s, 5678, time.UTC) }
	task := schemas.Task{
		Source: "fake", InstanceID: "calc-1", Repo: "acme/calc", Language: "python", License: "MIT", Instructions: "add() subtracts\x1b[31m!\x1b[0m",
		Visibility: "hidden", GoldPatch: strings.Split(patch, "diff --git a/tests")[0], Tests: schemas.TestSpec{Method: schemas.VerifyPytest},
	}
	task.ID = task.ComputeID()
	call := func(id, name, args string) *schemas.ToolCall {
		return &schemas.ToolCall{ID: id, Name: name, Arguments: json.RawMessage(args)}
	}
	reply := func(text string) *schemas.Reply {
		return &schemas.Reply{
			Message: text, Model: "m-1", LLMCalls: 1, Retries: 1, CostUSD: new(0.25), LLMMillis: new(int64(40)),
			Usage: &schemas.Usage{Prompt: 100, Completion: 10, Cached: 50, Reasoning: 3}, FinishReason: "tool_calls", PromptCount: 2,
		}
	}
	obs := func(source, text string, targets ...string) *schemas.Observation {
		return &schemas.Observation{Source: source, Text: text, FullBytes: int64(len(text)), Targets: targets}
	}
	ok := true
	ep := &schemas.Episode{
		Job: schemas.NewJob("run-1", task, "agent-key", 1), Task: task, Started: at(0), Ended: at(30),
		Agent:  schemas.AgentInfo{Name: "debug", Version: "2", Policy: "model", Model: "m-1", ConfigJSON: `{"b":1,"a":"x"}`, SamplingJSON: `{"temperature":0}`},
		EnvKey: schemas.EnvKey{Driver: "bubblewrap"}, Tools: []schemas.ToolSchema{{Name: "view"}, {Name: "pdb"}},
		Patch: []byte(patch), FinalSHA: "tree2", ExitReason: schemas.ExitSubmitted, QueueMS: 7, Delivery: 1,
		Verdict: schemas.Verdict{Resolved: &ok, Status: schemas.VerifiedPass, Method: "pytest", F2PPassed: 1, F2PTotal: 1, FinalSHA: "tree2", Log: "1 passed", Parsed: 1},
	}
	add := func(s schemas.Step) {
		s.Index, s.At = len(ep.Steps), at(len(ep.Steps))
		ep.Steps = append(ep.Steps, s)
	}
	add(schemas.Step{Turn: -1, Call: -1, Source: "system", Text: "You debug."})
	add(schemas.Step{Turn: -1, Call: -1, Source: "user", Text: "add() subtracts"})
	add(schemas.Step{
		Turn: 0, Call: 0, Source: "agent", Reply: reply("Look."), ToolCall: call("c1", "view", `{"path":"calc.py"}`),
		Observation: obs("view", "1 def add(a, b):\r\n2     return a - b\x07", "calc.py:1-2"), EnvMillis: 2,
	})
	add(schemas.Step{
		Turn: 0, Call: 1, Source: "agent", ToolCall: call("c2", "pdb", `{"command":"b calc.py:2"}`), Observation: obs("pdb", "Breakpoint 1"),
		State: &schemas.EnvState{
			Breakpoints: []schemas.Breakpoint{{File: "calc.py", Line: 2, Enabled: true}}, WorkspaceSHA: "tree1",
			Frame: &schemas.Frame{File: "calc.py", Line: 2, Function: "add", Event: "line"},
		}, EnvMillis: 3,
	})
	add(schemas.Step{Turn: 1, Call: 0, Source: "agent", Reply: reply("On."), ToolCall: call("c3", "pdb", `{"command":"c"}`), Observation: obs("pdb", "bad \xff\xfe bytes")})
	add(schemas.Step{Turn: 2, Call: 0, Source: "agent", Reply: reply("Again."), ToolCall: call("c4", "pdb", `{"command":"p a"}`), Observation: obs("pdb", "3")})
	add(schemas.Step{Turn: 3, Call: 0, Source: "agent", Reply: reply("Again."), ToolCall: call("c5", "pdb", `{"command":"p a"}`), Observation: obs("pdb", "3")})
	bad := call("c6", "edit", `{}`)
	bad.Raw, bad.Invalid = `{"path":`, "unexpected end"
	add(schemas.Step{
		Turn: 4, Call: 0, Source: "agent", Reply: reply(""), ToolCall: bad,
		Observation: &schemas.Observation{Source: "env", Text: "not JSON", IsError: true, ErrorClass: schemas.ErrBadArguments},
	})
	add(schemas.Step{
		Turn: 5, Call: 0, Source: "agent", Reply: reply("Fix."), ToolCall: call("c7", "edit", `{"path":"calc.py","new":"a + b\r\n"}`),
		Observation: obs("edit", "done", "calc.py:2"), Triggered: []schemas.Observation{{Source: "pdb", Text: "stale"}},
		State: &schemas.EnvState{FilesChanged: []string{"calc.py"}, WorkspaceSHA: "tree2"},
	})
	add(schemas.Step{Turn: 6, Call: 0, Source: "agent", Reply: reply("Peek."), ToolCall: call("c8", "bash", `{"command":"git log --all -p"}`), Observation: obs("bash", "none")})
	add(schemas.Step{
		Turn: 7, Call: 0, Source: "agent", Reply: reply("Test."), ToolCall: call("c9", "eval", `{}`),
		Observation: &schemas.Observation{Source: "eval", Text: "1 passed", ExitCode: new(0)}, State: &schemas.EnvState{Score: 1, MaxScore: new(1.0), EvalPassed: new(true), TestsPassed: new(1), TestsFailed: new(0)},
	})
	add(schemas.Step{Turn: 8, Call: -1, Source: "agent", Reply: reply("Done.")})
	return ep
}

func normalised(t *testing.T, ep *schemas.Episode, cfg Config) sinks.Staged {
	t.Helper()
	s, err := Episode(ep, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestGoldenEpisode(t *testing.T) {
	got, err := json.MarshalIndent(normalised(t, golden(), Config{Producer: "test"}), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	const file = "testdata/golden.json"
	if *update {
		if err := os.WriteFile(file, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(bytes.TrimSpace(want)), "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Error(diff)
	}
}

func TestSameEpisodeSameBytes(t *testing.T) {
	var last []byte
	for range 5 {
		body, err := sinks.EncodeStaged(normalised(t, golden(), Config{}))
		if err != nil {
			t.Fatal(err)
		}
		if last != nil && !bytes.Equal(last, body) {
			t.Fatal("the same episode gave different bytes")
		}
		last = body
	}
}

// Properties of rows that the golden file cannot show.
func TestRowsAgreeWithTheEpisode(t *testing.T) {
	s := normalised(t, golden(), Config{})
	e, rows := s.Episode, s.Steps
	var cost float64
	var prompt int64
	for _, r := range rows {
		if r.CostUSD != nil {
			cost += *r.CostUSD
		}
		if r.PromptTokens != nil {
			prompt += *r.PromptTokens
		}
	}
	if cost != *e.CostUSD || prompt != *e.PromptTokens || prompt != 900 || *e.NRetries != 9 || e.NTurns != 9 || *e.NToolCalls != 9 {
		t.Errorf("sums: cost %v/%v prompt %v/%v retries %d turns %d calls %d", cost, *e.CostUSD, prompt, *e.PromptTokens, *e.NRetries, e.NTurns, *e.NToolCalls)
	}
	mask := func(i int) string {
		if rows[i].MaskReason == nil {
			return fmt.Sprint(rows[i].Train)
		}
		return fmt.Sprint(rows[i].Train, " ", *rows[i].MaskReason)
	}
	var masks []string
	for i := range rows {
		masks = append(masks, mask(i))
	}
	want := []string{"false", "false", "true", "true", "true", "true", "false repeat", "false format_error", "true", "false after_leak", "false after_leak", "false after_leak"}
	if diff := cmp.Diff(want, masks); diff != "" {
		t.Error(diff)
	}
	criteria := []string{
		"count_debug_to_code_patterns", "follows_proper_debugging_workflow", "has_consecutive_pdb_calls", "has_continue_after_setting_breakpoints",
		"has_minimum_trajectory_length", "has_rewrite_after_pdb", "has_rewrite_soon_after_pdb", "has_successful_outcome", "has_sufficient_code_changes",
		"has_sufficient_debug_to_code_patterns", "uses_pdb_print_commands",
		"uses_specific_pdb_command(b)", "uses_specific_pdb_command(c)", "uses_specific_pdb_command(p)",
	}
	if diff := cmp.Diff(criteria, e.SatisfiedCriteria); diff != "" {
		t.Error(diff)
	}
	if *rows[2].Observation != "1 def add(a, b):\r\n2     return a - b" || *e.ProblemStatement != "add() subtracts!" {
		t.Errorf("control codes: %q %q", *rows[2].Observation, *e.ProblemStatement)
	}
	if *rows[4].Observation != "bad \ufffd\ufffd bytes" || *e.InvalidUTF8 != 2 {
		t.Errorf("UTF-8: %q %d", *rows[4].Observation, *e.InvalidUTF8)
	}
	if *e.Patch != patch || !*e.EditsTests || !*e.LeakGitHistory || *e.LeakNetwork || *e.GoldFileRecall != 1 || *e.GoldFilePrecision != 1 {
		t.Errorf("patch, leaks, gold: %+v", e)
	}
	if *rows[2].GoldHitHunk != true || *e.ResolvedAtStep != 8 || *e.FirstEditTurn != 5 || *e.NExploreBeforeEdit != 5 {
		t.Errorf("behaviour: %+v", e)
	}
}

func TestUnverifiedIsNotUnresolved(t *testing.T) {
	ep := golden()
	ep.Verdict, ep.ExitReason = schemas.Verdict{}, schemas.ExitMaxSteps
	e := normalised(t, ep, Config{}).Episode
	if e.Resolved != nil || e.VerifyStatus != schemas.VerifyNotRun || e.Reward != nil || e.Recovered != nil || *e.Outcome != schemas.OutcomeUnverified {
		t.Errorf("%+v", e)
	}
}

func TestUnknownCostStaysUnknown(t *testing.T) {
	ep := golden()
	ep.Steps[4].Reply.CostUSD = nil
	if e := normalised(t, ep, Config{}).Episode; e.CostUSD != nil {
		t.Errorf("cost %v although one call has no price", *e.CostUSD)
	}
}

func TestLongTextGoesToBlobs(t *testing.T) {
	ep := golden()
	long := strings.Repeat("é", 50_000) // 100,000 bytes
	ep.Steps[3].Observation.Text = long
	ep.Steps[4].Observation.Text, ep.Steps[4].Observation.FullText, ep.Steps[4].Observation.Truncated = "cut", "whole", true
	s := normalised(t, ep, Config{})
	blobs := map[string]string{}
	for _, b := range s.Blobs {
		if schemas.HashBytes([]byte(b.Content)) != b.SHA256 || b.Bytes != int64(len(b.Content)) {
			t.Errorf("blob %s has the wrong hash or size", b.SHA256)
		}
		blobs[b.SHA256] = b.Content
	}
	r := s.Steps[3]
	if len(*r.Observation) != schemas.MaxObservation || !*r.ObservationTruncated || blobs[*r.ObservationSHA256] != long || *r.ObservationBytes != 100_000 {
		t.Errorf("long observation: %d bytes, truncated %v", len(*r.Observation), *r.ObservationTruncated)
	}
	if r := s.Steps[4]; *r.Observation != "cut" || blobs[*r.ObservationSHA256] != "whole" {
		t.Errorf("truncated observation: %q, blob %q", *r.Observation, blobs[*r.ObservationSHA256])
	}
	if blobs[*s.Episode.VerifyLogSHA256] != "1 passed" {
		t.Error("the verifier's log is not among the blobs")
	}
}

func TestSecretsNeverReachStaging(t *testing.T) {
	ep := golden()
	var all []string
	for _, kind := range []string{"aws_key", "github_token", "openai_key", "google_key", "slack_token", "private_key", "known"} {
		all = append(all, planted[kind])
	}
	text := strings.Join(all, " and ") + "\nMY_API_KEY=" + planted["assigned"] + "\n"
	quoted, err := json.Marshal(map[string]any{"command": text, "argv": []string{text}, "env": map[string]string{"SECRET_KEY": planted["assigned"]}, planted["known"]: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := &ep.Steps[2]
	s.Reply.Message, s.Reply.Reasoning, s.Reply.ReasoningBlocks = text, text, quoted
	s.Reply.Extra = quoted
	s.ToolCall.Arguments, s.ToolCall.Raw = quoted, text
	s.Observation.Text, s.Observation.FullText, s.Observation.Truncated = text, text+text, true
	s.Observation.Targets = []string{planted["aws_key"] + ".py"}
	s.Triggered = []schemas.Observation{{Source: "pdb", Text: text}}
	s.State = &schemas.EnvState{
		Breakpoints: []schemas.Breakpoint{{File: "a.py", Line: 1, Condition: "k == '" + planted["known"] + "'"}},
		Frame:       &schemas.Frame{File: planted["known"], Function: planted["known"]}, FilesChanged: []string{planted["known"]},
	}
	s.ToolCall.Name, s.Observation.Source, ep.Steps[1].Text = planted["github_token"], planted["slack_token"], text
	ep.Steps[4].ToolCall.Arguments = json.RawMessage(`{"command":"` + planted["google_key"] + ` x"}`)
	ep.Task.RepoSource = "https://example.org/" + planted["github_token"]
	ep.Verdict.Status, ep.Verdict.Resolved = schemas.VerifiedFail, new(false)
	ep.Task.Instructions, ep.ErrorMessage, ep.Verdict.Log, ep.Verdict.Reason = text, text, text, text
	ep.Agent.ConfigJSON = string(quoted)
	ep.Patch = []byte(strings.Replace(patch, "a + b", "'"+planted["aws_key"]+"' + '"+planted["known"]+"'", 1))
	staged := normalised(t, ep, Config{Secrets: redact.NewKnown([]string{planted["known"], "short"})})
	raw, err := schemas.CanonicalJSON(staged)
	if err != nil {
		t.Fatal(err)
	}
	for kind, secret := range planted {
		for _, form := range []string{secret, strings.ReplaceAll(secret, "\n", `\n`), strings.ReplaceAll(secret, "\n", `\\n`)} {
			if i := bytes.Index(raw, []byte(form)); i >= 0 {
				t.Errorf("%s is in the staged episode: ...%s...", kind, raw[max(0, i-80):min(len(raw), i+80)])
			}
		}
	}
	var counts map[string]int
	if err := json.Unmarshal([]byte(*staged.Episode.RedactionsJSON), &counts); err != nil {
		t.Fatal(err)
	}
	for kind := range planted {
		if counts[kind] == 0 {
			t.Errorf("no redaction counted for %s: %v", kind, counts)
		}
	}
	if got := *staged.Episode.ProblemStatement; !strings.Contains(got, "MY_API_KEY=[REDACTED:assigned:1]") || !strings.HasPrefix(got, "[REDACTED:aws_key:1] and [REDACTED:github_token:1]") {
		t.Errorf("placeholders are not stable: %s", got)
	}
	if *staged.Steps[2].Redacted == 0 || *staged.Steps[3].Redacted != 0 {
		t.Errorf("redactions by row: %d, %d", *staged.Steps[2].Redacted, *staged.Steps[3].Redacted)
	}
}

func TestOrdinaryTextIsNotRedacted(t *testing.T) {
	r := redact.New(nil)
	for _, s := range []string{
		"sk-toggleable__label-arrow and sk-estimator-doc-link", "token = tokenizer.next_token_from_stream", "KEY = some_function_name_here",
		"password=os.environ['PASSWORD_FOR_TESTS']", "tokens: 12345678901234567890", "cache_key = f'{module}.{name}'", "PUBLIC KEY",
		"max_tokens=1000000000000000000000", "key=lambda item: item.value",
	} {
		if got := r.Text(s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}

// Rows contain the name of the upstream repository in one form, no matter how a task source writes
// it.
func TestRowsUseTheUpstreamName(t *testing.T) {
	for _, c := range []struct {
		task                schemas.Task
		repo, source, split string
	}{
		{schemas.Task{Repo: "swesmith/sympy__mpmath.360290c4"}, "github.com/sympy/mpmath", "swesmith/sympy__mpmath.360290c4", "train"},
		{schemas.Task{Repo: "orange3", Origin: &schemas.Origin{UpstreamRepo: "orange3"}}, "github.com/biolab/orange3", "orange3", "train"},
		{schemas.Task{Repo: "sympy/sympy"}, "github.com/sympy/sympy", "sympy/sympy", "test"},
		{schemas.Task{Repo: "github.com/a/b", RepoSource: "git@github.com:a/b.git"}, "github.com/a/b", "git@github.com:a/b.git", "train"},
		{schemas.Task{Repo: "github.com/a/b", Origin: &schemas.Origin{Split: "validation"}}, "github.com/a/b", "", "validation"},
		{schemas.Task{}, "fake/calc-1", "", "train"},
	} {
		ep := golden()
		c.task.Source, c.task.InstanceID = "fake", "calc-1"
		ep.Task = c.task
		s, err := Episode(ep, Config{})
		if err != nil {
			t.Fatal(err)
		}
		e := s.Episode
		source := ""
		if e.RepoSource != nil {
			source = *e.RepoSource
		}
		if e.Repo != c.repo || source != c.source || *e.SplitGroup != c.repo || e.Split != c.split {
			t.Errorf("%+v: repo %q, repo_source %q, split_group %q, split %q", c.task, e.Repo, source, *e.SplitGroup, e.Split)
		}
		for _, st := range s.Steps {
			if st.Repo != c.repo || st.Split != c.split {
				t.Errorf("%s: a step has repo %q, split %q", c.repo, st.Repo, st.Split)
			}
		}
	}
}

func FuzzEpisodeText(f *testing.F) {
	f.Add("plain", `{"a":1}`, []byte(patch))
	f.Add("\x1b]0;title\x07\xff\r", `[`, []byte("diff --git"))
	f.Add(planted["private_key"], `{"command":"git show abcdef1"}`, []byte("\x00"))
	f.Fuzz(func(t *testing.T, text, args string, patch []byte) {
		ep := golden()
		ep.Steps[3].Observation.Text, ep.Steps[3].Reply, ep.Patch = text, &schemas.Reply{Message: text}, patch
		ep.Steps[3].ToolCall.Arguments = json.RawMessage(args)
		s, err := Episode(ep, Config{})
		if err != nil {
			t.Fatal(err)
		}
		if strings.ContainsFunc(s.Steps[3].Message, func(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune("\n\t\r", r) }) {
			t.Fatalf("control codes are still in %q", s.Steps[3].Message)
		}
		if _, err := sinks.EncodeStaged(s); err != nil {
			t.Fatal(err)
		}
	})
}

// BenchmarkEpisode uses the episodes of "tracesmith-lab bench parquet". Each one is new, because
// the token counts of repeated texts would come from a cache.
func BenchmarkEpisode(b *testing.B) {
	size := 0
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		ep := specimen.Episode("bench", 1, i)
		for _, s := range ep.Steps {
			if s.Observation != nil {
				size += len(s.Observation.Text) + len(s.Reply.Message)
			}
		}
		b.StartTimer()
		if _, err := Episode(ep, Config{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(size)/1e6/b.Elapsed().Seconds(), "MB/s")
}
