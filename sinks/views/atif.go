package views

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

func init() {
	sinks.Views.Register(plugin.Spec[sinks.View, sinks.ViewOptions]{
		Kind: "atif", Summary: "Agent Trajectory Interchange Format, one JSON file per episode",
		Default: func() any { return &atifConfig{Version: "1.7"} },
		New: func(cfg any, o sinks.ViewOptions) (sinks.View, error) {
			o, err := supportedOptions{mask: recordMasks}.check(o)
			if err != nil {
				return nil, err
			}
			version := cfg.(*atifConfig).Version
			if version != "1.7" && version != "1.8" {
				return nil, fmt.Errorf("version %q: choose 1.7 or 1.8", version)
			}
			return atif{o, "ATIF-v" + version}, nil
		},
	})
}

type atifConfig struct {
	Version string `json:"version"` // version of the format: 1.7 or 1.8
}

// atif writes a step for each message and each turn of an episode. Data for which the format
// does not have a field goes to extra. Source: Harbor's RFC 0001.
type atif struct {
	opts    sinks.ViewOptions
	version string
}

type atifTrajectory struct {
	SchemaVersion string         `json:"schema_version"`
	SessionID     string         `json:"session_id,omitempty"`
	TrajectoryID  string         `json:"trajectory_id"`
	Agent         atifAgent      `json:"agent"`
	Steps         []atifStep     `json:"steps"`
	Final         *atifFinal     `json:"final_metrics,omitempty"`
	Extra         map[string]any `json:"extra,omitempty"`
}

type atifAgent struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Model   string `json:"model_name,omitempty"`
	Tools   []tool `json:"tool_definitions,omitempty"`
}

type atifFinal struct {
	Prompt     *int64   `json:"total_prompt_tokens,omitempty"`
	Completion *int64   `json:"total_completion_tokens,omitempty"`
	Cached     *int64   `json:"total_cached_tokens,omitempty"`
	Cost       *float64 `json:"total_cost_usd,omitempty"`
	Steps      int      `json:"total_steps"`
}

type atifStep struct {
	ID          int              `json:"step_id"`
	Timestamp   string           `json:"timestamp,omitempty"`
	Source      string           `json:"source"`
	Message     string           `json:"message"`
	Model       string           `json:"model_name,omitempty"`
	Reasoning   string           `json:"reasoning_content,omitempty"`
	Calls       []atifCall       `json:"tool_calls,omitempty"`
	Observation *atifObservation `json:"observation,omitempty"`
	Metrics     *atifMetrics     `json:"metrics,omitempty"`
	LLMCalls    *int32           `json:"llm_call_count,omitempty"`
	Copied      *bool            `json:"is_copied_context,omitempty"`
	Extra       map[string]any   `json:"extra,omitempty"`
}

type atifCall struct {
	ID        string          `json:"tool_call_id"`
	Name      string          `json:"function_name"`
	Arguments json.RawMessage `json:"arguments"`
	Extra     map[string]any  `json:"extra,omitempty"`
}

type atifObservation struct {
	Results []atifResult `json:"results"`
}

type atifResult struct {
	Call    string `json:"source_call_id,omitempty"`
	Content string `json:"content"`
}

type atifMetrics struct {
	Prompt     *int64   `json:"prompt_tokens,omitempty"`
	Completion *int64   `json:"completion_tokens,omitempty"`
	Cached     *int64   `json:"cached_tokens,omitempty"`
	Cost       *float64 `json:"cost_usd,omitempty"`
}

func (atif) Container() string { return sinks.Dir }

func (v atif) Render(t sinks.Trajectory) ([]sinks.Row, sinks.Notes, error) {
	notes := sinks.Notes{}
	conversations, err := recordConversations(t, v.opts, notes)
	if err != nil || len(conversations) == 0 {
		return nil, notes, err
	}
	e := t.Episode
	out := atifTrajectory{
		SchemaVersion: v.version, SessionID: schemas.Value(e.SessionID), TrajectoryID: e.EpisodeID,
		Agent: atifAgent{Name: e.AgentName, Version: "unknown", Model: e.Model},
		Final: &atifFinal{Prompt: e.PromptTokens, Completion: e.CompletionTokens, Cached: e.CachedTokens, Cost: e.CostUSD},
		Extra: map[string]any{"tracesmith": outcomeOf(t, v.opts)},
	}
	if version := schemas.Value(e.AgentVersion); version != "" {
		out.Agent.Version = version
	}
	for _, x := range t.Tools {
		out.Agent.Tools = append(out.Agent.Tools, tool{"function", x})
	}
	var allTexts []string
	for _, c := range conversations {
		for _, l := range c.before {
			out.Steps = append(out.Steps, atifOpening(t, c, l))
		}
		for _, turn := range c.turns {
			out.Steps = append(out.Steps, atifTurn(t, c, turn))
		}
		allTexts = append(allTexts, texts(c.allMessages(), nil)...)
	}
	for i := range out.Steps {
		out.Steps[i].ID = i + 1
	}
	out.Final.Steps = len(out.Steps)
	body, err := indented(out)
	return []sinks.Row{{File: fileOf(t, ".json"), Body: body, Texts: allTexts}}, notes, err
}

