package middle

import (
	"sync"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// counts holds the last token count that an endpoint reported for each conversation. The
// only general upper bound of a prompt's tokens is its bytes, which is about four times too
// high. If the server has counted the beginning of a prompt, this bound applies only to the
// rest, so from the second call on the worst case is close to the cost. counts is safe for
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
	// conversations is the maximum number of conversations that are remembered.
	conversations = 8192
	// implausible is the number of bytes per token above which a count is ignored.
	implausible = 16
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
	more := int64(promptBytes(llms.Request{Messages: added}))
	if len(added) > 0 && added[0].Role == "assistant" { // its reasoning may be larger than Raw shows
		more += before.completion
	}
	return min(bytes, before.prompt+before.prompt/variation+more)
}

// report stores the count of a server.
func (c *counts) report(r llms.Request, u *schemas.Usage) {
	if r.SessionID == "" || u == nil {
		return
	}
	count := promptCount{len(r.Messages), promptHash(r, len(r.Messages)), u.Prompt, u.Completion}
	c.mu.Lock()
	defer c.mu.Unlock()
	if count.hash == "" || u.Prompt < int64(promptBytes(r)/implausible) { // earlier counts are not reliable either
		delete(c.last, r.SessionID)
		return
	}
	if c.last == nil {
		c.last = map[string]promptCount{}
	}
	for id := range c.last { // drop any conversation
		if len(c.last) < conversations {
			break
		}
		delete(c.last, id)
	}
	c.last[r.SessionID] = count
}

// promptHash returns the hash of the tools and the first messages of a prompt, "" if it
// cannot be encoded.
func promptHash(r llms.Request, messages int) string {
	raw, err := schemas.CanonicalJSON(map[string]any{"tools": r.Tools, "messages": r.Messages[:messages]})
	if err != nil {
		return ""
	}
	return schemas.HashBytes(raw)
}
