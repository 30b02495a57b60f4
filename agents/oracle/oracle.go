// Package oracle demonstrates debugging without a model. It has two halves: package write derives,
// from what the steps have shown, the actions that a developer could take, and writes them; package
// choose knows the fix and picks one.
package oracle

import (
	"context"
	"errors"
	"fmt"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/agents/oracle/choose"
	"github.com/tracesmith/tracesmith/agents/oracle/write"
	"github.com/tracesmith/tracesmith/agents/prompts"
	"github.com/tracesmith/tracesmith/schemas"
)

// version must go up with every change to the oracle's actions or messages, because they are training data.
const version = "2"

// Config has no settings; it declares what the policy needs.
type Config struct{}

// Needs implements agents.ConfigWithNeeds.
func (*Config) Needs() agents.Needs { return agents.Needs{Gold: true, Trace: true} }

func init() {
	agents.Registry.Register(agents.Spec{
		Kind:    "oracle",
		Summary: "no model: demonstrates how to find a bug; the fix decides between actions but is never shown",
		Default: func() any { return &Config{} },
		New: func(_ any, deps agents.Deps) (agents.Policy, error) {
			if deps.Gold == nil || deps.Gold.GoldPatch == "" {
				return nil, fmt.Errorf("task %s has no gold patch, which the oracle needs; use an agent that asks a model (react)", deps.Task.InstanceID)
			}
			if len(deps.Gold.Failing) == 0 {
				return nil, fmt.Errorf("task %s lists no failing tests (tests.fail_to_pass), but the oracle needs one", deps.Task.InstanceID)
			}
			if deps.Gold.Trace == nil {
				return nil, errors.New("the oracle works only in runs, because it traces tests")
			}
			return &oracle{gold: *deps.Gold, seed: deps.Seed}, nil
		},
	})
}

type oracle struct {
	gold    agents.Privileged
	seed    int64
	chooser *choose.Chooser
}

// Info implements agents.Policy.
func (o *oracle) Info() schemas.AgentInfo {
	return schemas.AgentInfo{
		Name: "oracle", Version: version + "/" + prompts.Default().Version(), Policy: "oracle", GoldUsed: true,
		ConfigJSON: "{}", ToolCallStyle: "native",
	}
}

// Prompts implements agents.Policy. It returns the prompts that the agent react sends to a model, so that a model
// can be trained on the transcript.
func (o *oracle) Prompts(t *agents.Transcript) (system, problem string, err error) {
	return prompts.Default().Opening("react", prompts.Model{}, t.Task, t.Tools)
}

// Next implements agents.Policy.
func (o *oracle) Next(ctx context.Context, t *agents.Transcript) (schemas.Reply, error) {
	if o.chooser == nil {
		trace, err := o.gold.Trace(ctx, o.gold.Failing[0])
		if err != nil {
			return schemas.Reply{}, fmt.Errorf("tracing %s: %w", o.gold.Failing[0], err)
		}
		if o.chooser, err = choose.New(trace, o.gold.GoldPatch); err != nil {
			return schemas.Reply{}, err
		}
	}
	notes := write.Read(t)
	notes.Seed = o.seed
	options := notes.Options()
	return options[o.chooser.Choose(notes, options)].Reply(notes.Calls), nil
}
