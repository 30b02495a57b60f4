package views

import (
	"bytes"
	"time"

	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

func init() {
	sinks.Views.Register(plugin.Spec[sinks.View, sinks.ViewOptions]{
		Kind: "hf-sts", Summary: "Session Trace Simple Format of the Hugging Face Hub, one file per episode",
		New: func(_ any, o sinks.ViewOptions) (sinks.View, error) {
			o, err := supportedOptions{mask: recordMasks}.check(o)
			return hfSTS{o}, err
		},
	})
}

// hfSTS writes a line for the session and a line for each message, for the trace viewer of
// the Hub. Source: session-traces-format.md of huggingface/hub-docs.
type hfSTS struct{ opts sinks.ViewOptions }

type stsSession struct {
	Type    string `json:"type"` // session
	Harness string `json:"harness"`
	ID      string `json:"id"`
	Name    string `json:"name"`
	// The format lets the session line carry further keys.
	EpisodeID string `json:"episode_id"`
	Split     string `json:"split"`
}

type stsLine struct {
	Type    string     `json:"type"` // message
	Message stsMessage `json:"message"`
}

type stsMessage struct {
	Role       string    `json:"role"`
	Content    string    `json:"content"`
	Reasoning  string    `json:"reasoningContent,omitempty"`
	ToolCalls  []stsCall `json:"toolCalls,omitempty"`
	ToolCallID string    `json:"toolCallId,omitempty"`
	Timestamp  int64     `json:"timestamp,omitempty"` // milliseconds
	Model      string    `json:"model,omitempty"`
}

type stsCall struct {
	ID       string       `json:"id"`
	Function wireFunction `json:"function"`
}

func (hfSTS) Container() string { return sinks.Dir }

func (v hfSTS) Render(t sinks.Trajectory) ([]sinks.Row, sinks.Notes, error) {
	return recordRows(t, v.opts, func(c *conversation, notes sinks.Notes) (sinks.Row, error) {
		id, name := t.Episode.EpisodeID, t.Episode.InstanceID
		suffix := ".jsonl"
		if c.phase != "" {
			id, name, suffix = id+"-"+c.phase, name+" "+c.phase, "-"+safeName(c.phase)+suffix
		}
		list := c.allMessages()
		lintMessages(list, notes)
		body, err := stsLines(stsSession{"session", t.Episode.Harness, id, name, t.Episode.EpisodeID, t.Episode.Split}, c, list)
		return sinks.Row{File: fileOf(t, suffix), Body: body, Texts: texts(list, nil)}, err
	})
}

func stsLines(head stsSession, c *conversation, list []message) ([]byte, error) {
	var out bytes.Buffer
	add := func(v any) error {
		line, err := schemas.CanonicalJSON(v)
		out.Write(append(line, '\n'))
		return err
	}
	if err := add(head); err != nil {
		return nil, err
	}
	for _, m := range list {
		s := stsMessage{Role: m.Role, Content: m.Content, Reasoning: m.Reasoning, ToolCallID: m.ToolCallID}
		for _, call := range m.ToolCalls {
			s.ToolCalls = append(s.ToolCalls, stsCall{call.ID, wireFunction{call.Function.Name, string(call.Function.Arguments)}})
		}
		if m.Role == "assistant" {
			row := c.turns[m.turn].row
			s.Model, s.Timestamp = schemas.Value(row.Model), millis(row.TS)
		}
		if err := add(stsLine{"message", s}); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

func millis(t *time.Time) int64 {
	if t == nil {
		return 0
	}
	return t.UnixMilli()
}
