package views

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// tool is a tool definition in the format of OpenAI.
type tool struct {
	Type     string             `json:"type"` // function
	Function schemas.ToolSchema `json:"function"`
}

// toolsOf returns the tools that turns were shown. Lists grow and shrink within a
// conversation, so it starts with the longest and adds tools that only others have. It
// returns none if calls are part of the text, because then the tools are as well.
func toolsOf(t sinks.Trajectory, shown []turn) []tool {
	out := []tool{}
	if callsInText(t) {
		return out
	}
	var lists [][]schemas.ToolSchema
	for _, turn := range shown {
		lists = append(lists, t.ToolsAt(turn.row))
	}
	slices.SortStableFunc(lists, func(a, b []schemas.ToolSchema) int { return len(b) - len(a) })
	for _, list := range lists {
		for _, x := range list {
			if !slices.ContainsFunc(out, func(has tool) bool { return has.Function.Name == x.Name }) {
				out = append(out, tool{"function", x})
			}
		}
	}
	return out
}

// toolsValue returns the tools as the options want them.
func toolsValue(tools []tool, o sinks.ViewOptions) (any, error) {
	if o.Tools != sinks.ToolsJSON {
		return tools, nil
	}
	return jsonText(tools)
}

// jsonText returns v as canonical JSON.
func jsonText(v any) (string, error) {
	raw, err := schemas.CanonicalJSON(v)
	return string(raw), err
}

// placeReasoning moves the reasoning of replies to where the options want it.
func placeReasoning(list []message, o sinks.ViewOptions) []message {
	out := slices.Clone(list)
	for i := range out {
		if o.Thinking == sinks.ThinkingInline && out[i].Reasoning != "" {
			out[i].Content = "<think>\n" + out[i].Reasoning + "\n</think>\n\n" + out[i].Content
		}
		if o.Thinking != sinks.ThinkingField {
			out[i].Reasoning = ""
		}
	}
	return out
}

// argumentsValue returns the arguments of a call: an object, or its text.
func (c call) argumentsValue(o sinks.ViewOptions) any {
	if o.Arguments == sinks.ArgumentsString {
		return string(c.Function.Arguments)
	}
	return c.Function.Arguments
}

// texts returns what a model reads of messages and tools.
func texts(list []message, tools []tool) []string {
	var out []string
	for _, m := range list {
		out = append(out, m.Reasoning, m.Content)
		for _, c := range m.ToolCalls {
			out = append(out, c.Function.Name, string(c.Function.Arguments))
		}
	}
	for _, x := range tools {
		out = append(out, x.Function.Name, x.Function.Description, string(x.Function.Parameters))
	}
	return slices.DeleteFunc(out, func(s string) bool { return s == "" })
}

// replies returns the texts of the replies whose turns pick accepts.
func replies(list []message, pick func(turn int) bool) []string {
	return texts(slices.DeleteFunc(slices.Clone(list), func(m message) bool { return m.Role != "assistant" || !pick(m.turn) }), nil)
}

// lintMessages notes properties of messages on which a trainer or its template may fail.
func lintMessages(list []message, notes sinks.Notes) {
	if !slices.ContainsFunc(list, func(m message) bool { return m.Role == "user" }) {
		notes["rows_without_user"]++
	}
	open := map[string]bool{}
	for i, m := range list {
		switch m.Role {
		case "system":
			if i > 0 {
				notes["system_not_first"]++
			}
		case "assistant":
			if i > 0 && list[i-1].Role == "assistant" {
				notes["replies_in_a_row"]++
			}
			if m.Content == "" && len(m.ToolCalls) == 0 {
				notes["empty_replies"]++
			}
			notes.Add(sinks.Notes{"calls_without_answer": len(open)})
			clear(open)
		case "tool":
			if !open[m.ToolCallID] {
				notes["answers_without_call"]++
			}
			delete(open, m.ToolCallID)
		}
		for _, c := range m.ToolCalls {
			open[c.ID] = true
			if hasNull(c.Function.Arguments) {
				notes["null_arguments"]++
			}
		}
	}
	if notes["calls_without_answer"] == 0 {
		delete(notes, "calls_without_answer")
	}
}

func hasNull(raw json.RawMessage) bool {
	dec := json.NewDecoder(bytes.NewReader(raw))
	for {
		tok, err := dec.Token()
		if err != nil {
			return false
		}
		if tok == nil {
			return true
		}
	}
}

// messageColumns is a message in Parquet. Arguments are JSON text, because structs of
// different calls would take each other's keys.
type messageColumns struct {
	Role       string        `parquet:"role"`
	Content    string        `parquet:"content"`
	Reasoning  *string       `parquet:"reasoning_content,optional"`
	ToolCalls  []callColumns `parquet:"tool_calls,list"`
	ToolCallID *string       `parquet:"tool_call_id,optional"`
	Train      *bool         `parquet:"train,optional"`
}

type callColumns struct {
	ID       string          `parquet:"id"`
	Type     string          `parquet:"type"`
	Function functionColumns `parquet:"function"`
}

type functionColumns struct {
	Name      string `parquet:"name"`
	Arguments string `parquet:"arguments"`
}

// columnsOf returns messages for Parquet, with a column train unless train is nil.
func columnsOf(list []message, train map[int]bool) []messageColumns {
	out := make([]messageColumns, len(list))
	for i, m := range list {
		out[i] = messageColumns{Role: m.Role, Content: m.Content, Reasoning: text(m.Reasoning), ToolCallID: text(m.ToolCallID)}
		for _, c := range m.ToolCalls {
			out[i].ToolCalls = append(out[i].ToolCalls, callColumns{c.ID, c.Type, functionColumns{c.Function.Name, string(c.Function.Arguments)}})
		}
		if train != nil {
			out[i].Train = new(train[m.turn])
		}
	}
	return out
}

// text returns nil for "".
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
