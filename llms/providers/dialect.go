package providers

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/llms"
)

// Dialect contains settings for differences between OpenAI-compatible servers; see docs/wire.md.
type Dialect struct {
	// Name of the field that limits an answer: max_tokens or max_completion_tokens.
	MaxTokensField string `json:"max_tokens_field"`
	// Which earlier answers are sent back with their reasoning: always (all), never (none), last
	// (the latest) or auto (answers that called tools, and the signed reasoning of all answers).
	EchoReasoning string `json:"echo_reasoning"`
	// Ids of tool calls: any, or nine for servers that require exactly nine letters and digits.
	CallIDs string `json:"call_ids"`
	// Content of an answer without text: null (an empty text if there are no calls), empty or
	// space.
	EmptyContent string   `json:"empty_content"`
	Drop         []string `json:"drop"` // fields of requests that the model refuses; they are not sent
}

// DefaultDialect suits most servers.
func DefaultDialect() Dialect {
	return Dialect{MaxTokensField: "max_tokens", EchoReasoning: "auto", CallIDs: "any", EmptyContent: "null"}
}

func (d Dialect) check() error {
	for _, s := range []struct {
		name, value string
		known       []string
	}{
		{"max_tokens_field", d.MaxTokensField, []string{"max_tokens", "max_completion_tokens"}},
		{"echo_reasoning", d.EchoReasoning, []string{"auto", "always", "never", "last"}},
		{"call_ids", d.CallIDs, []string{"any", "nine"}},
		{"empty_content", d.EmptyContent, []string{"null", "empty", "space"}},
	} {
		if !slices.Contains(s.known, s.value) {
			return &plugin.FieldError{Path: s.name, Message: fmt.Sprintf("%s is %q: choose one of %v", s.name, s.value, s.known)}
		}
	}
	for _, name := range d.Drop {
		if slices.Contains([]string{"model", "messages", "tools"}, name) {
			return &plugin.FieldError{Path: "drop", Message: fmt.Sprintf("drop must not name %q: every request needs it", name)}
		}
		if slices.Contains([]string{"max_tokens", "max_completion_tokens"}, name) {
			return &plugin.FieldError{Path: "drop", Message: fmt.Sprintf(
				"drop must not name %q: it limits the cost of a call, and is not sent unless a limit is set; set max_tokens_field to the name that the server accepts", name)}
		}
	}
	return nil
}

var nineLetters = regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)

// callID returns an id in the form that the server accepts.
func (d Dialect) callID(id string) string {
	if d.CallIDs == "any" || id == "" {
		return id
	}
	return vendorID(nineLetters, id)
}

func (d Dialect) content(m llms.Message) any {
	switch {
	case m.Content != "" || m.Role != "assistant":
		return m.Content
	case d.EmptyContent == "space":
		return " "
	case d.EmptyContent == "null" && len(m.ToolCalls) > 0:
		return nil
	}
	return ""
}

// plainReasoning and signedReasoning list the fields in which servers send reasoning.
var (
	plainReasoning  = []string{"reasoning_content", "reasoning"}
	signedReasoning = []string{"reasoning_details", "thinking_blocks"}
)

// dropReasoning removes from an earlier answer the reasoning that is not sent back.
func (d Dialect) dropReasoning(received map[string]any, m llms.Message, last bool) {
	drop := append(slices.Clone(plainReasoning), signedReasoning...)
	switch d.EchoReasoning {
	case "always":
		return
	case "last":
		if last {
			return
		}
	case "auto":
		if len(m.ToolCalls) > 0 {
			return
		}
		drop = plainReasoning
	}
	for _, name := range drop {
		delete(received, name)
	}
}
