package llms

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"
	"slices"
	"unicode/utf8"

	"github.com/tracesmith/tracesmith/schemas"
)

// Traits holds what the configuration says about a model.
type Traits struct {
	ContextLimit int    // tokens of prompt and answer together; 0 if unknown
	Vocabulary   string // of package tokens; "" = chosen by the model's name
	NoSystem     bool   // the model has no system role
}

type withTraits struct {
	Client
	traits Traits
}

// WithTraits returns a client with the traits of its model.
func WithTraits(c Client, t Traits) Client { return withTraits{c, t} }

// TraitsOf returns the traits of a client that WithTraits made.
func TraitsOf(c Client) Traits {
	if w, ok := c.(withTraits); ok {
		return w.traits
	}
	return Traits{}
}

// promptMessage is a message as rows contain it. Its fields are in the order of canonical
// JSON.
type promptMessage struct {
	Content    string       `json:"content"`
	Role       string       `json:"role"`
	ToolCallID string       `json:"tool_call_id,omitempty"`
	ToolCalls  []promptCall `json:"tool_calls,omitempty"`
}

type promptCall struct {
	Arguments json.RawMessage `json:"arguments"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
}

// PromptSHA256 returns the hash of a message list as rows contain it: the SHA-256 of the
// canonical JSON of a list of objects with role, content and, if present, tool_calls (id,
// name, arguments as an object) and tool_call_id. Reasoning and signatures that providers
// send back are not part of it.
func PromptSHA256(messages []Message) string { return new(PromptHash).SHA256(messages) }

// PromptHash hashes prompts that have a prefix in common, as the prompts of a conversation
// do, without hashing that prefix again. The zero value is ready to use. It is not safe for
// concurrent use.
type PromptHash struct {
	messages []Message
	sums     []hash.Cloner // state of the hash after each message
	line     bytes.Buffer
}

// SHA256 returns PromptSHA256(messages). The caller must not change the messages later.
func (h *PromptHash) SHA256(messages []Message) string {
	same := 0
	for same < min(len(h.messages), len(messages)) && h.messages[same].equal(messages[same]) {
		same++
	}
	h.messages, h.sums = append(h.messages[:same], messages[same:]...), h.sums[:same]
	sum := sha256.New().(hash.Cloner)
	if same > 0 {
		sum = clone(h.sums[same-1])
	}
	for i, m := range messages[same:] {
		separator := ","
		if same+i == 0 {
			separator = "["
		}
		sum.Write([]byte(separator))
		h.line.Reset()
		m.writeTo(&h.line)
		sum.Write(bytes.TrimSuffix(h.line.Bytes(), []byte("\n")))
		h.sums = append(h.sums, clone(sum))
	}
	if len(messages) == 0 {
		sum.Write([]byte("["))
	}
	sum.Write([]byte("]"))
	return hex.EncodeToString(sum.Sum(nil))
}

func clone(h hash.Cloner) hash.Cloner {
	c, err := h.Clone()
	if err != nil {
		panic(err) // cannot happen: SHA-256 can be cloned
	}
	return c
}

// equal reports whether writeTo writes the same bytes for m and o.
func (m Message) equal(o Message) bool {
	return m.Role == o.Role && m.Content == o.Content && m.ToolCallID == o.ToolCallID &&
		slices.EqualFunc(m.ToolCalls, o.ToolCalls, func(a, b schemas.ToolCall) bool {
			return a.ID == b.ID && a.Name == b.Name && bytes.Equal(a.Arguments, b.Arguments)
		})
}

// writeTo writes the canonical JSON of a message as a line.
func (m Message) writeTo(line *bytes.Buffer) {
	out := promptMessage{Role: m.Role, Content: toValidUTF8(m.Content), ToolCallID: toValidUTF8(m.ToolCallID)}
	for _, c := range m.ToolCalls {
		args, err := schemas.CanonicalJSON(c.Arguments)
		if err != nil {
			args = []byte("{}") // not valid JSON, so the call was refused
		}
		out.ToolCalls = append(out.ToolCalls, promptCall{args, toValidUTF8(c.ID), toValidUTF8(c.Name)})
	}
	enc := json.NewEncoder(line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(out); err != nil {
		panic(err) // cannot happen: out holds strings and canonical JSON
	}
}

// toValidUTF8 replaces every byte that is not valid UTF-8 by U+FFFD, as encoding/json does.
func toValidUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}
