package imports

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/schemas"
)

type atifFile struct {
	SchemaVersion string `json:"schema_version"`
	SessionID     string `json:"session_id"`
	TrajectoryID  string `json:"trajectory_id"`
	Agent         struct {
		Name    string            `json:"name"`
		Version string            `json:"version"`
		Model   string            `json:"model_name"`
		Tools   []json.RawMessage `json:"tool_definitions"`
	} `json:"agent"`
	Steps []atifStep `json:"steps"`
	Final struct {
		Cost *float64 `json:"total_cost_usd"`
	} `json:"final_metrics"`
	Extra lenient[struct {
		Own *atifOwn `json:"tracesmith"`
	}] `json:"extra"`
}

// atifOwn is the extra data of files that tracesmith exported.
type atifOwn struct {
	RunID    string `json:"run_id"`
	Source   string `json:"task_source"`
	Instance string `json:"instance_id"`
	Repo     string `json:"repo"`
	Split    string `json:"split"`
	Commit   string `json:"base_commit"`
	License  string `json:"license_spdx"`
	Problem  string `json:"problem_statement"`
	Patch    string `json:"patch"`
	Exit     string `json:"exit_reason"`
	Resolved *bool  `json:"resolved"`
	Harness  string `json:"harness"`
	Policy   string `json:"policy"`
	Style    string `json:"tool_call_style"`
	GoldUsed bool   `json:"gold_used"`
}

type atifStep struct {
	ID        int             `json:"step_id"`
	Timestamp string          `json:"timestamp"`
	Source    string          `json:"source"`
	Message   json.RawMessage `json:"message"`
	Model     string          `json:"model_name"`
	Reasoning string          `json:"reasoning_content"`
	Calls     []struct {
		ID        string                 `json:"tool_call_id"`
		Name      string                 `json:"function_name"`
		Arguments json.RawMessage        `json:"arguments"`
		Extra     lenient[atifCallExtra] `json:"extra"`
	} `json:"tool_calls"`
	Observation *struct {
		Results []struct {
			Call    string          `json:"source_call_id"`
			Content json.RawMessage `json:"content"`
		} `json:"results"`
	} `json:"observation"`
	Metrics *struct {
		Prompt     *int64   `json:"prompt_tokens"`
		Completion *int64   `json:"completion_tokens"`
		Cached     *int64   `json:"cached_tokens"`
		Cost       *float64 `json:"cost_usd"`
	} `json:"metrics"`
	LLMCalls *int32             `json:"llm_call_count"`
	Copied   bool               `json:"is_copied_context"`
	Extra    lenient[atifExtra] `json:"extra"`
}

// The extra data of steps in files that tracesmith exported. Other files may have any data there.
type (
	atifExtra struct {
		Phase     string `json:"phase"`
		Reasoning string `json:"reasoning"`
		Source    string `json:"source"`
		Mask      string `json:"mask_reason"`
	}
	atifCallExtra struct {
		Raw        string `json:"arguments_raw"`
		IsError    bool   `json:"is_error"`
		ErrorClass string `json:"error_class"`
		GoldEdit   bool   `json:"gold_edit"`
	}
)

