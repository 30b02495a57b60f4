package agents

import (
	"github.com/tracesmith/tracesmith/agents/prompts"
	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// Deps is what a policy is built from, once per episode.
type Deps struct {
	Task schemas.Task // only what is Public of it
	// Gold is non-nil only for specs whose policy declares GoldUsed.
	Gold   *Privileged
	Client llms.Client          // nil where no model is configured
	Models map[string]Model     // further ones, those that Needs.Models names
	Tools  []schemas.ToolSchema // of the environment
	Seed   int64
	// Recording is what Needs names, of the same task; nil where there is none.
	Recording *Recording
	// Console is what Needs names; nil where there is none.
	Console Console
	// Prompts are the templates; nil: the embedded ones.
	Prompts *prompts.Set
}

// Recording is what an earlier episode said, turn by turn.
type Recording struct {
	Episode  string // its id
	GoldUsed bool   // its agent knew the gold patch
	Style    string // of its calls: AgentInfo.ToolCallStyle
	Turns    []RecordedTurn
}

// RecordedTurn is one of a recording.
type RecordedTurn struct {
	Reply schemas.Reply
	Phase string   // of the conversation that it belongs to
	Tools []string // that it was shown; nil: not recorded
	// Answers to its calls, as Settled: one for each, or one for a reply without;
	// "" where the record does not say all.
	Answers []string
}

// Templates are the prompts to render.
func (d Deps) Templates() *prompts.Set {
	if d.Prompts == nil {
		return prompts.Default()
	}
	return d.Prompts
}

// Model is one that a policy asks beside its first, and how it is sampled.
type Model struct {
	Client   llms.Client
	Sampling llms.Sampling
}

// Spec describes one policy kind. Its config struct may be Needy.
type Spec = plugin.Spec[Policy, Deps]

// Registry lists the policies that exist. agents/policies fills it.
var Registry = &plugin.Registry[Policy, Deps]{What: "agent"}

// Needs says what a policy must be given, and what it brings.
type Needs struct {
	Gold  bool // Deps.Gold: the policy is privileged
	Model bool // Deps.Client
	// Models are the entries of section models that it asks beside its first model:
	// Deps.Models.
	Models []string
	// Tools are the policy's own, which it answers itself: they are part of no toolbox.
	Tools []schemas.ToolSchema
	// Console: a person acts, one episode at a time and without a clock.
	Console bool
	// Recording is the run directory or dataset that holds Deps.Recording, Episode the
	// beginning of its id.
	Recording, Episode string
}

// Needy is implemented by the config structs of policies that need something.
type Needy interface {
	Needs() Needs
}

// NeedsOf tells what policies of a kind with these settings need, before one is
// built. Wrong settings are an error.
func NeedsOf(kind string, with map[string]any) (Needs, error) {
	cfg, err := Registry.Config(kind, with)
	if err != nil {
		return Needs{}, err
	}
	if n, ok := cfg.(Needy); ok {
		return n.Needs(), nil
	}
	return Needs{}, nil
}
