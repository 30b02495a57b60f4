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

// Config holds the settings under `history` of agents that ask a model.
type Config struct {
	MaxSteps  int `json:"max_steps"`  // turns that prompts keep; 0 = all
	MaxTokens int `json:"max_tokens"` // tokens of a prompt; 0 = what the model's context limit leaves
	// Part to remove from an answer that alone exceeds the limit: start, middle or end; unset
	// = middle.
	Trim string `json:"trim,omitempty"`
}

// TextStyle is the style of agents whose model writes its tool calls in the text of
// its reply. Reply.Message holds this text unchanged.
const TextStyle = "text"

// Note replaces the turns that a prompt omits. Its text is fixed, so that the
// prompt up to the first kept turn is the same after every cut. Without a note, a
// model does not know that it has already done part of the work, and starts over.
const Note = "[To save space, the first part of your work is omitted here: your calls and what they showed. All changes that you made to files are still in place.]"

// maxRefusals is how many times Ask shortens and resends a prompt that the server
// rejects as too long.
const maxRefusals = 3

// Builder builds the prompts of conversations with one model and sends them. It has
// no state between turns, so one Builder may serve several conversations at once.
type Builder struct {
	cfg          Config
	traits       llms.Traits
	style        string
	answerTokens int // tokens reserved for the answer
	counter      *tokens.Counter
}

// New returns a Builder for client. style is "" for native tool calls, or TextStyle.
// It fails if a setting is invalid or if the answer leaves no room for a prompt.
func New(cfg Config, style string, client llms.Client, s llms.Sampling) (*Builder, error) {
	if !slices.Contains([]string{"", trimStart, trimMiddle, trimEnd}, cfg.Trim) {
		return nil, fmt.Errorf("history.trim is %q: choose start, middle or end", cfg.Trim)
	}
	b := &Builder{cfg: cfg, traits: llms.TraitsOf(client), style: style, answerTokens: llms.DefaultMaxTokens}
	var err error
	if b.counter, err = tokens.Choose(b.traits.Vocabulary, client.Model()); err != nil {
		return nil, err
	}
	if limit := b.traits.ContextLimit; limit > 0 {
		b.answerTokens = min(b.answerTokens, limit/4)
	}
	if s.MaxTokens != nil {
		b.answerTokens = *s.MaxTokens
	}
	if limit := b.traits.ContextLimit; limit > 0 && b.answerTokens >= limit {
		return nil, fmt.Errorf("the model's context_limit of %d tokens leaves no room for a prompt, because max_tokens reserves %d for the answer: lower max_tokens", limit, b.answerTokens)
	}
	return b, nil
}

// Ask asks the model for the next turn of the conversation that consists of steps. r
// is the request without its messages. If the server rejects the prompt as too long,
// Ask shortens and resends it up to three times, and then returns the server's error,
// whose class is llms.ClassContext.
func (b *Builder) Ask(ctx context.Context, client llms.Client, steps []schemas.Step, r llms.Request) (schemas.Reply, error) {
	c := b.conversation(steps, r.Tools)
	op := c.nextOp()
	for refused := 0; ; refused++ {
		r.Messages = Messages(steps, op)
		resp, err := client.Chat(ctx, r)
		if err == nil {
			return withPromptFacts(resp.Reply, r.Messages, op, refused), nil
		}
		e, ok := errors.AsType[*llms.Error](err)
		if !ok || e.Class != llms.ClassContext || refused == maxRefusals {
			return resp.Reply, err
		}
		shorter, ok := c.afterRefusal(op, int(e.ContextLimit))
		if !ok {
			return resp.Reply, fmt.Errorf("the prompt cannot be shortened further: %w", err)
		}
		op = shorter
	}
}

// withPromptFacts returns reply with the facts about its prompt that an episode records. It
// counts the refused requests as calls and retries.
func withPromptFacts(reply schemas.Reply, sent []llms.Message, op schemas.ContextOp, refused int) schemas.Reply {
	reply.PromptSHA256, reply.PromptCount = llms.PromptSHA256(sent), len(sent)
	reply.LLMCalls += refused
	reply.Retries += refused
	if op.Kind() != schemas.ContextNone || op.SystemAs != "" || op.Style != "" || op.Limit != 0 {
		reply.Context = &op
	}
	return reply
}
