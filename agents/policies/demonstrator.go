package policies

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/agents/prompts"
	"github.com/tracesmith/tracesmith/schemas"
)

// demonstratorVersion must go up with every change to the demonstrator's actions or
// messages, because they are training data.
const demonstratorVersion = "5"

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
			edits, err := goldEdits(deps.Gold.GoldPatch)
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

// Next implements agents.Policy. It runs the script from the beginning, feeds it the
// recorded observations, and returns the first turn that has none. It therefore
// depends only on the transcript, and a resumed episode needs no other state.
func (d *demonstrator) Next(_ context.Context, t *agents.Transcript) (schemas.Reply, error) {
	var past []schemas.Step
	for _, s := range t.Steps {
		if s.ToolCall != nil {
			past = append(past, s)
		}
	}
	run := &script{demonstrator: d, evidence: newEvidence(t)}
	for reply := range run.turns() {
		if len(past) == 0 {
			return reply, nil
		}
		run.last, past = past[0], past[1:]
		run.evidence.add(run.last)
	}
	return schemas.Reply{}, errors.New("the demonstration is over, but the episode is not")
}

// script is one run of the demonstration over a transcript.
type script struct {
	*demonstrator
	evidence *evidence
	last     schemas.Step // the step that answered the latest turn
	count    int          // calls so far
	yield    func(schemas.Reply) bool
}

// errStopped unwinds the script when the consumer of its turns stops.
var errStopped = errors.New("the consumer stopped")

// turns yields the turns of the demonstration. Before it continues, the consumer must set
// s.last to the step that answers the turn.
func (s *script) turns() iter.Seq[schemas.Reply] {
	return func(yield func(schemas.Reply) bool) {
		s.yield = yield
		switch err := s.investigate(); {
		case err == nil, errors.Is(err, errStopped):
		case errors.Is(err, errNoEvidence):
			yield(schemas.Reply{Message: sayNoEvidence(), Stop: schemas.ExitNoEvidence})
		default:
			yield(schemas.Reply{Message: sayNothingFound(), Stop: schemas.ExitGaveUp})
		}
	}
}

// act makes a turn with one call. If it returns nil, s.last has the observation. It
// returns errStopped if the transcript does not have the observation.
func (s *script) act(message, tool string, args map[string]any) error {
	return s.do(message, schemas.ToolCall{Name: tool, Arguments: arguments(args)})
}

// do is act with a complete call.
func (s *script) do(message string, call schemas.ToolCall) error {
	s.count++
	call.ID = fmt.Sprintf("call_%d", s.count)
	if !s.yield(schemas.Reply{Message: message, Calls: []schemas.ToolCall{call}, FinishReason: "tool_calls"}) {
		return errStopped
	}
	return nil
}

// failed reports whether the last call failed.
func (s *script) failed() bool { return s.last.Observation == nil || s.last.Observation.IsError }
