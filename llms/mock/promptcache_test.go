package mock

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// ask sends a conversation of blocks through the prompt cache.
func (c *promptCache) ask(t *testing.T, now time.Time, blocks ...string) Usage {
	t.Helper()
	body := fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":[%s]}]}`, strings.Join(blocks, ","))
	var r messagesRequest
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		t.Fatal(err)
	}
	return c.use(r.prompt(), now)
}

// block returns a text block, with cache_control if ttl is set.
func block(word, ttl string) string {
	mark := ""
	if ttl != "" {
		mark = fmt.Sprintf(`,"cache_control":{"type":"ephemeral","ttl":%q}`, ttl)
	}
	return fmt.Sprintf(`{"type":"text","text":"%s a b c d"%s}`, word, mark)
}

func TestPromptCacheBillsLikeTheVendor(t *testing.T) {
	start := time.Now()
	at := func(minutes float64) time.Time { return start.Add(time.Duration(minutes * float64(time.Minute))) }
	empty := func(minimum int64) *promptCache {
		return &promptCache{minimum: minimum, kept: map[[32]byte]keptPrefix{}}
	}
	const blockTokens = 11 // tokens of one block
	expect := func(what string, got, want Usage) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %+v, want %+v", what, got, want)
		}
	}
	c := empty(0)
	expect("no mark", c.ask(t, start, block("w", ""), block("x", "")), Usage{Prompt: 2 * blockTokens})
	expect("written", c.ask(t, start, block("w", ""), block("x", "5m"), block("y", "")), Usage{Prompt: 3 * blockTokens, CacheWrite: 2 * blockTokens})
	expect("read", c.ask(t, at(4), block("w", ""), block("x", "5m"), block("y", "")), Usage{Prompt: 3 * blockTokens, Cached: 2 * blockTokens})
	expect("a read extends the lifetime", c.ask(t, at(8), block("w", ""), block("x", ""), block("y", "5m")), Usage{Prompt: 3 * blockTokens, Cached: 2 * blockTokens, CacheWrite: blockTokens})
	expect("expired", c.ask(t, at(14), block("w", ""), block("x", "5m")), Usage{Prompt: 2 * blockTokens, CacheWrite: 2 * blockTokens})
	expect("another beginning", c.ask(t, at(14), block("v", ""), block("x", "5m")), Usage{Prompt: 2 * blockTokens, CacheWrite: 2 * blockTokens})

	c = empty(0)
	expect("an hour and five minutes", c.ask(t, start, block("w", "1h"), block("x", ""), block("y", "5m")), Usage{Prompt: 3 * blockTokens, CacheWrite: 3 * blockTokens, CacheWrite1h: blockTokens})
	expect("the one-hour prefix remains", c.ask(t, at(30), block("w", "1h"), block("x", ""), block("y", "5m")), Usage{Prompt: 3 * blockTokens, Cached: blockTokens, CacheWrite: 2 * blockTokens})
	expect("all expired", c.ask(t, at(91), block("w", "1h")), Usage{Prompt: blockTokens, CacheWrite: blockTokens, CacheWrite1h: blockTokens})

	c = empty(2 * blockTokens)
	expect("too short", c.ask(t, start, block("w", "5m")), Usage{Prompt: blockTokens})
	expect("long enough", c.ask(t, start, block("w", "5m"), block("x", "5m")), Usage{Prompt: 2 * blockTokens, CacheWrite: 2 * blockTokens})

	c = empty(0)
	long := []string{block("w", "5m")}
	c.ask(t, start, long...)
	for range lookBack {
		long = append(long, block("n", ""))
	}
	long[len(long)-1] = block("n", "5m")
	long[0] = block("w", "")
	expect("too far back", c.ask(t, start, long...), Usage{Prompt: 21 * blockTokens, CacheWrite: 21 * blockTokens})
}

// Amounts computed from example prices of a vendor are exact, whatever the order of calls.
func TestBillsAreExact(t *testing.T) {
	u := Usage{Prompt: 100_000, Cached: 500, CacheWrite: 99_000, Completion: 1000}
	for want, p := range map[string]Price{
		"0.38790000": {Input: 3, Output: 15},
		"0.30000000": {Input: 3, CacheWrite: new(3.0), Cached: new(3.0)},
	} {
		if got := p.bill(u, true).FloatString(8); got != want {
			t.Errorf("%+v: got $%s, want $%s", p, got, want)
		}
	}
	u.CacheWrite1h = u.CacheWrite
	if got := (Price{Input: 3}).bill(u, true).FloatString(8); got != "0.59565000" {
		t.Errorf("for an hour: $%s", got)
	}
	if got := (Price{Input: 3}).bill(u, false).FloatString(8); got != "0.59700000" {
		t.Errorf("chat completions: $%s", got)
	}
}
