package mock

import (
	"strings"
	"time"
	"unicode"
)

// Usage holds the token counts of a call, for which the server bills. Cached and CacheWrite are parts of Prompt,
// CacheWrite1h is part of CacheWrite, Reasoning is part of Completion.
type Usage struct {
	Prompt       int64   `yaml:"prompt" json:"prompt_tokens"`
	Completion   int64   `yaml:"completion" json:"completion_tokens"`
	Cached       int64   `yaml:"cached" json:"cached_tokens"`
	CacheWrite   int64   `yaml:"cache_write" json:"cache_write_tokens"`
	CacheWrite1h int64   `yaml:"cache_write_1h" json:"cache_write_1h_tokens"`
	Reasoning    int64   `yaml:"reasoning" json:"reasoning_tokens"`
	Audio        int64   `yaml:"audio" json:"audio_tokens"`
	Cost         float64 `yaml:"cost" json:"cost_usd"` // sent as usage.cost if it is not 0
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

// addUsage adds the usage to an answer, in the form of its API.
func (t Turn) addUsage(body map[string]any, form func(Usage) map[string]any) {
	switch u := t.Usage; {
	case t.UsageAs == "null":
		body["usage"] = nil
	case u == nil || t.UsageAs == "absent":
	default:
		usage := form(*u)
		if u.Cost != 0 {
			usage["cost"] = u.Cost
		}
		body["usage"] = usage
	}
}

// Count returns the number of tokens of a text by the toy tokenizer. Up to four letters or
// digits in a row are a token, and so is every other character except white space.
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

// countPrompt counts the tokens of a request with the toy tokenizer: its tools, and its
// messages with three more tokens for each.
func countPrompt(messages []textMessage, tools []byte) int64 {
	n := Count(string(tools))
	for _, m := range messages {
		n += 3 + Count(m.Text)
	}
	return n
}

// computeUsage returns the usage of an answer for which the script has none. For the Messages
// API it uses the prompt cache; for chat completions it counts the previous prompt as cached.
func (h *Handler) computeUsage(t Turn, req conversation, messages []textMessage, previous *Exchange) *Usage {
	var answer strings.Builder
	if t.Content != nil {
		answer.WriteString(*t.Content)
	}
	for _, c := range t.ToolCalls {
		answer.WriteString(" " + c.Name + " ")
		if c.Raw != nil {
			answer.WriteString(*c.Raw)
		} else {
			answer.Write(encode(c.Arguments))
		}
	}
	u := Usage{Prompt: countPrompt(messages, req.common().Tools)}
	if r, ok := req.(messagesRequest); ok {
		u = h.cache.use(r.prompt(), time.Now())
	} else if previous != nil {
		u.Cached = min(previous.Usage.Prompt, u.Prompt)
	}
	u.Reasoning = Count(t.Reasoning)
	u.Completion = u.Reasoning + Count(answer.String())
	return &u
}
