package agents

import (
	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// Deps is what a policy is built from, once per episode.
type Deps struct {
	Task schemas.Task // GoldPatch is empty
	// Gold is non-nil only for specs whose policy declares GoldUsed.
	Gold   *Privileged
	Client llms.Client // nil where no model is configured
	Seed   int64
}

// Spec describes one policy kind. Its config struct says what the policy needs,
// see Needs.
type Spec = plugin.Spec[Policy, Deps]

// Registry lists the policies that exist. agents/policies fills it.
var Registry = &plugin.Registry[Policy, Deps]{What: "agent"}

// Needs says what a policy must be given. A policy's config struct declares it
// with a method Needs() Needs; without one it needs nothing.
type Needs struct {
	Gold  bool // Deps.Gold: the policy is privileged
	Model bool // Deps.Client
}

// NeedsOf tells what policies of a kind with these settings need, before one is
// built. Wrong settings are an error.
func NeedsOf(kind string, with map[string]any) (Needs, error) {
	cfg, err := Registry.Config(kind, with)
	if err != nil {
		return Needs{}, err
	}
	if n, ok := cfg.(interface{ Needs() Needs }); ok {
		return n.Needs(), nil
	}
	return Needs{}, nil
}
