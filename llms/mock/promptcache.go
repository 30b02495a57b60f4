package mock

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// promptCache simulates the prompt cache of the Messages API. A request marks prefixes of its
// prompt with cache_control. The part that a marked prefix shares with a kept prefix counts
// as read, and the rest up to the last mark counts as written.
type promptCache struct {
	minimum int64 // tokens; a shorter prefix is not kept
	kept    map[[32]byte]keptPrefix
}

// keptPrefix is the lifetime of a prefix. Each use extends it by ttl from that time.
type keptPrefix struct {
	until time.Time
	ttl   time.Duration
}

// lookBack is the number of blocks before a mark in which the cache searches for a kept prefix.
const lookBack = 20

type promptBlock struct {
	tokens int64
	prefix [32]byte      // hash of the prompt up to this block
	mark   time.Duration // how long to keep that prefix; 0: no mark
}

// use returns the usage of a prompt, and keeps its marked prefixes.
func (c *promptCache) use(prompt []promptBlock, now time.Time) Usage {
	var u Usage
	last, total := -1, int64(0)
	for i, b := range prompt {
		u.Prompt += b.tokens
		if b.mark > 0 && u.Prompt >= c.minimum {
			last, total = i, u.Prompt
		}
	}
	if last < 0 {
		return u
	}
	hit := c.find(prompt, last, now)
	before, hour := int64(0), int64(0) // tokens up to the block, and up to the last mark with a lifetime of an hour
	for i, b := range prompt[:last+1] {
		before += b.tokens
		if i == hit {
			u.Cached = before
		}
		if b.mark == 0 || before < c.minimum {
			continue
		}
		if b.mark == time.Hour {
			hour = before
		}
		c.kept[b.prefix] = keptPrefix{now.Add(b.mark), b.mark}
	}
	u.CacheWrite = total - u.Cached
	u.CacheWrite1h = max(0, hour-u.Cached)
	return u
}

// find returns the index of the last block of the longest kept prefix, or -1 if there is none.
func (c *promptCache) find(prompt []promptBlock, last int, now time.Time) int {
	for mark := last; mark >= 0; mark-- {
		if prompt[mark].mark == 0 {
			continue
		}
		for i := mark; i > max(-1, mark-lookBack); i-- {
			if k, ok := c.kept[prompt[i].prefix]; ok && now.Before(k.until) {
				c.kept[prompt[i].prefix] = keptPrefix{now.Add(k.ttl), k.ttl}
				return i
			}
		}
	}
	return -1
}

// prompt returns the blocks of the request in the order in which the vendor
// caches them.
func (r messagesRequest) prompt() []promptBlock {
	var out []promptBlock
	hash := sha256.Sum256([]byte(r.Model))
	add := func(role string, block map[string]any) {
		mark := lifetime(block["cache_control"])
		block = maps.Clone(block)
		delete(block, "cache_control")
		raw := encode([]any{role, block})
		hash = sha256.Sum256(slices.Concat(hash[:], raw))
		out = append(out, promptBlock{tokens: 3 + countValue(block), prefix: hash, mark: mark})
	}
	var tools []map[string]any
	var system blocks
	_ = json.Unmarshal(r.Tools, &tools) // check reports a value that is not a list
	_ = json.Unmarshal(r.System, &system)
	for _, b := range tools {
		add("tools", b)
	}
	for _, b := range system {
		add("system", b)
	}
	for _, m := range r.Messages {
		for _, b := range m.Content {
			add(m.Role, b)
		}
	}
	if mark := lifetime(r.Cache); mark > 0 && len(out) > 0 { // of the whole request
		out[len(out)-1].mark = max(mark, out[len(out)-1].mark)
	}
	return out
}

// countValue counts the tokens of all texts and names in a JSON value with the toy tokenizer.
func countValue(v any) (n int64) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			n += Count(name) + countValue(value)
		}
	case []any:
		for _, value := range v {
			n += countValue(value)
		}
	default:
		n = Count(fmt.Sprint(v))
	}
	return n
}

// lifetime returns how long a mark keeps a prefix, or 0 if there is no mark.
func lifetime(mark any) time.Duration {
	switch m, _ := mark.(map[string]any); {
	case m["type"] != "ephemeral":
		return 0
	case m["ttl"] == "1h":
		return time.Hour
	}
	return 5 * time.Minute
}