func atifOpening(t sinks.Trajectory, c *conversation, l stepMessage) atifStep {
	s := atifStep{Source: l.Role, Message: l.Content, Extra: withoutEmpty(map[string]any{"phase": c.phase})}
	if row := stepAt(t, l.step); row != nil {
		s.Timestamp = timestamp(row.TS)
		if row.Source == "env" {
			s.Source, s.Extra["source"] = "system", "env"
		}
	}
	return s
}

func atifTurn(t sinks.Trajectory, c *conversation, x turn) atifStep {
	r := x.row
	s := atifStep{
		Timestamp: timestamp(r.TS), Source: "agent", Message: x.reply.Content, Model: schemas.Value(r.Model), Reasoning: x.reply.Reasoning,
		LLMCalls: r.LLMCallCount, Copied: r.IsCopiedContext,
		Extra: withoutEmpty(map[string]any{"phase": c.phase, "train": r.Train, "mask_reason": r.MaskReason}),
	}
	if r.PromptTokens != nil || r.CompletionTokens != nil || r.CostUSD != nil {
		s.Metrics = &atifMetrics{r.PromptTokens, r.CompletionTokens, r.CachedTokens, r.CostUSD}
	}
	if n := r.LLMCallCount; n != nil && *n == 0 { // no model was called, so the format allows neither reasoning nor metrics
		switch {
		case t.Episode.Policy == "model": // the reply came from a cache
			s.LLMCalls = nil
		default:
			if s.Reasoning != "" {
				s.Extra["reasoning"] = s.Reasoning
			}
			s.Reasoning, s.Metrics, s.Model = "", nil, ""
		}
	}
	if r.ContextOpJSON != nil && schemas.Value(r.ContextOp) != schemas.ContextNone {
		s.Extra["context_management"] = map[string]any{
			"type": "pruning", "boundary": "replace", "operation": json.RawMessage(*r.ContextOpJSON),
		}
	}
	for _, row := range x.rows {
		if row.ToolName == nil {
			continue
		}
		extra := map[string]any{"action_kind": row.ActionKind, "is_error": row.IsError, "error_class": row.ErrorClass, "gold_edit": row.GoldEdit}
		if row.ArgumentsValid != nil && !*row.ArgumentsValid { // the format requires an object, which the model did not send
			extra["arguments_raw"] = row.ArgumentsRaw
		}
		s.Calls = append(s.Calls, atifCall{*row.ToolCallID, *row.ToolName, json.RawMessage(row.WrittenArguments()), withoutEmpty(extra)})
	}
	for _, a := range x.answers {
		if s.Observation == nil {
			s.Observation = &atifObservation{}
		}
		s.Observation.Results = append(s.Observation.Results, atifResult{a.ToolCallID, a.Content})
	}
	return s
}

// outcomeOf returns the origin and the outcome of an episode, for the free-form field of a
// format that does not have fields for them.
func outcomeOf(t sinks.Trajectory, o sinks.ViewOptions) map[string]any {
	e := t.Episode
	out := withoutEmpty(map[string]any{
		"schema_version": e.SchemaVersion, "episode_id": e.EpisodeID, "run_id": e.RunID, "group_id": e.GroupID, "attempt": e.Attempt,
		"task_source": e.TaskSource, "instance_id": e.InstanceID, "repo": e.Repo, "split": e.Split, "base_commit": e.BaseCommit,
		"license_spdx": e.LicenseSPDX, "problem_statement": e.ProblemStatement, "harness": e.Harness, "policy": e.Policy, "tool_call_style": e.ToolCallStyle,
		"gold_used": e.GoldUsed, "outcome": e.Outcome, "resolved": e.Resolved, "verify_status": e.VerifyStatus,
		"verify_method": e.VerifyMethod, "exit_reason": e.ExitReason, "termination_class": e.TerminationClass, "patch": e.Patch,
	})
	if usedGold(t) && !o.AllowGold {
		delete(out, "patch")
	}
	return out
}

func stepAt(t sinks.Trajectory, step int) *schemas.StepRow {
	for i := range t.Steps {
		if int(t.Steps[i].StepIndex) == step {
			return &t.Steps[i]
		}
	}
	return nil
}

// indented returns v as indented JSON, in the order of its fields.
func indented(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encoding a trajectory: %w", err)
	}
	return out.Bytes(), nil
}
