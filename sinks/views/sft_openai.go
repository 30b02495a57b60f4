package views

import (
	"slices"

	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/sinks"
)

func init() {
	sinks.Views.Register(plugin.Spec[sinks.View, sinks.ViewOptions]{
		Kind: "sft-openai", Summary: "chat fine-tuning JSON lines of OpenAI and Together: string arguments, weight",
		New: func(_ any, o sinks.ViewOptions) (sinks.View, error) {
			o, err := abilities{mask: anyMask, arguments: []string{sinks.ArgumentsString}, thinking: dropOrInline, tools: []string{sinks.ToolsList}, content: emptyFirst}.check(o)
			return sftOpenAI{o}, err
		},
	})
}

// sftOpenAI renders messages, tools and parallel_tool_calls and no other key,
// since servers refuse them: where a row comes from stands beside the output. It has no rows in which a call has no answer, for which they
// refuse the whole file. Replies that are not trained on have weight 0.
// Source: OpenAI's guide to supervised fine-tuning.
type sftOpenAI struct{ opts sinks.ViewOptions }

type sftOpenAIRow struct {
	Messages []any  `json:"messages"`
	Tools    []tool `json:"tools,omitempty"`
	Parallel *bool  `json:"parallel_tool_calls,omitempty"`
}

func (sftOpenAI) Container() string { return sinks.JSONL }

func (v sftOpenAI) Render(t sinks.Trajectory) ([]sinks.Row, sinks.Notes, error) {
	open := 0
	rows, notes, err := eachStretch(t, v.opts, func(c *conversation, s stretch, list []message, tools []tool) (sinks.Row, error) {
		if !answered(list) {
			open++
			return sinks.Row{}, nil
		}
		row := sftOpenAIRow{Tools: tools}
		for _, m := range list {
			w := m.wire(v.opts)
			if m.Role == "assistant" {
				w.Weight = new(0)
				if s.train[m.turn] {
					w.Weight = new(1)
				}
			}
			row.Messages = append(row.Messages, w)
		}
		if len(tools) > 0 {
			row.Parallel = new(slices.ContainsFunc(list, func(m message) bool { return len(m.ToolCalls) > 1 }))
		}
		return sinks.Row{Value: row, Origin: originOf(t)}, nil
	})
	if open > 0 {
		notes["rows_dropped_unanswered"] += open
	}
	return made(rows), notes, err
}

// answered tells whether every call that a message follows has its answer.
func answered(list []message) bool {
	notes := sinks.Notes{}
	lintMessages(list, notes)
	return notes["calls_without_answer"] == 0
}

// made are the rows that were not left out.
func made(rows []sinks.Row) []sinks.Row {
	return slices.DeleteFunc(rows, func(r sinks.Row) bool { return r.Value == nil })
}

// eachStretch renders every stretch of an episode; make gets its messages, with
// thoughts where the options want them, and its tools. It may fill in what the row
// trains on; otherwise that is the stretch's own choice.
func eachStretch(t sinks.Trajectory, o sinks.ViewOptions, make func(*conversation, stretch, []message, []tool) (sinks.Row, error)) ([]sinks.Row, sinks.Notes, error) {
	return someStretches(t, o, func(*conversation) {}, make)
}

// someStretches is eachStretch of conversations that prepare has marked.
func someStretches(
	t sinks.Trajectory, o sinks.ViewOptions, prepare func(*conversation), make func(*conversation, stretch, []message, []tool) (sinks.Row, error),
) ([]sinks.Row, sinks.Notes, error) {
	notes := sinks.Notes{}
	conversations, err := converse(t, o, notes)
	if err != nil {
		return nil, notes, err
	}
	var rows []sinks.Row
	for _, c := range conversations {
		prepare(c)
		for _, s := range stretches(c, o, notes) {
			prompt, completion := c.messages(s.target)
			list := think(slices.Concat(prompt, completion), o)
			lintMessages(list, notes)
			tools := toolsOf(t, c.turns[:s.to])
			row, err := make(c, s, list, tools)
			if err != nil {
				return nil, notes, err
			}
			row.Texts = texts(list, tools)
			if row.Trained == nil {
				c.loss(&row, list, o, func(i int) bool { return s.train[i] })
			}
			rows = append(rows, row)
		}
	}
	return rows, notes, nil
}
