package views

import (
	"slices"

	"github.com/tracesmith/tracesmith/sinks"
)

// sftOpenAIRow has no key for the origin of a row, because the servers refuse keys that
// they do not know. Exports write the origin to a file beside the output.
// Source: OpenAI's guide to supervised fine-tuning.
type sftOpenAIRow struct {
	Messages []wireMessage `json:"messages"`
	Tools    []tool        `json:"tools,omitempty"`
	Parallel *bool         `json:"parallel_tool_calls,omitempty"`
}

// openAIRow drops rows in which a call has no answer: the servers refuse the whole file
// for one of them.
func openAIRow(v *renderer, x example) (sinks.Row, error) {
	if !answered(x.messages) {
		x.notes["rows_dropped_unanswered"]++
		return sinks.Row{}, nil
	}
	row := sftOpenAIRow{Messages: v.wire(x, x.messages), Tools: x.tools}
	if len(x.tools) > 0 {
		row.Parallel = new(slices.ContainsFunc(x.messages, func(m message) bool { return len(m.ToolCalls) > 1 }))
	}
	return sinks.Row{Value: row, Origin: originOf(x.trajectory.Episode)}, nil
}

// answered reports whether every call has an answer, except those of the last message.
func answered(list []message) bool {
	notes := sinks.Notes{}
	lintMessages(list, notes)
	return notes["calls_without_answer"] == 0
}
