package policies

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/schemas"
)

func init() {
	agents.Registry.Register(agents.Spec{
		Kind:    "rewrite",
		Aliases: []string{"rewrite_agent"},
		Summary: "react without the debugger: the model does not see pdb and cannot call it",
		Default: func() any { return &ReactConfig{} },
		New: func(cfg any, deps agents.Deps) (agents.Policy, error) {
			r, err := newReact(*cfg.(*ReactConfig), deps)
			if err != nil {
				return nil, err
			}
			r.info.Name = "rewrite"
			return withoutDebugger{react: r}, nil
		},
	})
	agents.Registry.Register(agents.Spec{
		Kind:    "debug5",
		Aliases: []string{"debug_5", "debug_5_agent"},
		Summary: "react that gets the debugger after five failed edits",
		Default: func() any { return &Debug5Config{After: 5} },
		New: func(cfg any, deps agents.Deps) (agents.Policy, error) {
			return newDebug5(*cfg.(*Debug5Config), deps)
		},
	})
}

// Debug5Config holds the settings of the debug5 policy.
type Debug5Config struct {
	ReactConfig
	After int `json:"after"` // failed edits after which the agent gets the debugger
}

// pdbTool is the name of the tool that the policies in this file hide.
const pdbTool = "pdb"

// withoutDebugger is react without the debugger. If after is not 0, the agent gets the debugger when
// that many edits in a row have failed.
type withoutDebugger struct {
	*react
	after int
}

var _ agents.Phased = withoutDebugger{}

func newDebug5(cfg Debug5Config, deps agents.Deps) (agents.Policy, error) {
	switch {
	case cfg.After < 1:
		return nil, errors.New("after must be at least 1: agent react has the debugger from the start")
	case !offers(deps.Tools, pdbTool):
		return nil, fmt.Errorf("the tool %s, which this agent unlocks, is missing: add it to agent.tools, or use the agent rewrite", pdbTool)
	}
	r, err := newReact(cfg.ReactConfig, deps)
	if err != nil {
		return nil, err
	}
	cfg.Sampling = r.cfg.Sampling
	config, err := json.Marshal(cfg)
	if err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	r.info.Name, r.info.ConfigJSON = "debug5", string(config)
	return withoutDebugger{r, cfg.After}, nil
}

// Phase hides the debugger until it is unlocked. The conversation stays the same.
func (w withoutDebugger) Phase(t *agents.Transcript, offered []schemas.ToolSchema) (agents.Phase, error) {
	if w.after > 0 && debuggerUnlocked(t.Steps, w.after) {
		return agents.Phase{Tools: offered}, nil
	}
	return agents.Phase{Tools: slices.DeleteFunc(slices.Clone(offered), func(t schemas.ToolSchema) bool { return t.Name == pdbTool })}, nil
}

// debuggerUnlocked reports whether at any time n edits in a row failed. Every edit that reached the
// tool counts as failed, even if it was applied; a passing evaluation resets the count.
func debuggerUnlocked(steps []schemas.Step, n int) bool {
	failed := 0
	for _, s := range steps {
		switch {
		case s.ToolCall == nil || s.Observation == nil:
		case s.ToolCall.Name == "eval" && s.State != nil && s.State.EvalPassed != nil && *s.State.EvalPassed:
			failed = 0
		case s.ToolCall.Name == "edit" && reachedTool(s.Observation.ErrorClass):
			failed++
		}
		if failed >= n {
			return true
		}
	}
	return false
}

// reachedTool reports whether a call with this error class reached the tool.
func reachedTool(class string) bool {
	switch class {
	case schemas.ErrBadArguments, schemas.ErrCutOff, schemas.ErrUnknownTool, schemas.ErrNotExecuted, schemas.ErrSandboxDied:
		return false
	}
	return true
}

// Answer leaves all calls to the environment.
func (withoutDebugger) Answer(*agents.Transcript, schemas.ToolCall) (schemas.Observation, bool) {
	return schemas.Observation{}, false
}
