package policies

import (
	"context"
	"fmt"
	"slices"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/agents/calltext"
	"github.com/tracesmith/tracesmith/agents/history"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

func init() {
	agents.Registry.Register(agents.Spec{
		Kind:    "simple",
		Aliases: []string{"simple_agent"},
		Summary: "a model that writes its calls as text: for models and servers without native tool calls",
		Default: func() any { return &ReactConfig{} },
		New: func(cfg any, deps agents.Deps) (agents.Policy, error) {
			return newSimple(*cfg.(*ReactConfig), deps)
		},
	})
}

// simple is react without native tool calls. The system prompt describes the tools, Next parses the
// calls from the text of a reply, and user messages hold the results. Only the first call of a
// reply is executed. Every other call and every malformed reply gets an explanation.
type simple struct{ *react }

var _ agents.Phased = simple{}

func newSimple(cfg ReactConfig, deps agents.Deps) (agents.Policy, error) {
	cfg.Sampling.ToolChoice = "" // servers reject tool_choice in a request without tools
	r, err := newReact(cfg, deps)
	if err != nil {
		return nil, err
	}
	if r.history, err = history.New(cfg.History, history.TextStyle, deps.Client, cfg.Sampling); err != nil {
		return nil, err
	}
	r.opening, r.info.Name, r.info.ToolCallStyle = "simple", "simple", "text"
	return simple{r}, nil
}

func (s simple) Next(ctx context.Context, t *agents.Transcript) (schemas.Reply, error) {
	reply, err := s.history.Ask(ctx, s.client, t.Conversation(), llms.Request{Sampling: s.cfg.Sampling, SessionID: s.session})
	if err != nil {
		return reply, err
	}
	reply.CallAsText = false // this agent expects calls as text
	_, reply.Calls = calltext.Parse(reply.Message, t.Tools, reply.Truncated)
	for i := range reply.Calls {
		if reply.Calls[i].Invalid == "" {
			reply.Calls[i].Raw = "" // the message contains it
		}
	}
	return reply, nil
}

// Phase implements agents.Phased. There is one conversation, with all tools.
func (s simple) Phase(_ *agents.Transcript, offered []schemas.ToolSchema) (agents.Phase, error) {
	return agents.Phase{Tools: offered}, nil
}

// Answer implements agents.Phased. It answers replies without a call, and calls that must not be
// executed.
func (s simple) Answer(t *agents.Transcript, call schemas.ToolCall) (schemas.Observation, bool) {
	switch {
	case call.Name == "":
		return refusal(schemas.ErrNoToolCall, "Your reply called no tool, so nothing happened. End every reply with one call in this form:\n"+
			"<function=NAME>\n<parameter=KEY>value</parameter>\n</function>\nWhen the bug is fixed, call submit."), true
	case isLaterCall(t, call):
		return refusal(schemas.ErrNotExecuted, fmt.Sprintf("Not executed: only the first call of a reply is run, and this call of %s was not the first. "+
			"Look at what the first call showed, then repeat this one if you still need it.", call.Name)), true
	case call.Truncated:
		return refusal(schemas.ErrCutOff, fmt.Sprintf("The call to %s was not run: %s.", call.Name, call.Invalid)), true
	case call.Invalid != "":
		return refusal(schemas.ErrBadArguments, fmt.Sprintf("The call to %s was not run: %s.\nA correct call looks like this:\n%s",
			call.Name, call.Invalid, calltext.Example(call.Name, t.Tools))), true
	}
	return schemas.Observation{}, false
}

// isLaterCall reports whether call is a second or later call of its reply: the
// transcript then already contains a step of that reply.
func isLaterCall(t *agents.Transcript, call schemas.ToolCall) bool {
	for _, s := range slices.Backward(t.Steps) {
		if s.Reply != nil {
			return slices.ContainsFunc(s.Reply.Calls, func(c schemas.ToolCall) bool { return c.ID == call.ID })
		}
	}
	return false
}

// refusal returns the observation for a call that is not executed.
func refusal(class, text string) schemas.Observation {
	return schemas.Observation{Source: "env", Text: text, FullBytes: int64(len(text)), IsError: true, ErrorClass: class}
}
