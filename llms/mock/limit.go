package mock

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Limits are rate limits like those of vendors: a request that exceeds them gets status 429.
// 0 means no limit. Like servers that reserve tokens, it counts one token for four bytes of
// the request, plus the limit of the answer.
type Limits struct {
	RPM      float64 `yaml:"rpm"`
	TPM      float64 `yaml:"tpm"`
	Parallel int     `yaml:"parallel"`
}

// limiter enforces Limits with buckets that hold one minute and refill evenly.
type limiter struct {
	Limits

	mu               sync.Mutex
	at               time.Time
	requests, tokens float64 // remaining in the buckets
	running, peak    int
}

func newLimiter(l Limits) *limiter {
	return &limiter{Limits: l, at: time.Now(), requests: l.RPM, tokens: l.TPM}
}

// begin admits a call with the given number of tokens, or returns why it does not and how long
// to wait. It sets the x-ratelimit headers.
func (l *limiter) begin(h http.Header, tokens float64) (wait time.Duration, reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	minutes := now.Sub(l.at).Minutes()
	l.at = now
	l.requests, l.tokens = min(l.RPM, l.requests+minutes*l.RPM), min(l.TPM, l.tokens+minutes*l.TPM)
	switch {
	case l.Parallel > 0 && l.running >= l.Parallel:
		wait, reason = 100*time.Millisecond, fmt.Sprintf("too many concurrent requests: %d at most", l.Parallel)
	case l.RPM > 0 && l.requests < 1:
		wait, reason = refillTime(1-l.requests, l.RPM), fmt.Sprintf("rate limit of %g requests per minute reached", l.RPM)
	case l.TPM > 0 && l.tokens < min(tokens, l.TPM):
		wait, reason = refillTime(min(tokens, l.TPM)-l.tokens, l.TPM), fmt.Sprintf("rate limit of %g tokens per minute reached", l.TPM)
	default:
		l.requests--
		l.tokens -= tokens
		l.running++
		l.peak = max(l.peak, l.running)
	}
	if l.RPM > 0 {
		h.Set("x-ratelimit-limit-requests", strconv.FormatFloat(l.RPM, 'f', -1, 64))
		h.Set("x-ratelimit-remaining-requests", strconv.Itoa(int(max(0, l.requests))))
	}
	if l.TPM > 0 {
		h.Set("x-ratelimit-limit-tokens", strconv.FormatFloat(l.TPM, 'f', -1, 64))
		h.Set("x-ratelimit-remaining-tokens", strconv.Itoa(int(max(0, l.tokens))))
	}
	return wait, reason
}

func (l *limiter) end() {
	l.mu.Lock()
	l.running--
	l.mu.Unlock()
}

// refillTime returns how long a bucket takes to gain the missing units.
func refillTime(missing, perMinute float64) time.Duration {
	return time.Duration(math.Ceil(missing / perMinute * float64(time.Minute)))
}
