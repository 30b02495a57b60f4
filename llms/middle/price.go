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
	// Of tokens read from the server's prompt cache, written to it, and written to
	// it for an hour; nil: as the provider's llms.CacheRates say, else as Input.
	Cached       *float64 `json:"cached"`
	CacheWrite   *float64 `json:"cache_write"`
	CacheWrite1h *float64 `json:"cache_write_1h"`
	Free         bool     `json:"free"` // local models: cost 0, not unknown
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
	hour := min(u.CacheWrite1h, written)
	cost = (float64(u.Prompt-hit-written)*p.Input + float64(hit)*or(p.Cached, p.Input) +
		float64(written-hour)*or(p.CacheWrite, p.Input) + float64(hour)*p.hour() + float64(u.Completion)*p.Output) / 1e6
	return &cost
}

// at fills in what is not configured by the rates of the vendor.
func (p Price) at(rates llms.CacheRates) Price {
	if p.CacheWrite1h == nil { // never less than a write that is kept for less
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

// worstCase is what a call can cost at most whose prompt has at most so many tokens,
// all of them at the dearest price; hour: the server may keep them for an hour.
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

// framing is what a server's template puts around a message or tool, in tokens.
const framing = 32

// promptBytes is the size of what a request shows the model. No tokenizer makes
// more tokens than there are bytes.
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

// limitNames are how servers call the limit of an answer.
var limitNames = []string{"max_tokens", "max_completion_tokens", "max_output_tokens"}

// answerLimit is how long an answer may get, in tokens.
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

// limited is a request whose answer has an end. What says that it has none, as -1
// does to some servers, is left out.
func limited(r llms.Request) llms.Request {
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
		i, _ := n.Int64() // what is no number is refused by the server
		return i
	}
	return 0
}
