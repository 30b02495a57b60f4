// Package middle wraps the clients of a model in layers: a cache, retries, the choice of
// the endpoint, its rate limits, the record of calls, and payment.
//
// Wrap fixes the order of the layers: each retry chooses its endpoint anew, waits for the
// rate limit there, and reserves its worst-case cost just before the call.
package middle

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/tokens"
)

// Config configures the layers. The zero value retries with the defaults of RetryConfig and
// knows no prices.
type Config struct {
	Retry  RetryConfig
	Prices Prices
	// Limited is true if accounts have a limit. The model then needs a price, and each
	// request is sent with a limit on the length of its answer.
	Limited bool
	// Cache is the directory of cached replies; "" means no cache. Warn is called with a
	// message for each problem of the cache; it must not be nil if Cache is set.
	Cache string
	Warn  func(string)
}

// Wrap returns a client of one model on one or more endpoints. It fails if Limited is set
// and the model has no price.
func Wrap(endpoints []Endpoint, cfg Config) (llms.Client, error) {
	model := endpoints[0].Model()
	price := cfg.Prices.Find(model)
	if cfg.Limited && price == nil {
		return nil, fmt.Errorf("max cost cannot be kept for model %q, its price is unknown: add it to prices, or mark it free", model)
	}
	paying := slices.Clone(endpoints)
	for i := range paying {
		paying[i].Counter = cmp.Or(paying[i].Counter, tokens.For(model))
		paying[i].Client = tapedClient{&payingClient{Client: paying[i].Client, price: price, limited: cfg.Limited, counter: paying[i].Counter}}
	}
	var c llms.Client = &retryClient{Client: newRoute(paying), cfg: cfg.Retry.withDefaults()}
	if cfg.Cache != "" {
		c = &cacheClient{Client: c, dir: cfg.Cache, note: cfg.Warn, running: map[string]chan struct{}{}}
	}
	return c, nil
}

// pacedClient keeps calls within the rate limits of their endpoint. Like servers that
// reserve tokens, it reserves the longest possible answer before a call, and returns the
// unused tokens after it.
type pacedClient struct {
	llms.Client
	pace    *Pace
	counter *tokens.Counter
	scale   tokens.Scale // ratio of this endpoint's token counts to the counter's
}

func (p *pacedClient) Chat(ctx context.Context, r llms.Request) (resp llms.Response, err error) {
	prompt := 0
	if p.pace.cfg.TPM > 0 {
		prompt = p.counter.Prompt(r)
	}
	reserved := float64(p.scale.Expect(prompt) + int(answerLimit(r.Sampling)))
	llms.AccountOf(ctx).Waiting(llms.WaitRate, nil)
	if err := p.pace.Begin(ctx, reserved); err != nil {
		return llms.Response{}, err
	}
	used := reserved
	defer func() { p.pace.End(reserved, used, err) }()
	resp, err = p.Client.Chat(ctx, r)
	if u := resp.Reply.Usage; u != nil {
		used = float64(u.Prompt + u.Completion)
		p.scale.Report(prompt, u.Prompt)
	} else if _, ok := asError(err); ok {
		used = atRisk(err, reserved)
	} else if resp.Request == nil {
		used = 0 // the call was not made
	}
	return resp, err
}

// RetryConfig limits the retry layer. A field that is zero has its default.
type RetryConfig struct {
	MaxTries    uint          // total number of calls; default 6
	MaxElapsed  time.Duration // from the first call; default 10 minutes
	Initial     time.Duration // first wait, doubled each time; default 1 s
	MaxInterval time.Duration // longest wait, unless the server asks for a longer one; default 60 s
}

func (c RetryConfig) withDefaults() RetryConfig {
	c.MaxTries = cmp.Or(c.MaxTries, 6)
	c.MaxElapsed = cmp.Or(c.MaxElapsed, 10*time.Minute)
	c.Initial = cmp.Or(c.Initial, time.Second)
	c.MaxInterval = cmp.Or(c.MaxInterval, time.Minute)
	return c
}
