package providers

import "github.com/tracesmith/tracesmith/llms"

// cacheUsage contains the fields in which Anthropic reports the use of its prompt cache,
// also through gateways with another API.
type cacheUsage struct {
	Read    *float64   `json:"cache_read_input_tokens"`
	Write   *float64   `json:"cache_creation_input_tokens"`
	Created cacheTimes `json:"cache_creation"`
}

// cacheTimes contains the number of tokens written to the cache, by how long it keeps them.
type cacheTimes struct {
	Minutes *float64 `json:"ephemeral_5m_input_tokens"`
	Hour    *float64 `json:"ephemeral_1h_input_tokens"`
}

// written returns how many tokens the server wrote to the cache in total, and how many of these
// it keeps for an hour. totals are the totals that the server reported in other fields. If hour
// is set, the request asked the server to keep the prompt for an hour, so tokens whose time the
// server did not report count as kept for an hour.
func (t cacheTimes) written(hour bool, totals ...*float64) (written, forHour int64) {
	minutes, forHour := count(t.Minutes), count(t.Hour)
	written = minutes + forHour
	for _, n := range totals {
		written = max(written, count(n))
	}
	if hour {
		forHour = written - minutes
	}
	return written, forHour
}

// asksForHour reports whether a request asks the server to keep the prompt for an hour.
func asksForHour(r llms.Request) bool {
	mark, _ := r.Sampling.Extra["cache_control"].(map[string]any)
	return mark["ttl"] == "1h"
}
