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

// toolsOf returns all tools that the model saw in the given turns. The list of tools may grow
// and shrink within a conversation, so toolsOf starts with the longest list and adds tools
// that only other lists contain. It returns an empty list if calls are part of the text,
// because the text then also describes the tools.
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
			if !slices.ContainsFunc(out, func(old tool) bool { return old.Function.Name == x.Name }) {
				out = append(out, tool{"function", x})
			}
		}
	}
	return out
}

// toolsValue returns the tools in the form that the options choose: a list or JSON text.
func toolsValue(tools []tool, o sinks.ViewOptions) (any, error) {
	if o.Tools != sinks.ToolsJSON {
		return tools, nil
	}
	return jsonText(tools)
}

func jsonText(v any) (string, error) {
	raw, err := schemas.OrderedJSON(v)
	return string(raw), err
}

// placeReasoning moves the reasoning of replies to the place that the options choose.
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

// argumentsValue returns the arguments of a call: an object or its JSON text.
func (c call) argumentsValue(o sinks.ViewOptions) any {
	if o.Arguments == sinks.ArgumentsString {
		return string(c.Function.Arguments)
	}
	return c.Function.Arguments
}

// texts returns the texts of messages and tools that a model reads.
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

// replies returns the texts of the replies for whose turns pick returns true.
func replies(list []message, pick func(turn int) bool) []string {
	return texts(slices.DeleteFunc(slices.Clone(list), func(m message) bool { return m.Role != "assistant" || !pick(m.turn) }), nil)
}

// lintMessages counts, in notes, properties of messages on which a trainer or its template may fail.
func lintMessages(list []message, notes sinks.Notes) {
	if !slices.ContainsFunc(list, func(m message) bool { return m.Role == "user" }) {
		notes["rows_without_user"]++
	}
	open := map[string]bool{} // ids of calls without an answer so far
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

// hasNull reports whether a JSON value contains a null.
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

// messageColumns is a message in Parquet. Arguments are JSON text, because as structs the
// arguments of each call would get the keys of all other calls.
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

// columnsOf returns messages for Parquet. It sets the column train unless train is nil.
func columnsOf(list []message, train map[int]bool) []messageColumns {
	out := make([]messageColumns, len(list))
	for i, m := range list {
		out[i] = messageColumns{Role: m.Role, Content: m.Content, Reasoning: nilIfEmpty(m.Reasoning), ToolCallID: nilIfEmpty(m.ToolCallID)}
		for _, c := range m.ToolCalls {
			out[i].ToolCalls = append(out[i].ToolCalls, callColumns{c.ID, c.Type, functionColumns{c.Function.Name, string(c.Function.Arguments)}})
		}
		if train != nil {
			out[i].Train = new(train[m.turn])
		}
	}
	return out
}

func nilIfEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
