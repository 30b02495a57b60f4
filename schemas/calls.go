package schemas

// Calls sums up the calls to model servers of an episode or a whole run:
// Made = Answered + Failed + LostInFlight. The tokens are those of the answered
// calls. If a server may have billed a call that was not answered, AtRiskUSD
// includes its maximum cost. CostUSD and AtRiskUSD together are an upper bound of
// what servers have billed, except for calls whose price is not known (Unpriced).
type Calls struct {
	Made         int `json:"made"` // recorded in the log and then sent, unless the process died in between
	Answered     int `json:"answered"`
	Failed       int `json:"failed"`         // refused, interrupted or timed out
	LostInFlight int `json:"lost_in_flight"` // in flight when the process died
	Retried      int `json:"retried"`        // part of Made: repeats a call that failed
	FromCache    int `json:"from_cache"`     // replies that needed no call

	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Cached     int64 `json:"cached_tokens"`
	Reasoning  int64 `json:"reasoning_tokens"`
	Uncounted  int   `json:"uncounted"` // part of Answered: the server reported no usage
	// EstimatedPrompt and EstimatedCompletion are tracesmith's counts for the Uncounted
	// calls. No other sum includes them.
	EstimatedPrompt     int64 `json:"estimated_prompt_tokens"`
	EstimatedCompletion int64 `json:"estimated_completion_tokens"`

	CostUSD   float64 `json:"cost_usd"`    // of the answered calls that have a price
	AtRiskUSD float64 `json:"at_risk_usd"` // maximum cost of calls without an answer or without usage
	Unpriced  int     `json:"unpriced"`    // part of Answered: no price is known
}

// Spent returns the maximum amount that may have been billed, in USD. It does not
// include calls whose price is not known (Unpriced).
func (c Calls) Spent() float64 { return c.CostUSD + c.AtRiskUSD }

// Add returns the sum of c and o.
func (c Calls) Add(o Calls) Calls {
	c.Made += o.Made
	c.Answered += o.Answered
	c.Failed += o.Failed
	c.LostInFlight += o.LostInFlight
	c.Retried += o.Retried
	c.FromCache += o.FromCache
	c.Prompt += o.Prompt
	c.Completion += o.Completion
	c.Cached += o.Cached
	c.Reasoning += o.Reasoning
	c.Uncounted += o.Uncounted
	c.EstimatedPrompt += o.EstimatedPrompt
	c.EstimatedCompletion += o.EstimatedCompletion
	c.CostUSD += o.CostUSD
	c.AtRiskUSD += o.AtRiskUSD
	c.Unpriced += o.Unpriced
	return c
}

// Payment is the result and the cost of one call.
type Payment struct {
	Failed bool   `json:"failed,omitempty"`
	Usage  *Usage `json:"usage,omitempty"` // nil: failed, or the server reported no usage
	// Estimated is tracesmith's count for an answer that has no Usage.
	Estimated *Usage `json:"estimated_usage,omitempty"`
	// CostUSD is the cost of an answer; nil: no price or no usage to compute it from.
	CostUSD *float64 `json:"cost_usd,omitempty"`
	// AtRiskUSD is the maximum that the server may have billed without reporting it.
	AtRiskUSD float64 `json:"at_risk_usd,omitempty"`
}

// Spent returns the maximum amount that may have been billed, in USD; 0 if no price
// is known.
func (p Payment) Spent() float64 {
	if p.CostUSD == nil {
		return p.AtRiskUSD
	}
	return *p.CostUSD + p.AtRiskUSD
}

// AddResult adds the result of a call that has ended. Made must already count the call.
func (c Calls) AddResult(p Payment) Calls {
	c.AtRiskUSD += p.AtRiskUSD
	if p.Failed {
		c.Failed++
		return c
	}
	c.Answered++
	if p.Usage != nil {
		c.Prompt += p.Usage.Prompt
		c.Completion += p.Usage.Completion
		c.Cached += p.Usage.Cached
		c.Reasoning += p.Usage.Reasoning
	} else {
		c.Uncounted++
		if p.Estimated != nil {
			c.EstimatedPrompt += p.Estimated.Prompt
			c.EstimatedCompletion += p.Estimated.Completion
		}
	}
	switch {
	case p.CostUSD != nil:
		c.CostUSD += *p.CostUSD
	case p.AtRiskUSD == 0:
		c.Unpriced++
	}
	return c
}
