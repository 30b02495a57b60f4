package normalise

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// Columns are null if, and only if, their value is unknown.

func TestZeroIsNotNull(t *testing.T) {
	ep := golden()
	ep.Agent.Model, ep.Agent.Policy = "", "scripted"
	for i := range ep.Steps {
		if p := ep.Steps[i].Reply; p != nil {
			*p = schemas.Reply{Message: p.Message, FinishReason: "tool_calls"}
		}
	}
	s := normalised(t, ep, Config{})
	e := s.Episode
	if e.PromptTokens != nil || e.CompletionTokens != nil || e.CachedTokens != nil || e.ReasoningTokens != nil || e.MaxPromptTokens != nil || e.LLMMS != nil || e.NRetries != nil {
		t.Error("tokens, latency or retries are known although no model was asked")
	}
	if e.CostUSD == nil || *e.CostUSD != 0 || e.Model != "none" {
		t.Error("the cost without a model is not 0")
	}
	rows := s.Steps
	if rows[0].EnvMS != nil || rows[1].EnvMS == nil {
		t.Error("env_ms must be null for the system prompt and known for the reset")
	}
	if r := rows[2]; r.FinishReason != nil || r.LLMRetries != nil || *r.LLMCallCount != 0 {
		t.Errorf("finish reason and retries without a model: %v %v", r.FinishReason, r.LLMRetries)
	}
	if rows[3].ScoreAfter != nil || rows[10].ScoreAfter == nil || *e.Score != 1 {
		t.Error("the score must be null before the first evaluation and known afterwards")
	}
	ep.Steps = ep.Steps[:2]
	if e := normalised(t, ep, Config{}).Episode; e.LoopScore != nil || e.Score != nil || *e.NToolCalls != 0 {
		t.Error("loop_score or score is known although there were no calls")
	}
}

func TestVerifyWarnings(t *testing.T) {
	ep := golden()
	ep.Verdict.Warnings = []string{"the entrypoint runs main.py", "tests name ghp_" + strings.Repeat("k3Xw9", 7) + "Q"}
	got := normalised(t, ep, Config{}).Episode.VerifyWarnings
	if len(got) != 2 || got[0] != "the entrypoint runs main.py" {
		t.Fatalf("%q", got)
	}
	if strings.Contains(got[1], "k3Xw9") {
		t.Errorf("a secret in a warning: %q", got[1])
	}
}

func TestPriceTableIsKnownWithTheCost(t *testing.T) {
	ep := golden()
	cfg := Config{Prices: "prices-1"}
	if e := normalised(t, ep, cfg).Episode; e.PriceTable == nil || *e.PriceTable != "prices-1" {
		t.Errorf("%v", e.PriceTable)
	}
	ep.Steps[4].Reply.CostUSD = nil
	if e := normalised(t, ep, cfg).Episode; e.PriceTable != nil {
		t.Error("price_table is known although the cost is not")
	}
}

func TestEmptyIsNotNull(t *testing.T) {
	ep := golden()
	ep.Patch, ep.FinalSHA = nil, "base"
	ep.Steps[9].ToolCall.Arguments = json.RawMessage(`{"command":"make"}`)
	ep.Steps[9].State = &schemas.EnvState{}
	ep.Steps[2].State = &schemas.EnvState{}
	body, err := sinks.EncodeStaged(normalised(t, ep, Config{}))
	if err != nil {
		t.Fatal(err)
	}
	s, err := sinks.DecodeStaged(body)
	if err != nil {
		t.Fatal(err)
	}
	for name, list := range map[string][]string{
		"patch_files": s.Episode.PatchFiles, "test_patch_files": s.Episode.TestPatchFiles, "leak_patterns": s.Episode.LeakPatterns,
		"files_changed of view": s.Steps[2].FilesChanged,
	} {
		if list == nil || len(list) != 0 {
			t.Errorf("%s is %v, want an empty list", name, list)
		}
	}
	if s.Steps[9].FilesChanged != nil || s.Steps[4].Targets != nil {
		t.Error("files_changed or targets is known although no tool reported it")
	}
}

