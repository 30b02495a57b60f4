package agents

import (
	"github.com/tracesmith/tracesmith/agents/prompts"
	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// Deps holds what a policy is built from. Each episode builds its own policy.
type Deps struct {
	Task schemas.Task // as Task.Public returns it
	// Gold is nil unless the policy declares AgentInfo.GoldUsed.
	Gold   *Privileged
	Client llms.Client          // nil if no model is configured
	Models map[string]Model     // the models that Needs.Models names
	Tools  []schemas.ToolSchema // the environment's tools
	Seed   int64
	// Recording is the recording of this task from the run or dataset that Needs.Recording
	// names, or nil.
	Recording *Recording
	// Console is nil if there is no terminal.
	Console Console
	// Prompts holds the templates; nil means the embedded ones.
	Prompts *prompts.Set
}

// Recording holds the replies of an earlier episode.
type Recording struct {
	Episode  string // id
	GoldUsed bool   // its agent knew the gold patch
	Style    string // AgentInfo.ToolCallStyle of its agent
	Turns    []RecordedTurn
}

// RecordedTurn is one turn of a recording.
type RecordedTurn struct {
	Reply schemas.Reply
	Phase string   // Phase.Name during the turn
	Tools []string // names of the tools that the model saw; nil if not recorded
	// Answers holds the AnswerHash of the answer to each call, or of the one answer to a
	// reply without a call. A hash is "" if the record lacks part of the answer.
	Answers []string
}

// Templates returns Prompts, or the embedded templates if Prompts is nil.
func (d Deps) Templates() *prompts.Set {
	if d.Prompts == nil {
		return prompts.Default()
	}
	return d.Prompts
}

// Model is an additional model of a policy.
type Model struct {
	Client   llms.Client
	Sampling llms.Sampling
}

// Spec describes one kind of policy. Its config struct may implement ConfigWithNeeds.
type Spec = plugin.Spec[Policy, Deps]

// Registry lists the kinds of policies. Package agents/policies fills it.
var Registry = &plugin.Registry[Policy, Deps]{What: "agent"}

// Needs says what a policy requires and which tools it adds.
type Needs struct {
	Gold  bool // needs Deps.Gold: the policy is privileged
	Trace bool // needs Privileged.Trace
	Model bool // needs Deps.Client
	// Models names the entries of section models that Deps.Models must hold.
	Models []string
	// Tools lists tools that the policy answers itself. No toolbox contains them.
	Tools []schemas.ToolSchema
	// Console means that a person acts as the agent. Such episodes run one at a time and
	// without a time limit.
	Console bool
	// Recording is the run directory or dataset that contains Deps.Recording. Episode is a
	// prefix of the recorded episode's id.
	Recording, Episode string
}

// ConfigWithNeeds is implemented by the config structs of policies that need something.
type ConfigWithNeeds interface {
	Needs() Needs
}

// NeedsOf returns what a policy of a kind with the given settings needs. It returns an error
// if the settings are invalid.
func NeedsOf(kind string, with map[string]any) (Needs, error) {
	cfg, err := Registry.Config(kind, with)
	if err != nil {
		return Needs{}, err
	}
	if n, ok := cfg.(ConfigWithNeeds); ok {
		return n.Needs(), nil
	}
	return Needs{}, nil
}
