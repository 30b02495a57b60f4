package policies

import (
	"context"
	"fmt"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/agents/goldpatch"
	"github.com/tracesmith/tracesmith/agents/prompts"
	"github.com/tracesmith/tracesmith/schemas"
)

// demonstratorVersion must go up with every change to the demonstrator's actions or
// messages, because they are training data.
const demonstratorVersion = "7"

// demonstrator shows, without a model, how to find a bug with a debugger: it
// reproduces the failure, follows the test into the code, stops at breakpoints,
// inspects values, applies the gold patch, evaluates and submits. It knows the fix
// and uses it to choose its next action. Its messages and calls, however, name only
// what earlier observations have shown. The edits are the exception: they come from
// the gold patch and are marked GoldEdit.
type demonstrator struct {
	edits  []schemas.ToolCall // the gold patch as calls
	target []goldSpot         // the lines that the gold patch touches
}

func init() {
	agents.Registry.Register(agents.Spec{
		Kind:    "demonstrator",
		Summary: "no model: a debugging session shown step by step, the fix taken from the gold patch",
		Default: func() any { return &DemonstratorConfig{} },
		New: func(_ any, deps agents.Deps) (agents.Policy, error) {
			if deps.Gold == nil || deps.Gold.GoldPatch == "" {
				return nil, fmt.Errorf("task %s has no gold patch to demonstrate; use an agent that asks a model (react)", deps.Task.InstanceID)
			}
			edits, err := goldpatch.Edits(deps.Gold.GoldPatch)
			if err != nil {
				return nil, fmt.Errorf("reading the gold patch of %s: %w", deps.Task.InstanceID, err)
			}
			spots, err := goldSpots(deps.Gold.GoldPatch)
			if err != nil {
				return nil, fmt.Errorf("reading the gold patch of %s: %w", deps.Task.InstanceID, err)
			}
			return &demonstrator{edits: edits, target: spots}, nil
		},
	})
}

// DemonstratorConfig has no settings; it declares what the policy needs.
type DemonstratorConfig struct{}

// Needs implements agents.ConfigWithNeeds.
func (*DemonstratorConfig) Needs() agents.Needs { return agents.Needs{Gold: true} }

// Info implements agents.Policy.
func (d *demonstrator) Info() schemas.AgentInfo {
	return schemas.AgentInfo{
		Name: "demonstrator", Version: demonstratorVersion + "/" + prompts.Default().Version(), Policy: "demonstrator", GoldUsed: true,
		ConfigJSON: "{}", ToolCallStyle: "native",
	}
}

// Prompts implements agents.Policy. It returns the prompts that the agent react
// sends to a model, so that a model can be trained on the transcript.
func (d *demonstrator) Prompts(t *agents.Transcript) (system, problem string, err error) {
	return prompts.Default().Opening("react", prompts.Model{}, t.Task, t.Tools)
}

// Next implements agents.Policy.
func (d *demonstrator) Next(_ context.Context, t *agents.Transcript) (schemas.Reply, error) {
	return newScript(t, d.target).next(func(s *script) error { return s.demonstrate(d.edits) })
}
