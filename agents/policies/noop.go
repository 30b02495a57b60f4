package policies

import (
	"context"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/schemas"
)

func init() {
	agents.Registry.Register(agents.Spec{
		Kind:    "noop",
		Summary: "submits at once without doing anything: resolves nothing, unless a task is broken",
		New:     func(any, agents.Deps) (agents.Policy, error) { return noop{}, nil },
	})
}

type noop struct{}

func (noop) Info() schemas.AgentInfo {
	return schemas.AgentInfo{Name: "noop", Version: "1", Policy: "noop", ConfigJSON: "{}", ToolCallStyle: "native"}
}

func (noop) Prompts(t *agents.Transcript) (system, problem string, err error) {
	return "", t.Task.Instructions, nil
}

func (noop) Next(context.Context, *agents.Transcript) (schemas.Reply, error) {
	return schemas.Reply{Calls: []schemas.ToolCall{{Name: "submit"}}, Stop: schemas.ExitGaveUp}, nil
}
