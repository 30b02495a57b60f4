package views

import (
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

func init() {
	sinks.Views.Register(plugin.Spec[sinks.View, sinks.ViewOptions]{
		Kind: "sft-sharegpt", Summary: "ShareGPT conversations for LLaMA-Factory, with the entry for dataset_info.json",
		New: func(_ any, o sinks.ViewOptions) (sinks.View, error) {
			o, err := abilities{mask: append(slices.Clone(wholeMasks), sinks.MaskSplitRows), thinking: inlineOrDrop, tools: []string{sinks.ToolsJSON}}.check(o)
			return sftShareGPT{o}, err
		},
	})
}

// sftShareGPT renders what LLaMA-Factory's sharegpt converter takes: human or
// observation and gpt or function_call take turns, in an even number. Calls made
// at once come one after the other, each with its own answer; what a reply says
// beside a call stands in front of it as a thought. Every reply is trained on, or
// with split-rows the last one (mask_history: true). Source: converter.py and
// formatter.py of LLaMA-Factory.
type sftShareGPT struct{ opts sinks.ViewOptions }

type sftShareGPTRow struct {
	Conversations []said `json:"conversations" parquet:"conversations,list"`
	System        string `json:"system" parquet:"system"`
	Tools         string `json:"tools" parquet:"tools"` // JSON text, "" if there are none
	origin               // LLaMA-Factory drops columns that dataset_info.json does not name
}

type sftShareGPTColumns struct {
	Conversations []said `parquet:"conversations,list"`
	System        string `parquet:"system"`
	Tools         string `parquet:"tools"`
	originColumns
}

type said struct {
	From  string `json:"from" parquet:"from"`
	Value string `json:"value" parquet:"value"`
}

func (sftShareGPT) Container() string { return sinks.JSONL }

// Sidecar is the entry that LLaMA-Factory looks up in dataset_info.json.
func (sftShareGPT) Sidecar(name string) (string, []byte, error) {
	entry := map[string]any{"tracesmith": map[string]any{
		"file_name": name, "formatting": "sharegpt",
		"columns": map[string]string{"messages": "conversations", "system": "system", "tools": "tools"},
		"tags": map[string]string{
			"role_tag": "from", "content_tag": "value", "user_tag": "human", "assistant_tag": "gpt",
			"function_tag": "function_call", "observation_tag": "observation",
		},
	}}
	body, err := schemas.CanonicalJSON(entry)
	return ".dataset_info.json", append(body, '\n'), err
}

func (v sftShareGPT) Render(t sinks.Trajectory) ([]sinks.Row, sinks.Notes, error) {
	odd := 0
	rows, notes, err := eachStretch(t, v.opts, func(c *conversation, s stretch, list []message, tools []tool) (sinks.Row, error) {
		prompt, completion := c.render(s.target, true)
		row, err := v.row(c.folded(think(append(prompt, completion...), v.opts), v.opts))
		if err != nil || !row.alternates() {
			odd++
			return sinks.Row{}, err
		}
		if len(tools) > 0 {
			var list []schemas.ToolSchema
			for _, x := range tools {
				list = append(list, x.Function)
			}
			if row.Tools, err = jsonText(list); err != nil {
				return sinks.Row{}, err
			}
		}
		row.origin = originOf(t)
		out := sinks.Row{Value: row, Columns: sftShareGPTColumns{row.Conversations, row.System, row.Tools, originColumns(row.origin)}}
		if v.opts.Mask != sinks.MaskSplitRows {
			c.loss(&out, list, v.opts, c.everyReply(v.opts))
		}
		return out, nil
	})
	if odd > 0 {
		notes["rows_dropped_roles"] += odd
	}
	return made(rows), notes, err
}

// alternates tells whether LLaMA-Factory would keep the row.
func (r sftShareGPTRow) alternates() bool {
	for i, s := range r.Conversations {
		asks := s.From == "human" || s.From == "observation"
		if asks != (i%2 == 0) {
			return false
		}
	}
	return len(r.Conversations) > 0 && len(r.Conversations)%2 == 0
}

// untagged takes the tags off thoughts. Those around a call's are written as most
// templates of LLaMA-Factory look for them ("<think>\n" to "\n</think>\n\n"), which
// those that look for the bare tags find, too; others are read as a part of the call.
var untagged = strings.NewReplacer("<think>\n", "", "\n</think>\n\n", "\n\n", "<think>", "", "</think>", "")

func (v sftShareGPT) row(list []message) (sftShareGPTRow, error) {
	var row sftShareGPTRow
	answers := map[string]string{}
	for _, m := range list {
		if m.Role == "tool" {
			answers[m.ToolCallID] = m.Content
		}
	}
	before := "" // what a reply without a call said, when another reply follows
	add := func(from, value string) { row.Conversations = append(row.Conversations, said{from, value}) }
	for i, m := range list {
		switch m.Role {
		case "system":
			row.System = strings.TrimPrefix(row.System+"\n\n"+m.Content, "\n\n")
		case "user":
			add("human", m.Content)
		case "assistant":
			text := strings.TrimPrefix(before+"\n\n"+m.Content, "\n\n")
			before = ""
			if len(m.ToolCalls) == 0 {
				if i+1 < len(list) && list[i+1].Role == "assistant" {
					before = text
					continue
				}
				add("gpt", text)
			}
			for j, c := range m.ToolCalls {
				said, err := jsonText(c.Function)
				if err != nil {
					return row, err
				}
				if j == 0 && text != "" {
					said = "<think>\n" + strings.TrimSpace(untagged.Replace(text)) + "\n</think>\n\n" + said
				}
				add("function_call", said)
				add("observation", answers[c.ID])
			}
		}
	}
	if n := len(row.Conversations); n > 0 && row.Conversations[n-1].From != "gpt" && row.Conversations[n-1].From != "function_call" {
		row.Conversations = row.Conversations[:n-1]
	}
	return row, nil
}
