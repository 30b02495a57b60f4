// Package tokens counts the tokens of prompts without a server. Counter counts with an
// embedded public vocabulary. Scale learns from the counts that a server reports how its
// own counts differ.
package tokens

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer/codec"

	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/schemas"
)

// Default is the vocabulary for unknown models.
const Default = "o200k_base"

// vocabularies creates each counter when it is first needed, because it takes a few megabytes.
var vocabularies = map[string]func() *Counter{
	Default:       sync.OnceValue(func() *Counter { return newCounter(codec.NewO200kBase()) }),
	"cl100k_base": sync.OnceValue(func() *Counter { return newCounter(codec.NewCl100kBase()) }),
}

// Vocabularies lists the names that Named accepts.
func Vocabularies() []string { return []string{"cl100k_base", Default} }

// cl100kModels matches models whose vocabulary is cl100k_base or derived from it.
var cl100kModels = regexp.MustCompile(`(?i)(^|/)(gpt-4($|-)|gpt-35|gpt-3\.5|llama-?3|meta-llama-3|qwen)`)

// For returns the counter for a model, by its name. An unknown model gets the default
// vocabulary.
func For(model string) *Counter {
	if cl100kModels.MatchString(model) {
		return vocabularies["cl100k_base"]()
	}
	return vocabularies[Default]()
}

// Named returns the counter for a vocabulary.
func Named(vocabulary string) (*Counter, error) {
	if v, ok := vocabularies[vocabulary]; ok {
		return v(), nil
	}
	return nil, fmt.Errorf("unknown vocabulary %q: choose one of %s, or omit it to use the model's own",
		vocabulary, strings.Join(Vocabularies(), ", "))
}

// Choose returns the counter for a vocabulary, or for the model if vocabulary is "".
func Choose(vocabulary, model string) (*Counter, error) {
	if vocabulary == "" {
		return For(model), nil
	}
	return Named(vocabulary)
}

// Counter counts with one vocabulary. It counts the names of special tokens as ordinary
// text. It is safe for concurrent use.
type Counter struct {
	codec *codec.Codec
	texts *countCache
}

func newCounter(c *codec.Codec) *Counter { return &Counter{codec: c, texts: newCountCache()} }

// maxPiece is the maximum size in bytes of the parts of a text that are counted separately. It
// limits the length of a word and the time for long runs of white space. Text cuts at the
// end of a line if possible. A cut elsewhere adds at most one token.
const maxPiece = 1024

// exactLimit is the size in bytes up to which a text is counted completely. For a longer text,
// Text counts every n-th piece and extrapolates.
const exactLimit = 1 << 20

// Text counts the tokens of a text, which need not be valid UTF-8. Above 1 MiB, the count is
// an estimate.
func (c *Counter) Text(s string) int {
	if len(s) <= 64 {
		return c.count(s)
	}
	key := c.texts.key(s)
	if n, ok := c.texts.get(key); ok {
		return n
	}
	n := 0
	stride := 1 + len(s)/exactLimit
	for i, rest := 0, s; rest != ""; i++ {
		cut := pieceEnd(rest)
		if i%stride == 0 {
			n += stride * c.count(rest[:cut])
		}
		rest = rest[cut:]
	}
	c.texts.put(key, n)
	return n
}

// count counts the tokens of a short text. The codec fails only on invalid settings; then the number of bytes is an
// upper bound.
func (c *Counter) count(s string) int {
	n, err := c.codec.Count(s)
	if err != nil {
		return len(s)
	}
	return n
}

func pieceEnd(s string) int {
	if len(s) <= maxPiece {
		return len(s)
	}
	if i := strings.LastIndexByte(s[maxPiece/2:maxPiece], '\n'); i >= 0 {
		return maxPiece/2 + i + 1
	}
	end := maxPiece
	for end > maxPiece-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return end
}

// framing is the number of tokens that a chat template adds to a message or a tool.
const framing = 4

// Message counts one message with its tool calls. If the message has Raw, Message counts all
// of Raw, including the reasoning.
func (c *Counter) Message(m llms.Message) int {
	if len(m.Raw) > 0 {
		return framing + c.Text(string(m.Raw))
	}
	n := framing + c.Text(m.Content)
	for _, call := range m.ToolCalls {
		n += framing + c.Text(call.ID) + c.Text(call.Name) + c.Text(string(call.Arguments))
	}
	return n
}

// Tools counts the descriptions of tools.
func (c *Counter) Tools(tools []schemas.ToolSchema) int {
	n := 0
	for _, t := range tools {
		n += framing + c.Text(t.Name) + c.Text(t.Description) + c.Text(string(t.Parameters))
	}
	return n
}

// Prompt counts the messages and tools of a request.
func (c *Counter) Prompt(r llms.Request) int {
	n := c.Tools(r.Tools)
	for _, m := range r.Messages {
		n += c.Message(m)
	}
	return n
}
