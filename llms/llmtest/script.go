// Package llmtest is a scripted model server: it speaks the OpenAI chat
// completions API and Anthropic's Messages API over real HTTP, answers from a script, misbehaves on demand,
// and checks what it was sent. It shares no code with the providers, so
// a mistake in a provider cannot hide in it.
//
// A request finds its session by X-Session-ID, model or a tag in the system
// prompt, and its turn by counting the assistant messages it carries; arrival
// order means nothing, so any number of workers get the same answers.
package llmtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"go.yaml.in/yaml/v3"
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
}

// Session answers the requests that match all of its set fields; the first
// match wins, and a session without any takes everything.
type Session struct {
	ID    string `yaml:"session"` // X-Session-ID
	Model string `yaml:"model"`
	Tag   string `yaml:"tag"` // stands somewhere in the system prompt
	Turns []Turn `yaml:"turns"`
	// Repeat answers turns beyond the last with the last.
	Repeat bool    `yaml:"repeat"`
	Faults []Fault `yaml:"faults"` // strike any turn of the session
}

// Turn is one answer, after the fault if there is one.
type Turn struct {
	Content   *string `yaml:"content"` // nil: null
	Parts     bool    `yaml:"parts"`   // content goes out as an array of text parts
	Reasoning string  `yaml:"reasoning"`
	// ReasoningField is the name it goes out under; default reasoning_content.
	ReasoningField string `yaml:"reasoning_field"`
	// Redacted is reasoning the server sends encrypted (Messages API).
	Redacted     string         `yaml:"redacted"`
	ToolCalls    []Call         `yaml:"tool_calls"`
	FinishReason string         `yaml:"finish_reason"` // default by content
	Usage        *Usage         `yaml:"usage"`
	Message      map[string]any `yaml:"message"` // further fields of the message
	Fault        *Fault         `yaml:"fault"`
	Faults       []Fault        `yaml:"faults"` // one after the other, each its times
}

// Call is one tool call. Exactly one of Arguments (sent as a JSON string, the
// norm), Raw (sent as a string as it stands) and Object (sent as an object in
// the string's place) is used.
type Call struct {
	ID        *string        `yaml:"id"` // nil: one is made up; "" is sent as missing
	Name      string         `yaml:"name"`
	Arguments map[string]any `yaml:"arguments"`
	Raw       *string        `yaml:"raw"`
	Object    map[string]any `yaml:"object"`
	Extra     map[string]any `yaml:"extra"` // further fields of the call
}

// Usage of one answer.
type Usage struct {
	Prompt     int64 `yaml:"prompt"`
	Completion int64 `yaml:"completion"`
	Cached     int64 `yaml:"cached"`
	CacheWrite int64 `yaml:"cache_write"`
	Reasoning  int64 `yaml:"reasoning"`
}

// Parse reads a script from YAML, strictly.
func Parse(text []byte) (Script, error) {
	var s Script
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&s); err != nil && !errors.Is(err, io.EOF) {
		return Script{}, fmt.Errorf("reading model script: %w", err)
	}
	for _, f := range s.Faults {
		if err := f.check(); err != nil {
			return Script{}, fmt.Errorf("model script: %w", err)
		}
	}
	for i, session := range s.Sessions {
		for _, f := range session.Faults {
			if err := f.check(); err != nil {
				return Script{}, fmt.Errorf("model script: session %d: %w", i, err)
			}
		}
		for j, t := range session.Turns {
			faults := slices.Clone(t.Faults)
			if t.Fault != nil {
				faults = append(faults, *t.Fault)
			}
			for _, f := range faults {
				if err := f.check(); err != nil {
					return Script{}, fmt.Errorf("model script: session %d, turn %d: %w", i, j, err)
				}
			}
			for _, c := range t.ToolCalls {
				if c.Name == "" {
					return Script{}, fmt.Errorf("model script: session %d, turn %d: a tool call has no name", i, j)
				}
			}
		}
	}
	return s, nil
}

// Text is a turn of plain text.
func Text(content string) Turn { return Turn{Content: &content} }

// Tool is a turn of one tool call.
func Tool(name string, arguments map[string]any) Turn {
	return Turn{ToolCalls: []Call{{Name: name, Arguments: arguments}}}
}
