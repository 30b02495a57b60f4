package middle_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/middle"
	"github.com/tracesmith/tracesmith/schemas"
)

// countingModel is a model server that counts each message separately, with a different rate of up to one
// token per byte in each conversation. Its answers are as long as allowed.
type countingModel struct {
	llms.Client
	seed uint64
}

func (countingModel) Model() string { return "m" }

func (m countingModel) Chat(_ context.Context, r llms.Request) (llms.Response, error) {
	rng := rand.New(rand.NewPCG(m.seed, uint64(len(r.Messages))))
	rate := 0.15 + 0.85*rand.New(rand.NewPCG(m.seed, uint64(r.SessionID[0]))).Float64()
	prompt := int64(0)
	for _, msg := range r.Messages {
		prompt += 10 + int64(rate*float64(len(msg.Content)))
	}
	return llms.Response{Reply: schemas.Reply{Message: strings.Repeat("a", rng.IntN(300)), Usage: &schemas.Usage{
		Prompt: prompt, Completion: rng.Int64N(int64(*r.Sampling.MaxTokens) + 1)}}}, nil
}

// fund is a budget that all conversations share. A reservation waits while running calls
// hold the rest of the budget, and fails if it can never fit.
type fund struct {
	mu              sync.Mutex
	settled         *sync.Cond
	limit           float64
	spent, reserved float64
}

// share is the account of one conversation.
type share struct {
	t *testing.T
	*fund
	worst float64
}

func (s *share) Begin(ctx context.Context, worst float64) (context.Context, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.spent+s.reserved+worst > s.limit {
		if s.spent+worst > s.limit {
			return nil, llms.ErrBudget
		}
		s.settled.Wait()
	}
	s.reserved, s.worst = s.reserved+worst, worst
	return ctx, nil
}

func (s *share) End(_ context.Context, p schemas.Payment) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.Spent() > s.worst {
		s.t.Errorf("a call cost $%g, but reserved $%g", p.Spent(), s.worst)
	}
	s.reserved, s.spent = s.reserved-s.worst, s.spent+p.Spent()
	s.settled.Broadcast()
	return nil
}

func (*share) Attempt() int { return 0 }
func (*share) FromCache()   {}

func (*share) Waiting(llms.Wait, error) {}

// Whatever a server counts and answers, sixteen parallel conversations never exceed
// their common limit, and no call costs more than its reservation.
func TestWorstCasesKeepTheLimit(t *testing.T) {
	for seed := range uint64(25) {
		f := &fund{limit: 0.05}
		f.settled = sync.NewCond(&f.mu)
		client, err := middle.Wrap([]middle.Endpoint{{Client: countingModel{seed: seed}}}, middle.Config{Limited: true,
			Retry: middle.RetryConfig{MaxTries: 1}, Prices: middle.Prices{{Model: "m", Input: 1, Output: 2}}})
		if err != nil {
			t.Fatal(err)
		}
		shares := make([]*share, 16)
		var wg sync.WaitGroup
		for i := range shares {
			shares[i] = &share{t: t, fund: f}
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(seed, uint64(i)))
				r := llms.Request{SessionID: fmt.Sprintf("%c", 'A'+i), Sampling: llms.Sampling{MaxTokens: new(50)},
					Messages: []llms.Message{{Role: "system", Content: strings.Repeat("s", 4000)}, {Role: "user", Content: "go"}}}
				for range 12 {
					resp, err := client.Chat(llms.WithAccount(t.Context(), shares[i]), r)
					if err != nil {
						return
					}
					if rng.IntN(8) == 0 { // a shortened history, to which no count of an earlier prompt applies
						r.Messages = append([]llms.Message{{Role: "system", Content: strings.Repeat("t", 3000)}}, r.Messages[len(r.Messages)-1])
					}
					r.Messages = append(r.Messages, llms.Message{Role: "assistant", Content: resp.Reply.Message},
						llms.Message{Role: "tool", Content: strings.Repeat("o", rng.IntN(200))})
				}
			})
		}
		wg.Wait()
		if f.spent > f.limit || f.reserved > 1e-9 || f.spent < f.limit/3 {
			t.Errorf("seed %d: spent $%g of $%g, $%g still reserved", seed, f.spent, f.limit, f.reserved)
		}
	}
}

// The reservation for a prompt that extends a counted one is that count plus the bytes of
// the new messages. For any other prompt it is all bytes.
func TestCountOfAPromptBoundsTheNextPrompt(t *testing.T) {
	s, p := &steps{usage: &schemas.Usage{Prompt: 1000, Completion: 100}}, &recordingAccount{}
	client := wrap(t, s, middle.Config{Limited: true, Prices: middle.Prices{{Model: "m", Input: 1}}})
	ctx := llms.WithAccount(t.Context(), p)
	r := llms.Request{SessionID: "one", Messages: []llms.Message{{Role: "system", Content: strings.Repeat("s", 4000)}}}
	ask := func(r llms.Request) int {
		t.Helper()
		if _, err := client.Chat(ctx, r); err != nil {
			t.Fatal(err)
		}
		return int(p.worst[len(p.worst)-1]*1e6 + 0.5)
	}
	if n := ask(r); n != 4000+2*32 {
		t.Errorf("first: %d tokens", n)
	}
	r.Messages = append(r.Messages, llms.Message{Role: "assistant", Content: "I look"}, llms.Message{Role: "tool", Content: "it is"})
	if n := ask(r); n != 1000+20+100+3*32+6+5 {
		t.Errorf("second: %d tokens", n)
	}
	other := r
	other.SessionID = "two"
	if n := ask(other); n != 4000+6+5+4*32 {
		t.Errorf("another conversation: %d tokens", n)
	}
	r.Messages[0].Content = strings.Repeat("t", 4000)
	if n := ask(r); n != 4000+6+5+4*32 {
		t.Errorf("another beginning: %d tokens", n)
	}
	r.Messages = append(r.Messages, llms.Message{Role: "user", Content: strings.Repeat("u", 20000)}) // 1000 tokens for 24,000 bytes cannot be a correct count
	ask(r)
	if n := ask(r); n < 24000 {
		t.Errorf("an impossible count was used: %d tokens", n)
	}
}
