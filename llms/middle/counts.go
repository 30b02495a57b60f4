package middle

import (
	"sync"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// counts holds the last token count that an endpoint reported for each conversation. The
// only general upper bound of a prompt's tokens is its bytes, which is about four times too
// high. If the server has counted the beginning of a prompt, this bound applies only to the
// rest. From the second call on, the worst case is therefore close to the cost. counts is safe for
// concurrent use, and the zero value is ready to use.
type counts struct {
	mu   sync.Mutex
	last map[string]promptCount // by session
}

// promptCount is the token count that a server reported for a prompt.
type promptCount struct {
	messages           int
	hash               string // of the tools and the messages
	prompt, completion int64  // tokens
}

const (
	// maxConversations is the number of conversations whose counts are kept.
	maxConversations = 8192
	// maxBytesPerToken is the number of bytes per token above which a count is implausible
	// and ignored.
	maxBytesPerToken = 16
	// variation allows for 1/variation more tokens when the server renders the same prompt
	// again, for example with another date in its template.
	variation = 50
)

// bound returns the maximum number of tokens of a prompt.
func (c *counts) bound(r llms.Request) int64 {
	bytes := int64(promptBytes(r))
	c.mu.Lock()
	before, ok := c.last[r.SessionID]
	c.mu.Unlock()
	if !ok || before.messages > len(r.Messages) || promptHash(r, before.messages) != before.hash {
		return bytes
	}
	added := r.Messages[before.messages:]
	extra := int64(promptBytes(llms.Request{Messages: added}))
	if len(added) > 0 && added[0].Role == "assistant" { // its reasoning may be larger than Raw shows
		extra += before.completion
	}
	return min(bytes, before.prompt+before.prompt/variation+extra)
}

// report stores the token count that a server reported for r.
func (c *counts) report(r llms.Request, u *schemas.Usage) {
	if r.SessionID == "" || u == nil {
		return
	}
	count := promptCount{len(r.Messages), promptHash(r, len(r.Messages)), u.Prompt, u.Completion}
	c.mu.Lock()
	defer c.mu.Unlock()
	if count.hash == "" || u.Prompt < int64(promptBytes(r)/maxBytesPerToken) { // earlier counts are not reliable either
		delete(c.last, r.SessionID)
		return
	}
	if c.last == nil {
		c.last = map[string]promptCount{}
	}
	for id := range c.last { // make room by dropping arbitrary conversations
		if len(c.last) < maxConversations {
			break
		}
		delete(c.last, id)
	}
	c.last[r.SessionID] = count
}

// promptHash returns the hash of the tools and of the given number of first messages of a
// prompt, or "" if they cannot be encoded.
func promptHash(r llms.Request, messages int) string {
	raw, err := schemas.CanonicalJSON(map[string]any{"tools": r.Tools, "messages": r.Messages[:messages]})
	if err != nil {
		return ""
	}
	return schemas.HashBytes(raw)
}
