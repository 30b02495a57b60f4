package imports

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/tracesmith/tracesmith/schemas"
)

type debugGymFile struct {
	Problem   string            `json:"problem"`
	Config    json.RawMessage   `json:"config"`
	Tools     []json.RawMessage `json:"tools"`
	UUID      string            `json:"uuid"`
	Success   *bool             `json:"success"`
	AgentType string            `json:"agent_type"`
	Log       []debugGymStep    `json:"log"`

	// Only files that tracesmith exported have an episode_id.
	EpisodeID  lenient[string] `json:"episode_id"`
	TaskSource lenient[string] `json:"task_source"`
	Repo       lenient[string] `json:"repo"`
	Split      lenient[string] `json:"split"`
	Policy     lenient[string] `json:"policy"`
	GoldUsed   lenient[bool]   `json:"gold_used"`
}

type debugGymStep struct {
	StepID    *int            `json:"step_id"`
	Content   *string         `json:"content"`
	Reasoning *string         `json:"reasoning"`
	Action    *debugGymAction `json:"action"`
	Obs       *string         `json:"obs"`
	System    json.RawMessage `json:"system_message"`
	Problem   json.RawMessage `json:"problem_message"`
	Pairs     []struct {
		Response  *string `json:"response"`
		Reasoning *string `json:"reasoning_response"`
		Usage     *struct {
			Prompt   *int64 `json:"prompt"`
			Response *int64 `json:"response"`
		} `json:"token_usage"`
	} `json:"prompt_response_pairs"`
}

type debugGymAction struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// parseDebugGym reads a trajectory.json as base_agent.py and history_tracker.py of debug-gym write
// it. Step 0 is the reset if it has no action. Every other step is a reply with at most one call,
// and the call's observation. The field success is only a claim: it is the result of the last eval,
// and the code may have changed since then.
func parseDebugGym(_ string, raw []byte) (*record, error) {
	var f debugGymFile
	if err := decode(raw, &f); err != nil {
		return nil, err
	}
	if f.Log == nil {
		return nil, fmt.Errorf("log is missing: the file is not a debug-gym trajectory")
	}
	r := &record{
		harness: "debug-gym", agent: f.AgentType, instance: f.Problem, runID: f.UUID, tools: toolsOf(f.Tools), config: f.Config,
		claim: f.Success, claimedBy: "debug-gym.success", style: native,
	}
	if f.EpisodeID.value != "" {
		r.task = schemas.Task{Source: f.TaskSource.value, Repo: f.Repo.value, Origin: &schemas.Origin{Split: f.Split.value}}
		r.policy, r.goldUsed = f.Policy.value, f.GoldUsed.value
	}
	var settings struct {
		Name string `json:"llm_name"`
	}
	if json.Unmarshal(f.Config, &settings) == nil {
		r.model = settings.Name
	}
	b := builder{seen: map[string]bool{}}
	for i, s := range f.Log {
		if i == 0 && s.Action == nil {
			if err := openDebugGym(&b, r, s); err != nil {
				return nil, fmt.Errorf("log[0].%w", err)
			}
			continue
		}
		b.reply(debugGymReply(&b, s), time.Time{})
		if s.Obs != nil {
			b.answer("", *s.Obs)
		}
	}
	r.steps = b.steps
	return r, nil
}

// openDebugGym opens the conversation with the prompts of step 0.
func openDebugGym(b *builder, r *record, s debugGymStep) error {
	system, err := messageText(s.System)
	if err != nil {
		return fmt.Errorf("system_message: %w", err)
	}
	if system != "" {
		b.say("system", system, time.Time{})
	}
	if r.problem, err = messageText(s.Problem); err != nil {
		return fmt.Errorf("problem_message: %w", err)
	}
	if r.problem == "" && s.Obs != nil {
		r.problem = *s.Obs
	}
	if r.problem != "" {
		b.say("user", r.problem, time.Time{})
	}
	return nil
}

// messageText returns the text of a message, which is either bare content or an object that
// holds it.
func messageText(raw json.RawMessage) (string, error) {
	var m struct {
		Content json.RawMessage `json:"content"`
	}
	if len(raw) > 0 && raw[0] == '{' && json.Unmarshal(raw, &m) == nil {
		return contentText(m.Content)
	}
	return contentText(raw)
}

// debugGymReply returns the reply of a step. debug-gym writes empty_tool_response for a reply
// without a call.
func debugGymReply(b *builder, s debugGymStep) schemas.Reply {
	var r schemas.Reply
	if len(s.Pairs) > 0 {
		p := s.Pairs[0]
		if p.Usage != nil && p.Usage.Prompt != nil && *p.Usage.Prompt > 0 && p.Usage.Response != nil {
			r.Usage = &schemas.Usage{Prompt: *p.Usage.Prompt, Completion: *p.Usage.Response}
			r.LLMCalls = 1
		}
		r.Message, r.Reasoning = schemas.Value(p.Response), schemas.Value(p.Reasoning)
	}
	if s.Content != nil {
		r.Message = *s.Content
	}
	if s.Reasoning != nil {
		r.Reasoning = *s.Reasoning
	}
	if a := s.Action; a != nil && a.Name != "" && a.Name != "empty_tool_response" {
		r.Calls = []schemas.ToolCall{call(b.callID(a.ID, 0), a.Name, a.Arguments)}
	}
	return r
}
