// Package middle wraps the clients of a model with what every endpoint needs:
// one retry layer, a cost budget, the choice of the endpoint, and its rate. It imports llms and schemas.
//
// Wrap puts them in the one order that is right: each attempt of a retried call
// reserves budget of its own, finds its endpoint and waits for the rate there.
package middle

import (
	"context"
	"fmt"
	"time"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/tokens"
	"github.com/tracesmith/tracesmith/schemas"
)

// Config says how one endpoint is used. The zero value retries with the
// defaults of Retry, sets no rate and prices nothing.
type Config struct {
	Retry  RetryConfig
	Prices Prices
	Budget *Budget // shared by all clients of a run; nil: no limit
}

// Wrap returns a client of one model, on one or more endpoints, with the whole
// stack around them. It fails when a limited budget meets a model without a price.
func Wrap(endpoints []Endpoint, cfg Config) (llms.Client, error) {
	var c llms.Client = newRoute(endpoints)
	price := cfg.Prices.Find(c.Model())
	if cfg.Budget != nil && cfg.Budget.MaxCost > 0 && price == nil {
		return nil, fmt.Errorf("max cost cannot be kept for model %q, its price is unknown: add it to prices, or mark it free", c.Model())
	}
	if price != nil {
		c = &metered{Client: c, price: *price, budget: cfg.Budget}
	}
	return &retrying{Client: c, cfg: cfg.Retry.withDefaults()}, nil
}

// paced keeps calls within the rates of their endpoint.
type paced struct {
	llms.Client
	pace  *Pace
	scale tokens.Scale // how this endpoint counts prompts
}

func (p *paced) Chat(ctx context.Context, r llms.Request) (llms.Response, error) {
	counted := 0
	if p.pace.cfg.TPM > 0 {
		counted = tokens.For(p.Model()).Prompt(r)
	}
	reserved := float64(p.scale.Expect(counted) + expectedAnswer(r))
	if err := p.pace.Begin(ctx, reserved); err != nil {
		return llms.Response{}, err
	}
	resp, err := p.Client.Chat(ctx, r)
	used := reserved
	if u := resp.Reply.Usage; u != nil {
		used = float64(u.Prompt + u.Completion)
		p.scale.Report(counted, u.Prompt)
	} else if e, ok := asError(err); ok && e.Status >= 400 {
		used = 0 // refused before it was worked on
	}
	p.pace.End(reserved, used, err)
	return resp, err
}

// expectedAnswer is what an answer will probably take, in tokens: servers that
// reserve count the limit of the answer, where one is sent.
func expectedAnswer(r llms.Request) int {
	if r.Sampling.MaxTokens != nil {
		return *r.Sampling.MaxTokens
	}
	return 512
}

// metered writes the cost into replies and keeps the budget.
type metered struct {
	llms.Client
	price  Price
	budget *Budget
}

func (m *metered) Chat(ctx context.Context, r llms.Request) (llms.Response, error) {
	reserved, err := m.budget.Reserve(m.price.worstCase(r))
	if err != nil {
		return llms.Response{}, err
	}
	resp, err := m.Client.Chat(ctx, r)
	if err != nil {
		m.budget.Settle(reserved, m.costOfFailure(err, reserved))
		return resp, err
	}
	if resp.Reply.CostUSD == nil {
		resp.Reply.CostUSD = m.price.Cost(resp.Reply.Usage)
	}
	spent := reserved // the server counted nothing: assume the worst
	if resp.Reply.CostUSD != nil {
		spent = *resp.Reply.CostUSD
	}
	m.budget.Settle(reserved, spent)
	return resp, nil
}

// costOfFailure is nothing where the server refused to answer, and the whole
// reservation where it may have answered and billed.
func (m *metered) costOfFailure(err error, reserved float64) float64 {
	switch llms.ClassOf(err) {
	case llms.ClassTimeout, "":
		return reserved
	case llms.ClassServer:
		if e, ok := asError(err); ok && e.Status < 300 {
			return reserved
		}
	}
	return 0
}

// Price of one model in USD per million tokens.
type Price struct {
	Model  string   `json:"model"`
	Input  float64  `json:"input"`
	Output float64  `json:"output"`
	Cached *float64 `json:"cached"` // read from the server's cache; nil: as Input
	// CacheWrite is for tokens written to the server's cache; nil: as Input.
	CacheWrite *float64 `json:"cache_write"`
	Free       bool     `json:"free"` // local models: cost 0, not unknown
}

// Prices is a price list; models match by their exact name.
type Prices []Price

// Find returns the price of a model, nil if it is not listed.
func (p Prices) Find(model string) *Price {
	for i := range p {
		if p[i].Model == model {
			return &p[i]
		}
	}
	return nil
}

// Cost of one call in USD; nil if the server did not count tokens.
func (p Price) Cost(u *schemas.Usage) *float64 {
	cost := 0.0
	if p.Free {
		return &cost
	}
	if u == nil {
		return nil
	}
	hit := min(u.Cached, u.Prompt)
	written := min(u.CacheWrite, u.Prompt-hit)
	cost = (float64(u.Prompt-hit-written)*p.Input + float64(hit)*or(p.Cached, p.Input) +
		float64(written)*or(p.CacheWrite, p.Input) + float64(u.Completion)*p.Output) / 1e6
	return &cost
}

func or(price *float64, otherwise float64) float64 {
	if price == nil {
		return otherwise
	}
	return *price
}

// worstCase is what a call may cost: a token is never shorter than two bytes
// of prompt on average.
func (p Price) worstCase(r llms.Request) float64 {
	if p.Free {
		return 0
	}
	answer := llms.DefaultAnswer
	if r.Sampling.MaxTokens != nil {
		answer = *r.Sampling.MaxTokens
	}
	return (float64(promptBytes(r)/2)*max(p.Input, or(p.CacheWrite, p.Input)) + float64(answer)*p.Output) / 1e6
}

// RetryConfig bounds the retry layer; zero fields take the defaults.
type RetryConfig struct {
	MaxTries    uint          // calls in all; default 6
	MaxElapsed  time.Duration // from the first call; default 10 minutes
	Initial     time.Duration // first wait, doubled each time; default 1 s
	MaxInterval time.Duration // longest own wait; default 60 s
}

func (c RetryConfig) withDefaults() RetryConfig {
	if c.MaxTries == 0 {
		c.MaxTries = 6
	}
	if c.MaxElapsed == 0 {
		c.MaxElapsed = 10 * time.Minute
	}
	if c.Initial == 0 {
		c.Initial = time.Second
	}
	if c.MaxInterval == 0 {
		c.MaxInterval = time.Minute
	}
	return c
}

// promptBytes is the size of what a request shows the model.
func promptBytes(r llms.Request) int {
	size := 0
	for _, m := range r.Messages {
		size += len(m.Content) + len(m.Raw) + 16
		for _, c := range m.ToolCalls {
			size += len(c.Name) + len(c.Arguments) + len(c.Raw)
		}
	}
	for _, t := range r.Tools {
		size += len(t.Name) + len(t.Description) + len(t.Parameters)
	}
	return size
}
