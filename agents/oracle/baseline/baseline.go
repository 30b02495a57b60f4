// Package baseline is an agent that looks for the cause of a failure without a model and without
// the fix. Like the oracle, it takes the actions that package write derives from what was shown, but
// a fixed rule chooses among them. Measurements compare other agents with it.
package baseline

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/agents/prompts"
	"github.com/tracesmith/tracesmith/schemas"
)

// version must go up with every change to the baseline's actions or messages, and with that of package write.
const version = "3"

type baseline struct {
	cfg  Config
	seed int64
}

// Config configures a baseline.
type Config struct {
	// Which functions come first: those of the failing test's traceback, from the innermost frame,
	// and then those that the test calls (traceback); those whose execution correlates most with
	// failing tests, by the Ochiai coefficient (ochiai); or any functions (random).
	Order string `mapstructure:"order" json:"order"`
	Stops int    `mapstructure:"stops" json:"stops"` // number of functions to stop in
}

func init() {
	agents.Registry.Register(agents.Spec{
		Kind:    "baseline",
		Summary: "no model and no gold patch: stops in functions that a fixed rule chooses, prints values and gives up",
		Default: func() any { return &Config{Order: "traceback", Stops: 2} },
		New: func(cfg any, deps agents.Deps) (agents.Policy, error) {
			c := *cfg.(*Config)
			isBash := func(t schemas.ToolSchema) bool { return t.Name == bashTool }
			switch {
			case orders[c.Order] == nil:
				return nil, fmt.Errorf("order %q is unknown: choose traceback, ochiai or random", c.Order)
			case c.Order == "ochiai" && deps.Tools != nil && !slices.ContainsFunc(deps.Tools, isBash):
				return nil, fmt.Errorf("the tool %s, which the order ochiai needs to trace the tests, is missing: add it to agent.tools", bashTool)
			case c.Stops < 1:
				return nil, fmt.Errorf("stops must be at least 1, got %d", c.Stops)
			}
			return &baseline{cfg: c, seed: deps.Seed}, nil
		},
	})
}

// Info implements agents.Policy.
func (b *baseline) Info() schemas.AgentInfo {
	raw, _ := json.Marshal(b.cfg) // cannot fail: a string and a number
	return schemas.AgentInfo{
		Name: "baseline", Version: version + "/" + prompts.Default().Version(), Policy: "baseline",
		ConfigJSON: string(raw), ToolCallStyle: "native",
	}
}

// Prompts implements agents.Policy. It returns the prompts that the agent react sends to a model.
func (b *baseline) Prompts(t *agents.Transcript) (system, problem string, err error) {
	return prompts.Default().Opening("react", prompts.Model{}, t.Task, t.Tools)
}

// Next implements agents.Policy.
func (b *baseline) Next(_ context.Context, t *agents.Transcript) (schemas.Reply, error) {
	return newSearch(b, t).next(), nil
}
