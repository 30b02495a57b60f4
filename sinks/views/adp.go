package views

import (
	"encoding/json"
	"fmt"

	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/sinks"
)

func init() {
	sinks.Views.Register(plugin.Spec[sinks.View, sinks.ViewOptions]{
		Kind: "adp", Summary: "Agent Data Protocol: actions and observations in turns",
		New: func(_ any, o sinks.ViewOptions) (sinks.View, error) {
			o, err := supportedOptions{mask: recordMasks}.check(o)
			return adp{o}, err
		},
	})
}

// adpVersion is the schema version of the protocol that rows follow.
const adpVersion = "1.2.0"

// adp writes each call as an api_action with an id that is unique in the row, followed by
// its observation. For a call without an answer the observation is empty, because the
// protocol requires one. Source: schema/*.py of neulab/agent-data-protocol.
type adp struct{ opts sinks.ViewOptions }

type adpRow struct {
	SchemaVersion string         `json:"schema_version"`
	ID            string         `json:"id"`
	Content       []any          `json:"content"`
	Tools         []string       `json:"available_custom_tools,omitempty"`
	Details       map[string]any `json:"details"`
}

type adpItem struct {
	Class       string          `json:"class_"`
	Function    string          `json:"function,omitempty"`
	Kwargs      json.RawMessage `json:"kwargs,omitempty"`
	Content     *string         `json:"content,omitempty"`
	Source      string          `json:"source,omitempty"`
	Description string          `json:"description,omitempty"`
	Reasoning   string          `json:"reasoning_content,omitempty"`
	CallID      string          `json:"tool_call_id,omitempty"`
}

func (adp) Container() string { return sinks.JSONL }

func (v adp) Render(t sinks.Trajectory) ([]sinks.Row, sinks.Notes, error) {
	return recordRows(t, v.opts, func(c *conversation, notes sinks.Notes) (sinks.Row, error) {
		row := adpRow{SchemaVersion: adpVersion, ID: t.Episode.EpisodeID, Details: outcomeOf(t, v.opts)}
		if c.phase != "" {
			row.ID += "-" + c.phase
		}
		for _, x := range toolsOf(t, c.turns) {
			row.Tools = append(row.Tools, x.Function.Name)
		}
		for _, l := range c.before {
			row.Content = append(row.Content, textObservation(l.Role, l.Content, ""))
		}
		for i, x := range c.turns {
			row.Content = append(row.Content, adpTurn(i, x, notes)...)
		}
		return sinks.Row{Value: row, Texts: texts(c.allMessages(), nil)}, nil
	})
}

// textObservation returns a message as an observation, whose source is system or user.
func textObservation(role, content, call string) adpItem {
	if role != "system" {
		role = "user"
	}
	return adpItem{Class: "text_observation", Content: &content, Source: role, CallID: call}
}

func adpTurn(i int, x turn, notes sinks.Notes) []any {
	if len(x.reply.ToolCalls) == 0 {
		out := []any{adpItem{Class: "message_action", Content: &x.reply.Content, Reasoning: x.reply.Reasoning}}
		for _, a := range x.answers {
			out = append(out, textObservation(a.Role, a.Content, ""))
		}
		return out
	}
	answers := x.answersByCall()
	var out []any
	for j, c := range x.reply.ToolCalls {
		item := adpItem{Class: "api_action", Function: c.Function.Name, Kwargs: c.Function.Arguments, CallID: fmt.Sprintf("call_%d_%d", i, j)}
		if j == 0 {
			item.Description, item.Reasoning = x.reply.Content, x.reply.Reasoning
		}
		answer, ok := answers[c.ID]
		if !ok {
			notes["calls_without_answer"]++
		}
		out = append(out, item, textObservation("user", answer, item.CallID))
	}
	return out
}