// The patch of a workspace that could not be read is null, not empty.
func TestLostPatchIsNotAnEmptyPatch(t *testing.T) {
	ep := golden()
	ep.Patch, ep.FinalSHA = nil, ""
	ep.Verdict = schemas.Verdict{Resolved: new(false), Status: schemas.VerifiedFail}
	e := normalised(t, ep, Config{}).Episode
	if e.Patch != nil || e.PatchSHA256 != nil || e.PatchBytes != nil || e.PatchFiles != nil || e.PatchAdded != nil || e.EditsTests != nil ||
		e.TestPatchFiles != nil || e.GoldPatchSimilarity != nil || e.GoldEditFileRecall != nil || e.VerdictStale != nil {
		t.Errorf("%+v", e)
	}
	if e.GoldFileRecall == nil {
		t.Error("gold_file_recall is null, although it does not depend on the patch")
	}
	ep.FinalSHA = "base"
	if e := normalised(t, ep, Config{}).Episode; e.Patch == nil || *e.Patch != "" || *e.PatchBytes != 0 || *e.EditsTests {
		t.Errorf("the patch of an unchanged workspace is %v, want an empty one", e.Patch)
	}
}

func TestEnvKeyIsReadable(t *testing.T) {
	ep := golden()
	ep.EnvKey = schemas.EnvKey{Driver: "bubblewrap", Python: "3.11.2", Limits: map[string]string{"pids": "rlimit"}, Unenforced: []string{"cpu"}}
	want := `{"driver":"bubblewrap","limits":{"pids":"rlimit"},"python":"3.11.2","unenforced":["cpu"]}`
	if got := *normalised(t, ep, Config{}).Episode.EnvKey; got != want {
		t.Errorf("env_key is %s", got)
	}
}

func TestReasonOfAFailedVerdict(t *testing.T) {
	ep := golden()
	ep.Verdict.Reason = "all is well"
	if e := normalised(t, ep, Config{}).Episode; e.VerifyReason != nil {
		t.Errorf("verify_reason of a pass: %s", *e.VerifyReason)
	}
	no := false
	ep.Verdict = schemas.Verdict{Resolved: &no, Status: schemas.VerifiedFail, Method: "pytest", Reason: "test_add failed: " + planted["aws_key"] + "\nand more"}
	e := normalised(t, ep, Config{}).Episode
	if e.VerifyReason == nil || *e.VerifyReason != "test_add failed: [REDACTED:aws_key:1]" {
		t.Errorf("%v", e.VerifyReason)
	}
}

func TestFinishedProgramHasNoFrame(t *testing.T) {
	ep := golden()
	ep.Steps[3].State.Frame, ep.Steps[3].State.DebuggerEvent = nil, "finished"
	ep.Steps[4].State = &schemas.EnvState{Frame: &schemas.Frame{Event: "finished"}}
	for _, r := range normalised(t, ep, Config{}).Steps[3:5] {
		if r.FrameFile != nil || r.FrameLine != nil || r.FrameFunction != nil || r.DebuggerEvent == nil || *r.DebuggerEvent != "finished" {
			t.Errorf("%v %v %v %v", r.FrameFile, r.FrameLine, r.FrameFunction, r.DebuggerEvent)
		}
	}
}

// The hash of a text in a row is the hash of the text as it is in the row, after redaction.
func TestHashesMatchTheirTexts(t *testing.T) {
	ep := golden()
	ep.Steps[0].Text = "You debug. Key " + planted["aws_key"]
	s := normalised(t, ep, Config{})
	if *s.Episode.SystemPromptSHA256 != schemas.HashBytes([]byte(s.Steps[0].Message)) {
		t.Error("system_prompt_sha256 is not the hash of the system row's message")
	}
	for i, r := range s.Steps {
		if r.Observation == nil {
			continue
		}
		if *r.ObservationSHA256 != schemas.HashBytes([]byte(*r.Observation)) || *r.ObservationBytes != int64(len(*r.Observation)) {
			t.Errorf("step %d: hash or size is not that of the observation", i)
		}
	}
}

