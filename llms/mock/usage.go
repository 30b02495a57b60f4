package mock

import (
	"strings"
	"time"
	"unicode"
)

// Usage is what a call is billed by. Cached and CacheWrite are parts of Prompt,
// CacheWrite1h is part of CacheWrite, Reasoning is part of Completion.
type Usage struct {
	Prompt       int64   `yaml:"prompt" json:"prompt_tokens"`
	Completion   int64   `yaml:"completion" json:"completion_tokens"`
	Cached       int64   `yaml:"cached" json:"cached_tokens"`
	CacheWrite   int64   `yaml:"cache_write" json:"cache_write_tokens"`
	CacheWrite1h int64   `yaml:"cache_write_1h" json:"cache_write_1h_tokens"`
	Reasoning    int64   `yaml:"reasoning" json:"reasoning_tokens"`
	Audio        int64   `yaml:"audio" json:"audio_tokens"`
	Cost         float64 `yaml:"cost" json:"cost_usd"` // told as usage.cost where it is not 0
}

func (u *Usage) add(o Usage) {
	u.Prompt += o.Prompt
	u.Completion += o.Completion
	u.Cached += o.Cached
	u.CacheWrite += o.CacheWrite
	u.CacheWrite1h += o.CacheWrite1h
	u.Reasoning += o.Reasoning
	u.Audio += o.Audio
	u.Cost += o.Cost
}

// tell puts the usage into an answer, worded by its API.
func (t Turn) tell(body map[string]any, word func(Usage) map[string]any) {
	switch u := t.Usage; {
	case t.UsageAs == "null":
		body["usage"] = nil
	case u == nil || t.UsageAs == "absent":
	default:
		told := word(*u)
		if u.Cost != 0 {
			told["cost"] = u.Cost
		}
		body["usage"] = told
	}
}

// Count is the toy tokenizer: up to four letters or digits in a row are a token,
// and so is every other character but white space.
func Count(text string) int64 {
	n, run := int64(0), 0
	for _, r := range text {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			if run%4 == 0 {
				n++
			}
			run++
		default:
			run = 0
			if !unicode.IsSpace(r) {
				n++
			}
		}
	}
	return n
}

// countPrompt is the toy count of a request: its messages, three for each, and
// its tools.
func countPrompt(messages []said, tools []byte) int64 {
	n := Count(string(tools))
	for _, m := range messages {
		n += 3 + Count(m.Text)
	}
	return n
}

// counted is the usage of an answer that the script gives none for. The Messages
// API has its prompt cache; elsewhere the prompt of the turn before is cached.
func (h *Handler) counted(t Turn, req conversation, messages []said, before *Exchange) *Usage {
	var said strings.Builder
	if t.Content != nil {
		said.WriteString(*t.Content)
	}
	for _, c := range t.ToolCalls {
		said.WriteString(" " + c.Name + " ")
		if c.Raw != nil {
			said.WriteString(*c.Raw)
		} else {
			said.Write(encoded(c.Arguments))
		}
	}
	u := Usage{Prompt: countPrompt(messages, req.tools())}
	if r, ok := req.(messagesRequest); ok {
		u = h.cache.use(r.prompt(), time.Now())
	} else if before != nil {
		u.Cached = min(before.Usage.Prompt, u.Prompt)
	}
	u.Reasoning = Count(t.Reasoning)
	u.Completion = u.Reasoning + Count(said.String())
	return &u
}
