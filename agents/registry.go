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

// Registry lists the policies that exist. agents/policies fills it.
var Registry = &plugin.Registry[Policy, Deps]{What: "agent"}
