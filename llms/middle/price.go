package middle

import (
	"cmp"
	"encoding/json"
	"maps"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// Price is the price of one model in USD per million tokens.
type Price struct {
	Model  string  `json:"model"`
	Input  float64 `json:"input"`
	Output float64 `json:"output"`
	// Prices of tokens that the server reads from its prompt cache, writes to it, and writes
	// to it for an hour. If nil, they follow from Input and the provider's llms.CacheRates;
	// without those rates they equal Input.
	Cached       *float64 `json:"cached"`
	CacheWrite   *float64 `json:"cache_write"`
	CacheWrite1h *float64 `json:"cache_write_1h"`
	Free         bool     `json:"free"` // the cost is 0, not unknown, as with local models
}

// Prices is a list of the prices of models, which are matched by their exact names.
type Prices []Price

// Find returns the price of a model, or nil if it is not listed.
func (p Prices) Find(model string) *Price {
	for i := range p {
		if p[i].Model == model {
			return &p[i]
		}
	}
	return nil
}

// Cost returns the cost of one call in USD, or nil if u is nil, which means that the server
// did not report its usage. The cost of a free model is always 0.
func (p Price) Cost(u *schemas.Usage) *float64 {
	cost := 0.0
	if p.Free {
		return &cost
	}
	if u == nil {
		return nil
	}
	cached := min(u.Cached, u.Prompt)
	written := min(u.CacheWrite, u.Prompt-cached)
	writtenForHour := min(u.CacheWrite1h, written)
	cost = (float64(u.Prompt-cached-written)*p.Input + float64(cached)*valueOr(p.Cached, p.Input) +
		float64(written-writtenForHour)*valueOr(p.CacheWrite, p.Input) + float64(writtenForHour)*p.hourWritePrice() + float64(u.Completion)*p.Output) / 1e6
	return &cost
}

// withRates derives the prices that are not configured from the vendor's rates.
func (p Price) withRates(rates llms.CacheRates) Price {
	if p.CacheWrite1h == nil { // at least the price of a write for a shorter time
		p.CacheWrite1h = new(max(p.Input*rates.WriteHour, valueOr(p.CacheWrite, p.Input*rates.Write)))
	}
	p.Cached = cmp.Or(p.Cached, new(p.Input*rates.Read))
	p.CacheWrite = cmp.Or(p.CacheWrite, new(p.Input*rates.Write))
	return p
}

// hourWritePrice returns the price of tokens that are written to the cache for an hour.
func (p Price) hourWritePrice() float64 {
	return valueOr(p.CacheWrite1h, valueOr(p.CacheWrite, p.Input))
}

func valueOr(price *float64, otherwise float64) float64 {
	if price == nil {
		return otherwise
	}
	return *price
}

// worstCase returns the maximum cost of a call whose prompt has at most the given number of
// tokens, assuming the highest input price for all of them. hour is true if the server may
// store them for an hour.
func (p Price) worstCase(prompt int64, s llms.Sampling, hour bool) float64 {
	if p.Free {
		return 0
	}
	input := max(p.Input, valueOr(p.CacheWrite, p.Input), valueOr(p.Cached, p.Input))
	if hour {
		input = max(input, p.hourWritePrice())
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

// limitNames lists the fields in which servers accept a limit on the length of an answer.
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
		return llms.DefaultMaxTokens
	}
	return limit
}

// withLimit returns the request with a limit on the length of its answer. It removes values
// that mean no limit, such as -1.
func withLimit(r llms.Request) llms.Request {
	s := &r.Sampling
	limited := s.MaxTokens != nil && *s.MaxTokens > 0
	s.Extra = maps.Clone(s.Extra)
	for _, name := range limitNames {
		if wholeNumber(s.Extra[name]) > 0 {
			limited = true
		} else {
			delete(s.Extra, name)
		}
	}
	if !limited {
		s.MaxTokens = new(llms.DefaultMaxTokens)
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
		i, _ := n.Int64() // 0 on errors: the server refuses such a value
		return i
	}
	return 0
}
