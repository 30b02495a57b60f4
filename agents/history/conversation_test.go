package history_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/agents/history"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/tokens"
	"github.com/tracesmith/tracesmith/schemas"
)

// model is a client that counts factor times as many tokens as the tokenizer. It
// refuses prompts of more than limit tokens; 0 = no limit.
type model struct {
	llms.Client
	limit       int
	factor      float64
	hidesUsage  bool             // replies have no usage
	serverLimit int              // the context limit that a refusal reports
	asked       int              // calls of Chat, refused ones included
	prompts     [][]llms.Message // the prompts it answered
}

func (m *model) Model() string { return "m" }

func (m *model) Chat(_ context.Context, r llms.Request) (llms.Response, error) {
	m.asked++
	n := int(float64(tokens.For("m").Prompt(r)) * m.factor)
	if m.limit > 0 && n > m.limit {
		return llms.Response{}, &llms.Error{Class: llms.ClassContext, Status: 400, Message: "too long", ContextLimit: int64(m.serverLimit)}
	}
	m.prompts = append(m.prompts, r.Messages)
	i := len(m.prompts)
	reply := schemas.Reply{Message: fmt.Sprintf("turn %d", i), LLMCalls: 1, Usage: &schemas.Usage{Prompt: int64(n), Completion: 10},
		Calls: []schemas.ToolCall{{ID: fmt.Sprintf("c%d", i), Name: "view", Arguments: json.RawMessage(`{"path":"a.py"}`), Raw: "<view>a.py</view>"}}}
	if i%3 == 0 {
		reply.Calls = append(reply.Calls, schemas.ToolCall{ID: fmt.Sprintf("d%d", i), Name: "eval", Arguments: json.RawMessage(`{}`), Raw: "<view></view>"})
	}
	if m.hidesUsage {
		reply.Usage = nil
	}
	return llms.Response{Reply: reply}, nil
}

func opening() []schemas.Step {
	return []schemas.Step{
		{Turn: -1, Call: -1, Source: "system", Text: "You are a debugger."},
		{Turn: -1, Call: -1, Source: "user", Text: "Fix the bug in a.py."},
		{Turn: -1, Call: -1, Source: "env", Text: "1 failed", Observation: obs("1 failed")},
	}
}

// conversation is a conversation with a model: its steps so far, and the builder of its prompts.
type conversation struct {
	*model
	steps   []schemas.Step
	builder *history.Builder
}

func newConversation(t *testing.T, m *model, cfg history.Config, traits llms.Traits, s llms.Sampling) *conversation {
	t.Helper()
	b, err := history.New(cfg, "", llms.WithTraits(m, traits), s)
	if err != nil {
		t.Fatal(err)
	}
	return &conversation{model: m, steps: numbered(opening()), builder: b}
}

// turn asks for one reply and answers each of its calls with text.
func (conv *conversation) turn(t *testing.T, text string) (schemas.Reply, error) {
	t.Helper()
	reply, err := conv.builder.Ask(t.Context(), conv.model, conv.steps, llms.Request{})
	if err != nil {
		return reply, err
	}
	turn := len(conv.prompts) - 1
	for i := range reply.Calls {
		s := schemas.Step{Index: len(conv.steps), Turn: turn, Call: i, Source: "agent", ToolCall: &reply.Calls[i], Observation: obs(text)}
		if i == 0 {
			s.Reply = &reply
		}
		conv.steps = append(conv.steps, s)
	}
	return reply, nil
}

// turns makes n turns, with answers of about the given number of words.
func (conv *conversation) turns(t *testing.T, n, words int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	for range n {
		if _, err := conv.turn(t, strings.Repeat("value ", words/2+rng.IntN(words))); err != nil {
			t.Fatal(err)
		}
	}
}

// prefixBreaks counts the prompts that do not begin with the prompt before them.
func prefixBreaks(prompts [][]llms.Message) int {
	n := 0
	for i := 1; i < len(prompts); i++ {
		before := prompts[i-1]
		if len(prompts[i]) < len(before) || !reflect.DeepEqual(prompts[i][:len(before)], before) {
			n++
		}
	}
	return n
}

// cuts counts how often the end of the dropped steps moved.
func cuts(steps []schemas.Step) int {
	n, last := 0, -1
	for _, s := range steps {
		if s.Reply == nil || s.Reply.Context == nil {
			continue
		}
		if d := s.Reply.Context.Dropped; len(d) > 0 && d[0][1] != last {
			n, last = n+1, d[0][1]
		}
	}
	return n
}

// wellFormed checks that the prompt begins with the opening, that the answers to a
// turn's calls follow it directly and in order, that each answer belongs to a call,
// and that the last turn is newest.
func wellFormed(t *testing.T, prompt []llms.Message, newest string) {
	t.Helper()
	if prompt[0].Role != "system" || prompt[0].Content != "You are a debugger." || prompt[1].Role != "user" || !strings.HasPrefix(prompt[1].Content, "Fix the bug in a.py.\n\n1 failed") {
		t.Fatalf("the prompt does not begin with the task: %v", prompt[:2])
	}
	var open []string
	last := ""
	for i, m := range prompt[2:] {
		switch {
		case m.Role == "tool" && (len(open) == 0 || open[0] != m.ToolCallID):
			t.Fatalf("message %d answers %q, open are %v", i+2, m.ToolCallID, open)
		case m.Role == "tool":
			open = open[1:]
		case len(open) > 0 || m.Role != "assistant":
			t.Fatalf("message %d is of %s, open are %v", i+2, m.Role, open)
		default:
			last = m.Content
			for _, c := range m.ToolCalls {
				open = append(open, c.ID)
			}
		}
	}
	if len(open) > 0 || last != newest {
		t.Fatalf("open are %v, the last turn is %q, want %q", open, last, newest)
	}
}