// parseATIF reads an ATIF trajectory of version 1.0 to 1.8 (RFC 0001 of Harbor). It marks copied
// context and calls without a model, so that no model is trained on them.
func parseATIF(name string, raw []byte) (*record, error) {
	var f atifFile
	if err := decode(raw, &f); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(f.SchemaVersion, "ATIF-v1.") {
		return nil, fmt.Errorf("schema_version is %q, not ATIF-v1.x: the file is not an ATIF trajectory", f.SchemaVersion)
	}
	r := &record{
		harness: f.Agent.Name, agent: f.Agent.Name, version: f.Agent.Version, model: f.Agent.Model, session: f.SessionID,
		instance: stem(name), tools: toolsOf(f.Agent.Tools), cost: f.Final.Cost,
	}
	if r.harness == "" {
		return nil, fmt.Errorf("agent.name is missing")
	}
	if o := f.Extra.value.Own; o != nil {
		r.instance, r.problem, r.runID, r.patch, r.harness = o.Instance, o.Problem, o.RunID, o.Patch, o.Harness
		r.claim, r.claimedBy = o.Resolved, "atif.extra.tracesmith.resolved"
		r.policy, r.goldUsed, r.style = o.Policy, o.GoldUsed, o.Style
		r.task = schemas.Task{Source: o.Source, Repo: o.Repo, BaseCommit: o.Commit, License: o.License, Origin: &schemas.Origin{Split: o.Split}}
		if _, ok := schemas.Exits[o.Exit]; ok {
			r.exit = o.Exit
		}
	}
	b := builder{talks: true, seen: map[string]bool{}}
	for i, s := range f.Steps {
		if s.ID != i+1 {
			return nil, fmt.Errorf("steps[%d].step_id is %d, want %d: steps are missing or out of order", i, s.ID, i+1)
		}
		if f.Extra.value.Own != nil {
			b.startPhase(s.Extra.value.Phase)
		}
		if err := s.addTo(&b); err != nil {
			return nil, fmt.Errorf("steps[%d].%w", i, err)
		}
		if n := s.LLMCalls; n != nil && *n == 0 && s.Source == "agent" && r.policy == "" { // in exported files of tracesmith, turns of a policy have no calls either
			for _, at := range b.open {
				b.steps[at].Synthetic = true
			}
		}
	}
	r.steps = b.steps
	return r, nil
}

func (s *atifStep) addTo(b *builder) error {
	text, err := contentText(s.Message)
	if err != nil {
		return fmt.Errorf("message: %w", err)
	}
	var at time.Time
	if s.Timestamp != "" {
		if at, err = time.Parse(time.RFC3339Nano, s.Timestamp); err != nil {
			at, err = time.Parse("2006-01-02T15:04:05", s.Timestamp) // the time zone is optional in ISO 8601
		}
		if err != nil {
			return fmt.Errorf("timestamp %q is not a valid time: write it as 2025-10-16T14:30:00Z", s.Timestamp)
		}
	}
	switch s.Source {
	case "system", "user":
		source := s.Source
		if s.Extra.value.Source == "env" {
			source = "env"
		}
		b.say(source, text, at.UTC())
	case "agent":
		b.reply(s.reply(b, text), at.UTC())
	default:
		return fmt.Errorf("source %q is not system, user or agent", s.Source)
	}
	if s.Observation == nil {
		return nil
	}
	for j, result := range s.Observation.Results {
		text, err := contentText(result.Content)
		if err != nil {
			return fmt.Errorf("observation.results[%d]: %w", j, err)
		}
		if s.Source == "agent" {
			b.answer(result.Call, text)
		} else {
			b.say("env", text, at.UTC())
		}
	}
	if s.Source == "agent" {
		s.markErrors(b)
	}
	return nil
}

func (s *atifStep) reply(b *builder, text string) schemas.Reply {
	r := schemas.Reply{Message: text, Reasoning: cmp.Or(s.Reasoning, s.Extra.value.Reasoning), Model: s.Model, Copied: s.Copied}
	if m := s.Metrics; m != nil {
		r.CostUSD = m.Cost
		if m.Prompt != nil && m.Completion != nil {
			r.Usage, r.LLMCalls = &schemas.Usage{Prompt: *m.Prompt, Completion: *m.Completion}, 1
			if m.Cached != nil {
				r.Usage.Cached = *m.Cached
			}
		}
	}
	for i, c := range s.Calls {
		tc := call(b.callID(c.ID, i), c.Name, c.Arguments)
		tc.GoldEdit = c.Extra.value.GoldEdit
		if c.Extra.value.Raw != "" {
			tc.Raw, tc.Invalid = c.Extra.value.Raw, notObject
		}
		r.Calls = append(r.Calls, tc)
	}
	return r
}

// markErrors sets the errors of a turn's observations from the extra data.
func (s *atifStep) markErrors(b *builder) {
	for i, at := range b.open {
		o := b.steps[at].Observation
		switch {
		case o == nil:
		case i < len(s.Calls):
			o.IsError, o.ErrorClass = s.Calls[i].Extra.value.IsError, s.Calls[i].Extra.value.ErrorClass
		case s.Extra.value.Mask == metrics.MaskFormat:
			o.IsError, o.ErrorClass = true, schemas.ErrNoToolCall
		}
	}
}
