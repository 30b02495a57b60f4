package sinktest

import (
	"fmt"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// Tools is the tool set of the episodes that Episode returns.
var Tools = []schemas.ToolSchema{
	{Name: "pdb", Description: "Talk to the debugger.", Parameters: []byte(`{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}`)},
	{Name: "view", Description: "Show a file.", Parameters: []byte(`{"type":"object","properties":{"path":{"type":"string"},"line":{"type":"integer"}},"required":["path"]}`)},
	{Name: "edit", Description: "Change a file.", Parameters: []byte(`{"type":"object","properties":{"path":{"type":"string"},"text":{"type":"string"}}}`)},
	{Name: "submit", Description: "Finish.", Parameters: []byte(`{"type":"object","properties":{}}`)},
}

var start = time.Date(2026, 3, 4, 5, 6, 7, 123456000, time.UTC)

// Episode returns resolved episode n of a run with content that is difficult for readers:
// parallel calls, empty content, arguments of different shapes, Unicode, NUL, a sanitized
// surrogate, a long observation (1 MB if n%8 is 1), a null argument, a turn without a
// call, and an edit from the gold patch.
func Episode(run string, n int) sinks.Staged {
	id := fmt.Sprintf("%032x", schemas.HashBytes(fmt.Appendf(nil, "%s/%d", run, n))[:16])[:32]
	repo := fmt.Sprintf("owner/repo%d", n%5)
	e := schemas.EpisodeRow{
		EpisodeID: id, RunID: run, GroupID: "g" + id[:8], SchemaVersion: schemas.SchemaVersion,
		CreatedAt: start.Add(time.Duration(n) * time.Second), EndedAt: new(start.Add(time.Duration(n+60) * time.Second)),
		TaskSource: "builtin", InstanceID: fmt.Sprintf("inst-%d", n%7), Repo: repo, SplitGroup: &repo, Split: "train",
		LicenseSPDX: new("MIT"), Harness: "tracesmith", AgentName: "oracle", Model: "none", Policy: "oracle", GoldUsed: true,
		ToolSetSHA256: new(schemas.Hash(Tools)), ToolNames: []string{"pdb", "view", "edit", "submit"},
		Outcome: new("resolved"), Resolved: new(true), VerifyStatus: "verified_pass", VerifyMethod: new("per_test"),
		VerdictStale: new(false), ExitReason: "submitted", TerminationClass: "agent", Patch: new("--- a\n+++ b\n"),
		PatchBytes: new(int64(12)), PatchFiles: []string{"cart/stock.py"}, NSteps: 10, NTurns: 6, NFormatErrors: new(int32(0)),
		WallMS: new(int64(1234)), EditsTests: new(false), LeakGitHistory: new(false), LeakNetwork: new(false),
		ContextTrimmed: new(false), MaxRepeatRun: new(int32(1)), LoopScore: new(0.0), SatisfiedCriteria: nil,
		ContentSHA256: new(schemas.HashBytes(fmt.Appendf(nil, "content %s %d", run, n))),
	}
	return sinks.Staged{
		Episode: e, Steps: steps(e, n), Tools: Tools,
		Blobs: []sinks.Blob{{SHA256: schemas.HashBytes([]byte("log")), Bytes: 3, MediaType: "text/plain", Content: "log"}},
	}
}

func steps(e schemas.EpisodeRow, n int) []schemas.StepRow {
	lines := 1 << 12
	if n%8 == 1 {
		lines = 1 << 16
	}
	var out []schemas.StepRow
	add := func(s schemas.StepRow) *schemas.StepRow {
		s.EpisodeID, s.Split, s.Repo, s.InstanceID, s.RunID = e.EpisodeID, e.Split, e.Repo, e.InstanceID, &e.RunID
		s.StepIndex, s.Resolved, s.TS = int32(len(out)), e.Resolved, &e.CreatedAt
		out = append(out, s)
		return &out[len(out)-1]
	}
	call := func(turn, index int32, name, args, observation, message string) *schemas.StepRow {
		return add(schemas.StepRow{
			TurnIndex: &turn, CallIndex: &index, Source: "agent", Message: message, ActionKind: "seek_dynamic", Train: true,
			ToolCallID: new(fmt.Sprintf("call_%d_%d", turn, index)), ToolName: &name, ArgumentsJSON: &args, ArgumentsValid: new(true),
			Observation: &observation, ObservationSource: &name, Targets: []string{"cart/stock.py:1-20"},
		})
	}
	add(schemas.StepRow{Source: "system", Message: "You debug.", ActionKind: "none"})
	add(schemas.StepRow{Source: "user", Message: "The total is wrong: \u00a35 \u2260 5\u20ac \U0001f40d", ActionKind: "none"})
	add(schemas.StepRow{Source: "env", Message: "1 failed", ActionKind: "none"})
	call(0, 0, "view", `{"line":3,"path":"cart/stock.py"}`, strings.Repeat("x = 1  # ünïcode\n", lines), "I look at two things.").Reasoning = new("think <b>&</b>")
	call(0, 1, "pdb", `{"command":"b stock.py:7"}`, "Breakpoint 1", "")
	call(1, 0, "pdb", `{"command":"p \"a\\u0000b\"","opts":{"deep":[1,2.50,{"n":null}]}}`, "'a\x00b' \ufffd", "")
	add(schemas.StepRow{TurnIndex: new(int32(2)), Source: "agent", Message: "I see it now.", ActionKind: "think", Train: true})
	s := call(3, 0, "edit", `{"path":"cart/stock.py","text":"y"}`, "edited", "I change it.")
	s.GoldEdit, s.Train, s.MaskReason, s.TriggeredJSON = new(true), false, new("gold"), new(`[{"source":"eval","text":"1 passed"}]`)
	call(4, 0, "submit", `{}`, "", "Done.")
	add(schemas.StepRow{TurnIndex: new(int32(5)), Source: "agent", Message: "", ActionKind: "none", Train: true})
	return out
}

// Phased returns an episode with two conversations, seek and solve. The second turn of
// the first conversation was shown only the tool handover.
func Phased(run string, n int) sinks.Staged {
	handover := schemas.ToolSchema{Name: "handover", Description: "Hand over.", Parameters: []byte(`{"type":"object"}`)}
	s := Episode(run, n)
	s.Tools = []schemas.ToolSchema{Tools[1], handover, Tools[2], Tools[3]}
	s.ToolSets = [][]schemas.ToolSchema{{Tools[1], handover}, {handover}, {Tools[2], Tools[3]}}
	e := &s.Episode
	e.AgentName, e.Policy, e.Model, e.GoldUsed, e.NSteps, e.NTurns = "seeker", "model", "m", false, 8, 4
	e.ToolSetSHA256, e.ToolNames = new(schemas.Hash(s.Tools)), []string{"view", "handover", "edit", "submit"}
	base := s.Steps[0]
	s.Steps = nil
	add := func(phase, source, message string, turn int32, tool string, set int) {
		r := base
		r.StepIndex, r.Phase, r.Source, r.Message = int32(len(s.Steps)), &phase, source, message
		if tool != "" {
			r.TurnIndex, r.CallIndex, r.Train, r.ToolSetSHA256 = &turn, new(int32(0)), true, new(schemas.Hash(s.ToolSets[set]))
			r.ToolCallID, r.ToolName, r.ArgumentsJSON, r.ArgumentsValid = new(fmt.Sprintf("c%d", turn)), &tool, new(`{}`), new(true)
			r.Observation, r.TriggeredJSON = new("seen by "+phase), nil
		}
		s.Steps = append(s.Steps, r)
	}
	add("seek", "system", "You seek.", 0, "", 0)
	add("seek", "user", "The total is wrong.", 0, "", 0)
	add("seek", "agent", "I look.", 0, "view", 0)
	add("seek", "agent", "I know.", 1, "handover", 1)
	add("solve", "system", "You solve.", 0, "", 0)
	add("solve", "user", "The total is wrong. It is rounded.", 0, "", 0)
	add("solve", "agent", "I change it.", 2, "edit", 2)
	add("solve", "agent", "Done.", 3, "submit", 2)
	return s
}