func TestEpisodesThatKnewTheFixAreNotTrainedOn(t *testing.T) {
	masks := func(policy string) string {
		ep := golden()
		ep.Agent.Policy, ep.Agent.GoldUsed = policy, true
		ep.Steps[8].ToolCall.GoldEdit = true
		ep.Steps[9].ToolCall.Arguments = json.RawMessage(`{"command":"ls"}`)
		var out []string
		for _, r := range normalised(t, ep, Config{}).Steps[2:] {
			if r.MaskReason == nil {
				out = append(out, fmt.Sprint(r.Train))
			} else {
				out = append(out, *r.MaskReason)
			}
		}
		return strings.Join(out, " ")
	}
	if got := masks("solution"); got != strings.TrimSpace(strings.Repeat("gold ", 10)) {
		t.Errorf("solution: %s", got)
	}
	// Their steps follow from the transcript, except for the edit and what comes after it.
	for _, policy := range []string{"oracle", "demonstrator"} {
		if got := masks(policy); got != "true true true true repeat format_error gold gold gold gold" {
			t.Errorf("%s: %s", policy, got)
		}
	}
}

func TestResolvedAtStepIsTheLastExecutedEdit(t *testing.T) {
	at := func(change func(*schemas.Episode)) *int32 {
		ep := golden()
		change(ep)
		return normalised(t, ep, Config{}).Episode.ResolvedAtStep
	}
	failed := at(func(ep *schemas.Episode) {
		ep.Steps[10].ToolCall.Name = "edit"
		ep.Steps[10].Observation = &schemas.Observation{Source: "edit", IsError: true, ErrorClass: schemas.ErrUserError}
	})
	if failed == nil || *failed != 8 {
		t.Errorf("resolved_at_step is %v, want that of the edit before the failed one", failed)
	}
	shell := at(func(ep *schemas.Episode) {
		ep.Steps[9].ToolCall.Arguments = json.RawMessage(`{"command":"sed -i s/a/b/ x"}`)
	})
	if shell != nil {
		t.Errorf("resolved_at_step is %d, although a later shell command may have changed files", *shell)
	}
}

func TestCallsThatDidNotRunDoNotCount(t *testing.T) {
	for _, class := range []string{schemas.ErrUnknownTool, schemas.ErrNotExecuted, schemas.ErrBadArguments, schemas.ErrCutOff} {
		ep := golden() // step 9 would be a leak
		ep.Steps[9].Observation = &schemas.Observation{Source: "env", Text: "not run", IsError: true, ErrorClass: class}
		s := normalised(t, ep, Config{})
		if r := s.Steps[9]; r.ActionKind != "none" || r.Train || *r.Synthetic {
			t.Errorf("%s: action_kind %s, train %v", class, r.ActionKind, r.Train)
		}
		if *s.Episode.LeakGitHistory {
			t.Errorf("%s: a call that was not run counts as a leak", class)
		}
		ep = golden()
		ep.BaseSHA = "tree0"
		for i := range ep.Steps {
			if s := &ep.Steps[i]; s.ToolCall != nil && slices.Contains([]string{"pdb", "eval", "bash"}, s.ToolCall.Name) {
				s.Observation = &schemas.Observation{Source: "env", Text: "not run", IsError: true, ErrorClass: class}
			}
		}
		s = normalised(t, ep, Config{})
		if e := s.Episode; *e.UsedDebugger || *e.NPDB+*e.NTestRuns+*e.NVerify+*e.NExec != 0 {
			t.Errorf("%s: debugger %t, %d test runs, %d commands", class, *e.UsedDebugger, *e.NTestRuns, *e.NExec)
		}
		if base := s.Steps[6].WorkspaceSHA256; base == nil || *base != "git-tree:tree0" {
			t.Errorf("%s: workspace after refused calls is %v, want the base tree", class, base)
		}
	}
}

