// Package mock is a scripted model server. It speaks the OpenAI chat completions
// API and Anthropic's Messages API over real HTTP, answers from a script, fails on
// demand, and checks the requests. It shares no code with the providers, so it does
// not repeat their mistakes.
//
// X-Session-ID, the model, or a tag in the system prompt decides which session
// answers a request, and the number of assistant messages in the request decides
// which turn. The order of arrival does not matter, so any number of workers get
// the same answers. Streaming and the Responses API are not supported.
package mock

import "fmt"

// Script determines the answers of a server.
type Script struct {
	// Key is the bearer token that requests must carry; "" accepts any.
	Key string `yaml:"key"`
	// Models are listed by /v1/models; empty: the models of the sessions.
	Models   []string  `yaml:"models"`
	Sessions []Session `yaml:"sessions"`
	Limits   Limits    `yaml:"limits"`
	// Faults apply to all turns of all sessions. Faults of the turn and of the session come first.
	Faults []Fault `yaml:"faults"`
	Expect *Expect `yaml:"expect"` // applies to every request
	// Tokenizer, if it is "toy", computes the usage of turns that have none; see Count.
	Tokenizer string `yaml:"tokenizer"`
	// Prices are the prices with which the server computes its totals. A model without a price
	// is free.
	Prices []Price `yaml:"prices"`
	// CacheMinimum is the minimum length in tokens of a prefix in the prompt cache of the
	// Messages API. Vendors require 1024 or more.
	CacheMinimum int64 `yaml:"cache_minimum"`
	// Context is the context window in tokens of the toy tokenizer. /v1/models and
	// /tokenize report it, and a longer request is refused. 0: none.
	Context int64 `yaml:"context"`
}

// Session answers the requests that match all of ID, Model, Tag and User that are
// set. The first session that matches wins.
type Session struct {
	ID    string `yaml:"session"` // X-Session-ID, or the part of the model's name after the last @
	Model string `yaml:"model"`
	Tag   string `yaml:"tag"`  // part of the system prompt
	User  string `yaml:"user"` // part of the user's first message
	Turns []Turn `yaml:"turns"`
	// Repeat makes the last turn answer all later requests.
	Repeat bool `yaml:"repeat"`
	// Rewrites allows clients to change and shorten their history: the number of answers given
	// so far decides the turn.
	Rewrites bool    `yaml:"rewrites"`
	Template bool    `yaml:"template"` // sets Turn.Template of all turns
	Faults   []Fault `yaml:"faults"`   // apply to all turns of the session
	Expect   *Expect `yaml:"expect"`   // applies to each of its requests
	// Refuses are parameters that the model does not accept: a request with one of
	// them gets 400.
	Refuses []string `yaml:"refuses"`
}

// Turn is one answer, and the faults that requests for it get.
type Turn struct {
	Content   *string `yaml:"content"` // nil: null
	Parts     bool    `yaml:"parts"`   // send content as a list of text parts
	Reasoning string  `yaml:"reasoning"`
	// ReasoningField is the name of Reasoning in the answer; default reasoning_content.
	ReasoningField string `yaml:"reasoning_field"`
	// Redacted is encrypted reasoning (Messages API).
	Redacted     string `yaml:"redacted"`
	ToolCalls    []Call `yaml:"tool_calls"`
	FinishReason string `yaml:"finish_reason"` // default: stop or tool_calls
	Usage        *Usage `yaml:"usage"`
	// UsageAs is the form in which Usage is sent: "" (numbers), "null" or "absent". The totals of
	// the server always include the usage.
	UsageAs string `yaml:"usage_as"`
	// CacheLost makes the server clear its prompt cache before this turn.
	CacheLost bool `yaml:"cache_lost"`

	Message  map[string]any `yaml:"message"`  // further fields of the message
	Template bool           `yaml:"template"` // the texts are templates over the request
	Fault    *Fault         `yaml:"fault"`
	Faults   []Fault        `yaml:"faults"` // one after the other, each as often as its Times
	Expect   *Expect        `yaml:"expect"` // applies to the requests for this turn
}

// check returns the first mistake in a script, and its path of keys and indices.
func (s Script) check() (path []any, err error) {
	if s.Tokenizer != "" && s.Tokenizer != "toy" {
		return []any{"tokenizer"}, fmt.Errorf("unknown tokenizer %q: the only one is toy", s.Tokenizer)
	}
	if s.Context < 0 {
		return []any{"context"}, fmt.Errorf("context cannot be negative")
	}
	for i, p := range s.Prices {
		if err := p.check(); err != nil {
			return []any{"prices", i}, err
		}
	}
	if path, err := checkShared(s.Faults, s.Expect); err != nil {
		return path, err
	}
	for i, session := range s.Sessions {
		here := []any{"sessions", i}
		if path, err := checkShared(session.Faults, session.Expect); err != nil {
			return append(here, path...), err
		}
		for j, t := range session.Turns {
			if path, err := t.check(t.Template || session.Template); err != nil {
				return append(append(here, "turns", j), path...), err
			}
		}
	}
	return nil, nil
}

func (t Turn) check(template bool) (path []any, err error) {
	if path, err := checkShared(t.Faults, t.Expect); err != nil {
		return path, err
	}
	if t.Fault != nil {
		if err := t.Fault.check(); err != nil {
			return []any{"fault"}, err
		}
	}
	if t.UsageAs != "" && t.UsageAs != "null" && t.UsageAs != "absent" {
		return []any{"usage_as"}, fmt.Errorf("unknown form of usage %q: choose null or absent", t.UsageAs)
	}
	if u := t.Usage; u != nil {
		if min(u.Prompt, u.Completion, u.Cached, u.CacheWrite, u.CacheWrite1h, u.Reasoning, u.Audio) < 0 || u.Cost < 0 {
			return []any{"usage"}, fmt.Errorf("usage cannot be negative")
		}
		if u.CacheWrite1h > u.CacheWrite {
			return []any{"usage"}, fmt.Errorf("cache_write_1h is part of cache_write and cannot be larger")
		}
	}
	for k, c := range t.ToolCalls {
		if err := c.check(); err != nil {
			return []any{"tool_calls", k}, err
		}
	}
	if template {
		_, err := t.expand(func(text string) (string, error) {
			_, err := parseTemplate(text)
			return text, err
		})
		if err != nil {
			return nil, fmt.Errorf("template: %w", err)
		}
	}
	return nil, nil
}

func checkShared(faults []Fault, expect *Expect) (path []any, err error) {
	for i, f := range faults {
		if err := f.check(); err != nil {
			return []any{"faults", i}, err
		}
	}
	return []any{"expect"}, expect.check()
}
