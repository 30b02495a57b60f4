package policies

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/agents/goldpatch"
	"github.com/tracesmith/tracesmith/schemas"
)

func init() {
	agents.Registry.Register(agents.Spec{
		Kind:    "solution",
		Aliases: []string{"solution_agent"},
		Summary: "checks a task: fails before the gold patch, passes after it, and pdb works",
		Default: func() any { return &SolutionConfig{} },
		New: func(_ any, deps agents.Deps) (agents.Policy, error) {
			return newSolution(deps)
		},
	})
}

// SolutionConfig has no settings; it declares what the policy needs.
type SolutionConfig struct{}

// Needs implements agents.ConfigWithNeeds.
func (*SolutionConfig) Needs() agents.Needs { return agents.Needs{Gold: true} }

// solution makes a fixed list of calls: the tests must fail and the debugger must stop, then it
// applies the gold patch and runs the tests again. It gives up when a check fails. The verifier
// decides whether the patch resolves the task.
type solution struct {
	plan []plannedCall
}

// plannedCall is a call and the check of its step. The check returns the problem, or "".
type plannedCall struct {
	call  schemas.ToolCall
	check func(schemas.Step) string
}

func newSolution(deps agents.Deps) (*solution, error) {
	if deps.Gold == nil || deps.Gold.GoldPatch == "" {
		return nil, fmt.Errorf("task %s has no gold patch to check", deps.Task.InstanceID)
	}
	edits, err := goldpatch.Edits(deps.Gold.GoldPatch)
	if err != nil {
		return nil, err
	}
	if !offers(deps.Tools, "edit") || !offers(deps.Tools, "submit") {
		return nil, errors.New("the gold check needs the tools edit and submit: list them in agent.tools")
	}
	s := &solution{}
	add := func(check func(schemas.Step) string, tool string, args map[string]any) {
		if !offers(deps.Tools, tool) {
			return // a tool that the agent does not have need not work
		}
		s.plan = append(s.plan, plannedCall{schemas.NewToolCall(tool, args), check})
	}
	add(mustFail, "eval", nil)
	if file, line, ok := goldpatch.Line(deps.Gold.GoldPatch); ok {
		add(nil, "pdb", map[string]any{"command": fmt.Sprintf("b %s:%d", file, line)})
		add(nil, "pdb", map[string]any{"command": "c"}) // the line may never run
	}
	add(mustAnswer, "pdb", map[string]any{"command": "restart"})
	add(mustAnswer, "pdb", map[string]any{"command": "w"})
	for _, e := range edits {
		s.plan = append(s.plan, plannedCall{e, mustApply})
	}
	add(mustPass, "eval", nil)
	add(nil, "submit", nil)
	return s, nil
}

// offers reports whether tools contains a tool. nil stands for all tools.
func offers(tools []schemas.ToolSchema, name string) bool {
	return tools == nil || slices.ContainsFunc(tools, func(t schemas.ToolSchema) bool { return t.Name == name })
}

func mustFail(s schemas.Step) string {
	if s.State != nil && s.State.EvalPassed != nil && *s.State.EvalPassed {
		return "The tests pass before the gold patch is applied."
	}
	return ""
}

func mustPass(s schemas.Step) string {
	if s.State == nil || s.State.EvalPassed == nil || !*s.State.EvalPassed {
		return "The tests do not pass with the gold patch applied."
	}
	return ""
}

func mustAnswer(s schemas.Step) string {
	if s.Observation.IsError {
		return "The debugger does not work here."
	}
	return ""
}

func mustApply(s schemas.Step) string {
	if s.Observation.IsError {
		return "The gold patch does not apply."
	}
	return ""
}

func (s *solution) Info() schemas.AgentInfo {
	return schemas.AgentInfo{Name: "solution", Version: "1", Policy: "solution", GoldUsed: true, ConfigJSON: "{}", ToolCallStyle: "native"}
}

func (s *solution) Prompts(t *agents.Transcript) (system, problem string, err error) {
	return "", t.Task.Instructions, nil
}

func (s *solution) Next(_ context.Context, t *agents.Transcript) (schemas.Reply, error) {
	n := countTurns(t)
	if n > 0 {
		last := t.Steps[len(t.Steps)-1]
		if check := s.plan[n-1].check; check != nil && last.Observation != nil {
			if problem := check(last); problem != "" {
				return schemas.Reply{Message: problem, Stop: schemas.ExitGaveUp}, nil
			}
		}
	}
	if n >= len(s.plan) {
		return schemas.Reply{}, errors.New("the episode continues after the gold check has submitted")
	}
	return schemas.Reply{Calls: []schemas.ToolCall{s.plan[n].call}}, nil
}
