package providers

import "github.com/tracesmith/tracesmith/llms"

// cacheUsage is how Anthropic reports its prompt cache, in its own API and through
// gateways that speak another.
type cacheUsage struct {
	Read    *float64   `json:"cache_read_input_tokens"`
	Write   *float64   `json:"cache_creation_input_tokens"`
	Created cacheTimes `json:"cache_creation"`
}

// cacheTimes are tokens written to the cache, by how long it keeps them.
type cacheTimes struct {
	Minutes *float64 `json:"ephemeral_5m_input_tokens"`
	Hour    *float64 `json:"ephemeral_1h_input_tokens"`
}

// written is how many tokens were written to the cache, and how many of them for
// an hour: those that are reported so, and if hour, which the request asked for, all
// whose time is not reported.
func (t cacheTimes) written(hour bool, all ...*float64) (written, forHour int64) {
	minutes, forHour := count(t.Minutes), count(t.Hour)
	written = minutes + forHour
	for _, n := range all {
		written = max(written, count(n))
	}
	if hour {
		forHour = written - minutes
	}
	return written, forHour
}

// asksForHour tells whether the settings of a request ask the server to keep the
// prompt for an hour.
func asksForHour(r llms.Request) bool {
	mark, _ := r.Sampling.Extra["cache_control"].(map[string]any)
	return mark["ttl"] == "1h"
}
