package middle

import (
	"encoding/json"
	"maps"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// Price of one model in USD per million tokens.
type Price struct {
	Model  string  `json:"model"`
	Input  float64 `json:"input"`
	Output float64 `json:"output"`
	// Prices of tokens read from the server's prompt cache, written to it, and written to
	// it for an hour. nil means by the provider's llms.CacheRates, or Input without them.
	Cached       *float64 `json:"cached"`
	CacheWrite   *float64 `json:"cache_write"`
	CacheWrite1h *float64 `json:"cache_write_1h"`
	Free         bool     `json:"free"` // local models: cost 0, not unknown
}

// Prices is a price list by the exact names of models.
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

// Cost returns the cost of one call in USD, nil if the server did not count tokens.
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
	hour := min(u.CacheWrite1h, written)
	cost = (float64(u.Prompt-hit-written)*p.Input + float64(hit)*or(p.Cached, p.Input) +
		float64(written-hour)*or(p.CacheWrite, p.Input) + float64(hour)*p.hour() + float64(u.Completion)*p.Output) / 1e6
	return &cost
}

// at sets the prices that are not configured by the vendor's rates.
func (p Price) at(rates llms.CacheRates) Price {
	if p.CacheWrite1h == nil { // at least the price of a shorter write
		p.CacheWrite1h = new(max(p.Input*rates.WriteHour, or(p.CacheWrite, p.Input*rates.Write)))
	}
	if p.Cached == nil {
		p.Cached = new(p.Input * rates.Read)
	}
	if p.CacheWrite == nil {
		p.CacheWrite = new(p.Input * rates.Write)
	}
	return p
}

func (p Price) hour() float64 { return or(p.CacheWrite1h, or(p.CacheWrite, p.Input)) }

func or(price *float64, otherwise float64) float64 {
	if price == nil {
		return otherwise
	}
	return *price
}

// worstCase returns the maximum cost of a call whose prompt has at most so many tokens, all
// at the highest price. hour is true if the server may keep them for an hour.
func (p Price) worstCase(prompt int64, s llms.Sampling, hour bool) float64 {
	if p.Free {
		return 0
	}
	input := max(p.Input, or(p.CacheWrite, p.Input), or(p.Cached, p.Input))
	if hour {
		input = max(input, p.hour())
	}
	return (float64(prompt)*input + float64(answerLimit(s))*p.Output) / 1e6
}

// framing is the number of tokens that a server's template adds to a message or tool.
const framing = 32

// promptBytes returns the size of a request's prompt in bytes, which is an upper bound of
// its tokens.
func promptBytes(r llms.Request) int {
	size := framing
	for _, m := range r.Messages {
		calls := 0
		for _, c := range m.ToolCalls {
			calls += framing + len(c.ID) + len(c.Name) + max(len(c.Arguments), len(c.Raw))
		}
		size += framing + len(m.ToolCallID) + max(len(m.Content)+calls, len(m.Raw))
	}
	for _, t := range r.Tools {
		size += framing + len(t.Name) + len(t.Description) + len(t.Parameters)
	}
	return size
}

// limitNames lists the servers' names for the limit of an answer.
var limitNames = []string{"max_tokens", "max_completion_tokens", "max_output_tokens"}

// answerLimit returns the maximum length of an answer in tokens.
func answerLimit(s llms.Sampling) int64 {
	limit := int64(0)
	if s.MaxTokens != nil {
		limit = int64(max(*s.MaxTokens, 0))
	}
	for _, name := range limitNames {
		limit = max(limit, wholeNumber(s.Extra[name]))
	}
	if limit == 0 {
		return llms.DefaultAnswer
	}
	return limit
}

// withLimit returns the request with a limit of its answer. It removes values that mean no
// limit, such as -1.
func withLimit(r llms.Request) llms.Request {
	s := &r.Sampling
	limit := s.MaxTokens != nil && *s.MaxTokens > 0
	s.Extra = maps.Clone(s.Extra)
	for _, name := range limitNames {
		if wholeNumber(s.Extra[name]) > 0 {
			limit = true
		} else {
			delete(s.Extra, name)
		}
	}
	if !limit {
		s.MaxTokens = new(llms.DefaultAnswer)
	}
	return r
}

func wholeNumber(v any) int64 {
	switch n := v.(type) {
	case int:
		return int64(n)
	case int64:
		return n
	case float64:
		return int64(n)
	case json.Number:
		i, _ := n.Int64() // the server refuses anything else
		return i
	}
	return 0
}
