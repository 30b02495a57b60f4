package views

import (
	"slices"

	"github.com/tracesmith/tracesmith/sinks"
)

// sftOpenAIRow does not contain the origin of a row, because the servers reject keys that
// they do not know. Exports write the origin to a file next to the output.
// Source: OpenAI's guide to supervised fine-tuning.
type sftOpenAIRow struct {
	Messages []wireMessage `json:"messages"`
	Tools    []tool        `json:"tools,omitempty"`
	Parallel *bool         `json:"parallel_tool_calls,omitempty"`
}

// openAIRow drops rows in which a call has no answer, because one of them makes the servers
// reject the whole file.
func openAIRow(v *renderer, x example) (sinks.Row, error) {
	if !allAnswered(x.messages) {
		x.notes["rows_dropped_unanswered"]++
		return sinks.Row{}, nil
	}
	row := sftOpenAIRow{Messages: v.wire(x, x.messages), Tools: x.tools}
	if len(x.tools) > 0 {
		row.Parallel = new(slices.ContainsFunc(x.messages, func(m message) bool { return len(m.ToolCalls) > 1 }))
	}
	return sinks.Row{Value: row, Origin: originOf(x.trajectory.Episode)}, nil
}

// allAnswered reports whether every call has an answer, except those of the last message.
func allAnswered(list []message) bool {
	notes := sinks.Notes{}
	lintMessages(list, notes)
	return notes["calls_without_answer"] == 0
}
