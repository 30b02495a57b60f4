package middle_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/internal/mocktest"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/middle"
	"github.com/tracesmith/tracesmith/llms/mock"
	"github.com/tracesmith/tracesmith/llms/providers"
	"github.com/tracesmith/tracesmith/schemas"
)

// payer is the account of one conversation. It adds up the payments reported to it.
type payer struct {
	*share
	paid, atRisk float64
}

func (p *payer) End(ctx context.Context, paid schemas.Payment) error {
	if paid.CostUSD != nil {
		p.paid += *paid.CostUSD
	}
	p.atRisk += paid.AtRiskUSD
	return p.share.End(ctx, paid)
}

// vendor is a server with a random price list, and its client.
type vendor struct {
	server      *mocktest.Server
	client      llms.Client
	pricesKnown bool // by the client
	extra       map[string]any
}

func newRandomVendor(t *testing.T, rng *rand.Rand) vendor {
	t.Helper()
	maybe := func(least, most float64) *float64 {
		if rng.IntN(3) > 0 {
			return nil
		}
		return new(math.Round((least+rng.Float64()*(most-least))*1e4) / 1e4)
	}
	price := middle.Price{Model: "m", Input: math.Round(rng.Float64()*1e5) / 1e4, Output: math.Round(rng.Float64()*3e5) / 1e4}
	price.Cached, price.CacheWrite, price.CacheWrite1h = maybe(0, price.Input), maybe(price.Input, 2*price.Input), maybe(2*price.Input, 3*price.Input)
	serverPrice := mock.Price{Model: "m", Input: price.Input, Output: price.Output, Cached: price.Cached, CacheWrite: price.CacheWrite, CacheWrite1h: price.CacheWrite1h}
	v := vendor{pricesKnown: true}
	if rng.IntN(5) == 0 { // a discount that the configuration does not know
		price.Cached, serverPrice.Cached, v.pricesKnown = new(price.Input), new(price.Input/4), false
	}
	messages := rng.IntN(3) > 0
	v.server = mocktest.Serve(t, mock.Script{Tokenizer: "toy", Prices: []mock.Price{serverPrice}, CacheMinimum: rng.Int64N(3) * 150,
		Sessions: []mock.Session{{Rewrites: true, Repeat: true, Turns: randomTurns(rng, messages)}}})
	endpoint := providers.Endpoint{BaseURL: v.server.URL, Model: "m", Timeout: "30s"}
	var err error
	var provider llms.Client
	if messages {
		ttl := []string{"5m", "1h", "off"}[rng.IntN(3)]
		if rng.IntN(4) == 0 {
			v.extra = map[string]any{"cache_control": map[string]any{"type": "ephemeral", "ttl": "1h"}}
		}
		provider, err = providers.NewAnthropic(providers.AnthropicConfig{Endpoint: endpoint, Cache: ttl}, llms.Deps{})
	} else {
		provider, err = providers.NewOpenAI(providers.OpenAIConfig{Endpoint: endpoint, Dialect: providers.DefaultDialect()}, llms.Deps{})
	}
	if err != nil {
		t.Fatal(err)
	}
	v.client, err = middle.Wrap([]middle.Endpoint{{Client: provider}}, middle.Config{Limited: true, Prices: middle.Prices{price},
		Retry: middle.RetryConfig{MaxTries: 3, Initial: time.Millisecond, MaxInterval: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// randomTurns returns random answers with faults. Chat completions get their cache usage from
// the script; for the Messages API the mock server computes it.
func randomTurns(rng *rand.Rand, messages bool) []mock.Turn {
	var turns []mock.Turn
	for range 12 {
		turn := mocktest.Text(strings.Repeat("word ", rng.IntN(60)) + ".")
		turn.CacheLost = rng.IntN(6) == 0
		if !messages && rng.IntN(3) > 0 {
			u := mock.Usage{Prompt: 100 + rng.Int64N(400), Completion: rng.Int64N(100)}
			u.Cached = rng.Int64N(u.Prompt)
			u.CacheWrite = rng.Int64N(u.Prompt - u.Cached)
			turn.Usage = &u
		}
		if rng.IntN(3) == 0 {
			kind := []string{"rate_limit_bare", "overloaded", "cut", "reset_body", "error_in_200", "server_error"}[rng.IntN(6)]
			turn.Faults = []mock.Fault{{Kind: kind, Times: 1 + rng.IntN(2)}}
		}
		turns = append(turns, turn)
	}
	return turns
}

// For random vendors, price lists, cache lifetimes, lost caches, retries and parallel
// conversations, no limit is exceeded, no call costs more than its reservation, and the
// client's account agrees with the server's.
func TestCostMatchesTheServersBill(t *testing.T) {
	t.Parallel()
	stopped, written, forHour, lost := 0, int64(0), int64(0), 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 18))
		v := newRandomVendor(t, rng)
		f := &fund{limit: rng.Float64() * 0.4}
		f.settled = sync.NewCond(&f.mu)
		payers := make([]*payer, 1+rng.IntN(4))
		refused := make([]bool, len(payers))
		var wg sync.WaitGroup
		for i := range payers {
			payers[i] = &payer{share: &share{t: t, fund: f}}
			wg.Go(func() { refused[i] = converse(t, v, payers[i], rand.New(rand.NewPCG(seed, uint64(i)))) })
		}
		wg.Wait()
		paid, atRisk := 0.0, 0.0
		for i, p := range payers {
			paid, atRisk = paid+p.paid, atRisk+p.atRisk
			if refused[i] {
				stopped++
			}
		}
		total := v.server.Totals()
		if total.Lost.Prompt > 0 {
			lost++
		}
		written, forHour = written+total.CacheWrite, forHour+total.CacheWrite1h
		billed, lostBilled := total.Billed.USD(), total.LostBilled.USD()
		const rounding = 1e-12
		switch {
		case v.pricesKnown && math.Abs(paid-billed) > rounding:
			t.Errorf("seed %d: counted $%.12f, billed $%.12f", seed, paid, billed)
		case paid < billed-rounding:
			t.Errorf("seed %d: counted $%.12f, less than the $%.12f billed", seed, paid, billed)
		case atRisk < lostBilled-rounding:
			t.Errorf("seed %d: $%.12f at risk, but $%.12f billed for lost answers", seed, atRisk, lostBilled)
		case paid+atRisk > f.limit+rounding || billed+lostBilled > f.limit+rounding:
			t.Errorf("seed %d: counted $%.12f, billed $%.12f, limit $%.12f", seed, paid+atRisk, billed+lostBilled, f.limit)
		}
	}
	if stopped < 10 || written == 0 || forHour == 0 || lost == 0 {
		t.Errorf("the test covers too little: %d conversations stopped, %d cache tokens written, %d for an hour, %d runs with lost answers", stopped, written, forHour, lost)
	}
}

// converse holds one conversation and reports whether the budget stopped it.
func converse(t *testing.T, v vendor, p *payer, rng *rand.Rand) (refused bool) {
	r := llms.Request{SessionID: fmt.Sprint(rng.Uint64()), Sampling: llms.Sampling{MaxTokens: new(100), Extra: v.extra},
		Messages: []llms.Message{{Role: "system", Content: strings.Repeat("rule ", 200)}, {Role: "user", Content: "go"}}}
	for range 12 {
		resp, err := v.client.Chat(llms.WithAccount(t.Context(), p), r)
		if errors.Is(err, llms.ErrBudget) {
			return true
		}
		if err != nil {
			return false // no retries left
		}
		r.Messages = append(r.Messages, llms.Message{Role: "assistant", Content: resp.Reply.Message, Raw: resp.Reply.Extra},
			llms.Message{Role: "user", Content: strings.Repeat("look ", rng.IntN(150)) + "!"})
		if rng.IntN(6) == 0 { // a new, shorter history, of which the server has cached nothing
			r.Messages = append([]llms.Message{{Role: "system", Content: strings.Repeat("other ", 150)}}, r.Messages[len(r.Messages)-1])
		}
	}
	return false
}

// The reservation for a prompt, in multiples of the input price, assumes the most expensive
// use of the server's cache.
func TestCacheWritesAreReserved(t *testing.T) {
	hour := map[string]any{"cache_control": map[string]any{"type": "ephemeral", "ttl": "1h"}}
	for name, c := range map[string]struct {
		provider, cache string
		extra           map[string]any
		price           middle.Price
		want            []float64 // for two calls; the answer to the first reports a write for an hour
	}{
		"five minutes":            {"anthropic", "5m", nil, middle.Price{}, []float64{1.25, 2}},
		"an hour":                 {"anthropic", "1h", nil, middle.Price{}, []float64{2, 2}},
		"an hour by extra":        {"anthropic", "off", hour, middle.Price{}, []float64{2, 2}},
		"off":                     {"anthropic", "off", nil, middle.Price{}, []float64{1.25, 2}},
		"chat completions":        {"openai", "", nil, middle.Price{}, []float64{1.25, 1.25}},
		"gateway, an hour":        {"openai", "", hour, middle.Price{}, []float64{2, 2}},
		"configured":              {"anthropic", "5m", nil, middle.Price{CacheWrite: new(3.0)}, []float64{3, 3}},
		"configured for an hour":  {"anthropic", "1h", nil, middle.Price{CacheWrite1h: new(1.5)}, []float64{1.5, 1.5}},
		"writes without a charge": {"openai", "", nil, middle.Price{CacheWrite: new(1.0)}, []float64{1, 1}},
		"expensive reads":         {"openai", "", nil, middle.Price{Cached: new(4.0)}, []float64{4, 4}},
		"free":                    {"anthropic", "1h", nil, middle.Price{Free: true}, []float64{0, 0}},
	} {
		answer := mocktest.Text("a")
		answer.Usage = &mock.Usage{Prompt: 20, CacheWrite: 20, CacheWrite1h: 20}
		srv := mocktest.Serve(t, mock.Script{Sessions: []mock.Session{{Rewrites: true, Repeat: true, Turns: []mock.Turn{answer}}}})
		endpoint := providers.Endpoint{BaseURL: srv.URL, Model: "m", Timeout: "30s"}
		var provider llms.Client
		var err error
		if c.provider == "anthropic" {
			provider, err = providers.NewAnthropic(providers.AnthropicConfig{Endpoint: endpoint, Cache: c.cache}, llms.Deps{})
		} else {
			provider, err = providers.NewOpenAI(providers.OpenAIConfig{Endpoint: endpoint, Dialect: providers.DefaultDialect()}, llms.Deps{})
		}
		if err != nil {
			t.Fatal(err)
		}
		c.price.Model, c.price.Input = "m", 1
		client, err := middle.Wrap([]middle.Endpoint{{Client: provider}}, middle.Config{Limited: true, Prices: middle.Prices{c.price}})
		if err != nil {
			t.Fatal(err)
		}
		p := &recordingAccount{}
		r := llms.Request{Messages: []llms.Message{{Role: "user", Content: strings.Repeat("a", 936)}}, Sampling: llms.Sampling{MaxTokens: new(10), Extra: c.extra}}
		for i, want := range c.want {
			if _, err := client.Chat(llms.WithAccount(t.Context(), p), r); err != nil {
				t.Fatal(err)
			}
			if got := p.worst[i] * 1e6 / 1000; math.Abs(got-want) > 1e-9 { // 1,000 bytes, including the frame of the message
				t.Errorf("%s: call %d reserved %g times the input price, want %g", name, i, got, want)
			}
		}
	}
}