// A gold file counts as a hit if an observation or the command mentions its path, and a gold hunk if
// the observation shows its lines.
func TestShownGoldFilesCountAsHits(t *testing.T) {
	ep := golden()
	ep.Steps[9].ToolCall.Arguments = json.RawMessage(`{"command":"head -3 calc.py"}`)
	ep.Steps[9].Observation.Text = "def add(a, b):\n    return a - b\n"
	ep.Steps[10].Observation.Text = "mycalc.py and calc.pyc\n    return a - b\n"
	ep.Steps[4].Observation.Text = "calc.py:2: in add\n>   return a - b - c\nE   TypeError"
	rows := normalised(t, ep, Config{}).Steps
	if r := rows[9]; !*r.GoldHitFile || !*r.GoldHitHunk {
		t.Errorf("shell: %v %v", *r.GoldHitFile, *r.GoldHitHunk)
	}
	if r := rows[4]; !*r.GoldHitFile || *r.GoldHitHunk {
		t.Errorf("a longer line than that of the hunk: %v %v", *r.GoldHitFile, *r.GoldHitHunk)
	}
	if r := rows[10]; *r.GoldHitFile || *r.GoldHitHunk {
		t.Error("the name of another file counts as a hit")
	}
	if !slices.ContainsFunc(rows, func(r schemas.StepRow) bool { return r.GoldHitFile == nil }) || rows[11].GoldHitFile != nil {
		t.Error("gold_hit_file must be null for a step without an observation")
	}
}

func TestGoldPrecisionCountsFilesOnly(t *testing.T) {
	ep := golden()
	ep.Steps[9].ToolCall.Name, ep.Steps[9].Observation.Targets = "listdir", []string{"."}
	if diff := cmp.Diff(1.0, *normalised(t, ep, Config{}).Episode.GoldFilePrecision); diff != "" {
		t.Error(diff)
	}
}

// Rows of an episode with two phases have the phase and its model. The row of a reply has the hash
// of the tools that were shown to the model.
func TestRowsOfPhases(t *testing.T) {
	ep := golden()
	ep.Agent.Phases = []schemas.PhaseInfo{{Name: "seek", Model: "m-1"}, {Name: "solve", Model: "m-2"}}
	ep.ToolSets = [][]schemas.ToolSchema{ep.Tools[:1]}
	for i := range ep.Steps {
		ep.Steps[i].Phase = "seek"
		if i > 3 {
			ep.Steps[i].Phase = "solve"
		}
		if r := ep.Steps[i].Reply; r != nil {
			r.ToolSet = schemas.Hash(ep.ToolSets[0])
		}
	}
	s, err := Episode(ep, Config{})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range s.Steps {
		want := map[bool]string{false: "seek m-1", true: "solve m-2"}[i > 3]
		if got := *r.Phase + " " + *r.Model; got != want {
			t.Errorf("step %d: %s, want %s", i, got, want)
		}
		if shown := r.ToolSetSHA256 != nil; shown != (ep.Steps[i].Reply != nil) || shown && *r.ToolSetSHA256 != schemas.Hash(ep.ToolSets[0]) {
			t.Errorf("step %d: tool set %v", i, r.ToolSetSHA256)
		}
	}
	if s.Episode.Model != "m-1" || len(s.ToolSets) != 1 || *s.Episode.ToolSetSHA256 != schemas.Hash(ep.Tools) {
		t.Errorf("model %s, %d tool sets", s.Episode.Model, len(s.ToolSets))
	}
}

// Estimated usage covers only prompt and completion tokens. Cached and reasoning tokens are unknown.
func TestEstimatedUsageHasNoCachedTokens(t *testing.T) {
	ep := golden()
	i := slices.IndexFunc(ep.Steps, func(s schemas.Step) bool { return s.Reply != nil })
	ep.Steps[i].Reply = &schemas.Reply{Message: "m", LLMCalls: 1, Estimated: &schemas.Usage{Prompt: 5, Completion: 3}}
	r := normalised(t, ep, Config{}).Steps[i]
	if *r.PromptTokens != 5 || *r.CompletionTokens != 3 || *r.UsageSource != "estimated" || r.CachedTokens != nil || r.ReasoningTokens != nil {
		t.Errorf("%v %v from %v, cached %v, reasoning %v", *r.PromptTokens, *r.CompletionTokens, *r.UsageSource, r.CachedTokens, r.ReasoningTokens)
	}
}
