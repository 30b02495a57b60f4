// Package mock is a scripted model server: it speaks the OpenAI chat
// completions API and Anthropic's Messages API over real HTTP, answers from a
// script, misbehaves on demand, and checks what it was sent. It shares no code
// with the providers, so a mistake in a provider cannot hide in it.
//
// A request finds its session by X-Session-ID, model or a tag in the system
// prompt, and its turn by counting the assistant messages it carries; arrival
// order means nothing, so any number of workers get the same answers.
package mock

import (
	"fmt"
)

// Script is everything a server will say.
type Script struct {
	// Key that calls must carry as a bearer token; "" takes any.
	Key string `yaml:"key"`
	// Models is what /v1/models lists; empty: the models of the sessions.
	Models   []string  `yaml:"models"`
	Sessions []Session `yaml:"sessions"`
	Limits   Limits    `yaml:"limits"`
	// Faults strike any turn of any session, after those of the turn and the session.
	Faults []Fault `yaml:"faults"`
	Expect *Expect `yaml:"expect"` // of every request
	// Tokenizer toy counts the usage of turns that give none; see Count.
	Tokenizer string `yaml:"tokenizer"`
	// Prices are what the server bills in its totals; a model without one is free.
	Prices []Price `yaml:"prices"`
	// CacheMinimum is how many tokens a prefix must have to enter the prompt cache
	// of the Messages API; vendors take 1024 or more.
	CacheMinimum int64 `yaml:"cache_minimum"`
	// Context is the window in tokens of the toy tokenizer that /v1/models and
	// /tokenize tell; a longer request is refused. 0: none.
	Context int64 `yaml:"context"`
}

// Session answers the requests that match all of its set fields; the first
// match wins, and a session without any takes everything.
type Session struct {
	ID    string `yaml:"session"` // X-Session-ID, or what follows the last @ of the model
	Model string `yaml:"model"`
	Tag   string `yaml:"tag"`  // stands somewhere in the system prompt
	User  string `yaml:"user"` // stands somewhere in the first message of the user
	Turns []Turn `yaml:"turns"`
	// Repeat answers turns beyond the last with the last.
	Repeat bool `yaml:"repeat"`
	// Rewrites is for clients that shorten their history: a turn is found by the
	// answers given so far, and messages may change.
	Rewrites bool    `yaml:"rewrites"`
	Template bool    `yaml:"template"` // of all turns
	Faults   []Fault `yaml:"faults"`   // strike any turn of the session
	Expect   *Expect `yaml:"expect"`   // of each of its requests
	// Refuses are parameters that the model does not take: a request with one of
	// them gets 400.
	Refuses []string `yaml:"refuses"`
}

// Turn is one answer, after the fault if there is one.
type Turn struct {
	Content   *string `yaml:"content"` // nil: null
	Parts     bool    `yaml:"parts"`   // content goes out as an array of text parts
	Reasoning string  `yaml:"reasoning"`
	// ReasoningField is the name it goes out under; default reasoning_content.
	ReasoningField string `yaml:"reasoning_field"`
	// Redacted is reasoning the server sends encrypted (Messages API).
	Redacted     string `yaml:"redacted"`
	ToolCalls    []Call `yaml:"tool_calls"`
	FinishReason string `yaml:"finish_reason"` // default by content
	Usage        *Usage `yaml:"usage"`
	// UsageAs is how it is told: numbers (default), "null", or absent. What is
	// not told is still in the server's account.
	UsageAs string `yaml:"usage_as"`
	// CacheLost has the server forget its prompt cache before this turn.
	CacheLost bool `yaml:"cache_lost"`

	Message  map[string]any `yaml:"message"`  // further fields of the message
	Template bool           `yaml:"template"` // the texts are templates over the request
	Fault    *Fault         `yaml:"fault"`
	Faults   []Fault        `yaml:"faults"` // one after the other, each its times
	Expect   *Expect        `yaml:"expect"` // of the request for this turn
}

// check returns the first thing wrong with a script and the path of keys and
// indices to where it stands.
func (s Script) check() (at []any, err error) {
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
	if at, err := checkShared(s.Faults, s.Expect); err != nil {
		return at, err
	}
	for i, session := range s.Sessions {
		here := []any{"sessions", i}
		if at, err := checkShared(session.Faults, session.Expect); err != nil {
			return append(here, at...), err
		}
		for j, t := range session.Turns {
			if at, err := t.check(t.Template || session.Template); err != nil {
				return append(append(here, "turns", j), at...), err
			}
		}
	}
	return nil, nil
}

func (t Turn) check(template bool) (at []any, err error) {
	if at, err := checkShared(t.Faults, t.Expect); err != nil {
		return at, err
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
		_, err := t.worded(func(text string) (string, error) {
			_, err := parseTemplate(text)
			return text, err
		})
		if err != nil {
			return nil, fmt.Errorf("template: %w", err)
		}
	}
	return nil, nil
}

func checkShared(faults []Fault, expect *Expect) (at []any, err error) {
	for i, f := range faults {
		if err := f.check(); err != nil {
			return []any{"faults", i}, err
		}
	}
	return []any{"expect"}, expect.check()
}

// Text is a turn of plain text.
func Text(content string) Turn { return Turn{Content: &content} }

// Tool is a turn of one tool call.
func Tool(name string, arguments map[string]any) Turn {
	return Turn{ToolCalls: []Call{{Name: name, Arguments: arguments}}}
}
