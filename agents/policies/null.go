package policies

import (
	"context"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/schemas"
)

func init() {
	agents.Registry.Register(agents.Spec{
		Kind:    "null",
		Summary: "submits at once without doing anything: resolves nothing, unless a task is broken",
		New:     func(any, agents.Deps) (agents.Policy, error) { return null{}, nil },
	})
}

type null struct{}

func (null) Info() schemas.AgentInfo {
	return schemas.AgentInfo{Name: "null", Version: "1", Policy: "null", ConfigJSON: "{}", ToolCallStyle: "native"}
}

func (null) Prompts(t *agents.Transcript) (system, problem string, err error) {
	return "", t.Task.Instructions, nil
}

func (null) Next(context.Context, *agents.Transcript) (schemas.Reply, error) {
	return schemas.Reply{Calls: []schemas.ToolCall{{Name: "submit"}}, Stop: schemas.ExitGaveUp}, nil
}
