package history

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/tokens"
	"github.com/tracesmith/tracesmith/schemas"
)

// Config is block history of the agents that ask a model.
type Config struct {
	MaxSteps  int `json:"max_steps"`  // turns that prompts keep; 0 = all
	MaxTokens int `json:"max_tokens"` // tokens of a prompt; 0 = what the model's context limit leaves
	// What is left out of an answer that does not fit by itself: start, middle or end; unset =
	// middle.
	Trim string `json:"trim,omitempty"`
}

// TextStyle is for agents whose model writes its calls into the text of its
// reply, which Reply.Message holds as it was written.
const TextStyle = "text"

// Note stands where turns were left out. A fixed text keeps the prefix before the
// kept turns the same at every later cut; without any, a model that finds itself
// in the middle of work it cannot see starts again.
const Note = "[The first part of your work is left out here to save space: the calls, and what they showed. Whatever it changed in the files is still there.]"

// refusals is how often a prompt that its server finds too long is cut and sent
// again.
const refusals = 3

// Builder makes the prompts of one conversation and asks its model. It keeps
// nothing between turns; one may serve several conversations at once.
type Builder struct {
	cfg    Config
	traits llms.Traits
	style  string
	answer int // tokens to leave for the answer
	count  *tokens.Counter
}

// New is a Builder for a client. style is "" for native calls, or TextStyle.
func New(cfg Config, style string, client llms.Client, s llms.Sampling) (*Builder, error) {
	if !slices.Contains([]string{"", trimStart, trimMiddle, trimEnd}, cfg.Trim) {
		return nil, fmt.Errorf("history.trim is %q: choose start, middle or end", cfg.Trim)
	}
	b := &Builder{cfg: cfg, traits: llms.TraitsOf(client), style: style, answer: llms.DefaultAnswer}
	var err error
	if b.count, err = tokens.Choose(b.traits.Vocabulary, client.Model()); err != nil {
		return nil, err
	}
	if limit := b.traits.ContextLimit; limit > 0 {
		b.answer = min(b.answer, limit/4)
	}
	if s.MaxTokens != nil {
		b.answer = *s.MaxTokens
	}
	if limit := b.traits.ContextLimit; limit > 0 && b.answer >= limit {
		return nil, fmt.Errorf("the model's context_limit of %d tokens leaves nothing for a prompt beside an answer of max_tokens %d", limit, b.answer)
	}
	return b, nil
}

// Ask asks for the next turn of a conversation. r holds all but the messages. A
// prompt that the server finds too long is cut further, three times; the error
// of class context is what remains.
func (b *Builder) Ask(ctx context.Context, client llms.Client, steps []schemas.Step, r llms.Request) (schemas.Reply, error) {
	c := b.conversation(steps, r.Tools)
	op := c.next()
	for refused := 0; ; refused++ {
		r.Messages = Messages(steps, op)
		resp, err := client.Chat(ctx, r)
		if err == nil {
			return recorded(resp.Reply, r.Messages, op, refused), nil
		}
		e, ok := errors.AsType[*llms.Error](err)
		if !ok || e.Class != llms.ClassContext || refused == refusals {
			return resp.Reply, err
		}
		shorter, ok := c.shorter(op, int(e.ContextLimit))
		if !ok {
			return resp.Reply, fmt.Errorf("nothing more can be left out of the prompt: %w", err)
		}
		op = shorter
	}
}

// recorded is a reply with the prompt that it answers.
func recorded(reply schemas.Reply, sent []llms.Message, op schemas.ContextOp, refused int) schemas.Reply {
	reply.PromptSHA256, reply.PromptCount = llms.PromptSHA256(sent), len(sent)
	reply.LLMCalls += refused
	reply.Retries += refused
	if op.Kind() != schemas.ContextNone || op.SystemAs != "" || op.Style != "" || op.Limit != 0 {
		reply.Context = &op
	}
	return reply
}
