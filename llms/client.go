// Package llms defines the interface to model servers: a Request and a Response that do
// not depend on the provider, and classified errors. The clients are in package
// providers; package mock is a scripted server for the same APIs.
package llms

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tracesmith/tracesmith/schemas"
)

// Client calls one model. It is safe for concurrent use. Implementations do not retry: only
// the retry layer of package middle does.
type Client interface {
	Chat(ctx context.Context, r Request) (Response, error)
	// Provider and Model return the names that rows record.
	Provider() string
	Model() string
}

// Message is one message of a request.
type Message struct {
	Role       string             `json:"role"` // system, user, assistant, tool
	Content    string             `json:"content"`
	ToolCalls  []schemas.ToolCall `json:"tool_calls,omitempty"`
	ToolCallID string             `json:"tool_call_id,omitempty"`
	// Raw is the assistant message as it was received. Providers send its unknown
	// fields, such as reasoning and signatures, back to the server.
	Raw json.RawMessage `json:"raw,omitempty"`
}

// Request is one call.
type Request struct {
	Messages []Message
	Tools    []schemas.ToolSchema
	Sampling Sampling
	// SessionID is sent as X-Session-ID, so that servers can keep a prefix cache.
	SessionID string
}

// Sampling parameters; nil means not sent. Extra is merged into the body.
type Sampling struct {
	Temperature *float64       `json:"temperature,omitempty"` // replaces llm.temperature
	TopP        *float64       `json:"top_p,omitempty"`       // replaces llm.top_p
	MaxTokens   *int           `json:"max_tokens,omitempty"`  // replaces llm.max_tokens
	Seed        *int64         `json:"seed,omitempty"`        // random seed of every call
	ToolChoice  string         `json:"tool_choice,omitempty"` // replaces llm.tool_choice
	Extra       map[string]any `json:"extra,omitempty"`       // replaces llm.extra
}

// DefaultMaxTokens is the limit in tokens of an answer if the request sets none. Budgets
// reserve this much, and servers that require a limit get it.
const DefaultMaxTokens = 16384

// Response is the answer to one call.
type Response struct {
	Reply   schemas.Reply
	Request json.RawMessage // bytes as sent, without headers
	Raw     json.RawMessage // bytes as received
	Status  int
}

// Class classifies an error by the reaction that it requires.
type Class string

// Classes of Error.
const (
	ClassAuth        Class = "auth"        // key missing or refused: fatal, exit 4
	ClassNotFound    Class = "not_found"   // unknown model or path: fatal, exit 7
	ClassUnreachable Class = "unreachable" // no connection: retried, then fatal, exit 7
	ClassRateLimit   Class = "rate_limit"  // too many requests or tokens per minute: retried after RetryAfter
	ClassConcurrency Class = "concurrency" // too many calls at once: retried, with fewer parallel calls
	ClassQuota       Class = "quota"       // out of credit: fatal, exit 5
	ClassOverload    Class = "overload"    // the server is overloaded: retried
	ClassServer      Class = "server"      // other 5xx, broken body: retried
	ClassTimeout     Class = "timeout"     // no answer in time: retried
	ClassContext     Class = "context"     // prompt too long: ends the episode as max_context
	ClassRefusal     Class = "refusal"     // a policy of the vendor forbids an answer: ends the episode
	ClassBadRequest  Class = "bad_request" // the request is wrong for this server: fatal, exit 7
)

// Error is a classified failure of one call.
type Error struct {
	Class      Class
	Status     int // HTTP status, 0 if there was none
	RetryAfter time.Duration
	// ContextLimit is the server's context limit in tokens; 0 if it did not report one.
	ContextLimit int64
	// Scripted is true if the script of a mock server has no answer to the request.
	Scripted bool
	Message  string // short, without secrets
	Tries    int    // how often the call was made; 0: once
	Err      error
}

func (e *Error) Error() string {
	tries := ""
	if e.Tries > 1 {
		tries = fmt.Sprintf(", %d tries", e.Tries)
	}
	if e.Status != 0 {
		return fmt.Sprintf("model server answered %d (%s)%s: %s", e.Status, e.Class, tries, e.Message)
	}
	return fmt.Sprintf("model call failed (%s)%s: %s", e.Class, tries, e.Message)
}

func (e *Error) Unwrap() error { return e.Err }

// Retryable reports whether the same call may succeed later.
func (e *Error) Retryable() bool {
	switch e.Class {
	case ClassUnreachable, ClassRateLimit, ClassConcurrency, ClassOverload, ClassServer, ClassTimeout:
		return true
	}
	return false
}

// ClassOf returns the class of err, or "" if it has none.
func ClassOf(err error) Class {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	return ""
}
