package views

import (
	"encoding/json"

	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/sinks"
)

func init() {
	sinks.Views.Register(plugin.Spec[sinks.View, sinks.ViewOptions]{
		Kind: "debug-gym-json", Summary: "debug-gym's trajectory.json, one per episode, for its log viewer and replay",
		New: func(_ any, o sinks.ViewOptions) (sinks.View, error) {
			o, err := supportedOptions{mask: recordMasks}.check(o)
			return debugGymJSON{o}, err
		},
	})
}

// debugGymJSON writes EPISODE/INSTANCE/trajectory.json, the layout of debug-gym's runs.
// Step 0 is the reset, and each later step is a call with its answer. A reply without a call
// becomes debug-gym's empty_tool_response. The steps do not repeat the prompts.
// Source: base_agent.py, history_tracker.py and the log viewer of debug-gym.
type debugGymJSON struct{ opts sinks.ViewOptions }

type debugGymFile struct {
	Problem   string `json:"problem"`
	Config    any    `json:"config"`
	Tools     []tool `json:"tools"`
	UUID      string `json:"uuid"`
	Success   bool   `json:"success"`
	Log       []any  `json:"log"`
	AgentType string `json:"agent_type"`
	Logger    string `json:"logger"`
	debugGymOrigin
}

// debugGymOrigin holds keys that debug-gym does not know and ignores. An import reads them back.
type debugGymOrigin struct {
	EpisodeID  string `json:"episode_id"`
	TaskSource string `json:"task_source"`
	Repo       string `json:"repo"`
	Split      string `json:"split"`
	Policy     string `json:"policy"`
	GoldUsed   bool   `json:"gold_used"`
}

type debugGymReset struct {
	StepID    int             `json:"step_id"`
	Reasoning *string         `json:"reasoning"`
	Content   *string         `json:"content"`
	Action    *debugGymAction `json:"action"`
	Obs       string          `json:"obs"`
	Pairs     []any           `json:"prompt_response_pairs"`
	System    *message        `json:"system_message"`
	Problem   *message        `json:"problem_message"`
}

type debugGymStep struct {
	StepID    int             `json:"step_id"`
	Content   *string         `json:"content"`
	Reasoning *string         `json:"reasoning"`
	Action    *debugGymAction `json:"action"`
	Obs       string          `json:"obs"`
	Pairs     []debugGymPair  `json:"prompt_response_pairs"` // always one
}

type debugGymAction struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// debugGymPair has the keys that replay.py reads from each step. Prompt is empty, and Usage
// is 0 if the tokens were not counted.
type debugGymPair struct {
	Prompt    []any           `json:"prompt"`
	Response  *string         `json:"response,omitempty"`
	Reasoning *string         `json:"reasoning_response,omitempty"`
	Tool      *debugGymAction `json:"tool"`
	Usage     debugGymUsage   `json:"token_usage"`
}

type debugGymUsage struct {
	Prompt   int64 `json:"prompt"`
	Response int64 `json:"response"`
}

// emptyToolResponse is debug-gym's name for a reply without a call.
const emptyToolResponse = "empty_tool_response"

func (debugGymJSON) Container() string { return sinks.Dir }

func (v debugGymJSON) Render(t sinks.Trajectory) ([]sinks.Row, sinks.Notes, error) {
	e := t.Episode
	rows, notes, err := recordRows(t, v.opts, func(c *conversation, _ sinks.Notes) (sinks.Row, error) {
		out := debugGymFile{
			Problem: e.InstanceID, Config: map[string]any{}, Tools: toolsOf(t, c.turns), UUID: e.RunID,
			Success: e.Resolved != nil && *e.Resolved, AgentType: e.AgentName,
			debugGymOrigin: debugGymOrigin{e.EpisodeID, e.TaskSource, e.Repo, e.Split, e.Policy, e.GoldUsed},
		}
		if e.ConfigJSON != nil {
			out.Config = json.RawMessage(*e.ConfigJSON)
		}
		out.Log = append(out.Log, debugGymOpening(c))
		for _, x := range c.turns {
			for _, s := range debugGymTurn(x) {
				s.StepID = len(out.Log)
				out.Log = append(out.Log, s)
			}
		}
		body, err := indented(out)
		dir := safeName(e.EpisodeID)
		if c.phase != "" {
			dir += "-" + safeName(c.phase)
		}
		return sinks.Row{File: dir + "/" + safeName(e.InstanceID) + "/trajectory.json", Body: body, Texts: texts(c.allMessages(), nil)}, err
	})
	if e.Resolved == nil {
		notes["success_not_known"]++
	}
	return rows, notes, err
}

func debugGymOpening(c *conversation) debugGymReset {
	var out debugGymReset
	l := messageList{text: c.text}
	for _, before := range c.before {
		l.add(before, -1)
	}
	for _, m := range l.out {
		switch {
		case m.Role == "system" && out.System == nil:
			out.System = &m
		case m.Role == "system":
			out.System.Content += "\n\n" + m.Content
		case m.Role == "user" && out.Problem == nil:
			out.Problem, out.Obs = &m, m.Content
		}
	}
	return out
}

// debugGymTurn returns a step for each call. The first holds the text of the reply.
func debugGymTurn(x turn) []debugGymStep {
	answers := x.answersByCall()
	var out []debugGymStep
	for _, c := range x.reply.ToolCalls {
		action := &debugGymAction{c.ID, c.Function.Name, c.Function.Arguments}
		out = append(out, debugGymStep{Action: action, Obs: answers[c.ID]})
	}
	if len(out) == 0 {
		action := &debugGymAction{emptyToolResponse, emptyToolResponse, json.RawMessage(`{}`)}
		out = []debugGymStep{{Action: action, Obs: answers[""]}}
	}
	for i := range out {
		out[i].Pairs = []debugGymPair{{Prompt: []any{}, Tool: out[i].Action}}
	}
	first := &out[0]
	first.Content, first.Reasoning = nilIfEmpty(x.reply.Content), nilIfEmpty(x.reply.Reasoning)
	first.Pairs[0].Response, first.Pairs[0].Reasoning = first.Content, first.Reasoning
	if r := x.row; r.PromptTokens != nil && r.CompletionTokens != nil {
		first.Pairs[0].Usage = debugGymUsage{*r.PromptTokens, *r.CompletionTokens}
	}
	return out
}
