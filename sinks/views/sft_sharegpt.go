package views

import (
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// sftShareGPT writes rows for LLaMA-Factory's sharegpt converter: an even number of
// messages in which human or observation alternates with gpt or function_call. Parallel
// calls become consecutive calls, each followed by its answer. The text of a reply becomes
// a thought before its first call. The trainer trains on every reply, or with split-rows
// only on the last one (mask_history: true).
// Source: converter.py and formatter.py of LLaMA-Factory.
type sftShareGPT struct{ *renderer }

// Sidecar returns the entry that LLaMA-Factory needs in dataset_info.json.
func (sftShareGPT) Sidecar(name string) (string, []byte, error) {
	entry := map[string]any{"tracesmith": map[string]any{
		"file_name": name, "formatting": "sharegpt",
		"columns": map[string]string{"messages": "conversations", "system": "system", "tools": "tools"},
		"tags": map[string]string{
			"role_tag": "from", "content_tag": "value", "user_tag": shareGPTUser, "assistant_tag": shareGPTReply,
			"function_tag": shareGPTCall, "observation_tag": shareGPTAnswer,
		},
	}}
	body, err := schemas.CanonicalJSON(entry)
	return ".dataset_info.json", append(body, '\n'), err
}

// Roles of LLaMA-Factory.
const (
	shareGPTUser   = "human"
	shareGPTReply  = "gpt"
	shareGPTCall   = "function_call"
	shareGPTAnswer = "observation"
)

type sftShareGPTRow struct {
	Conversations []shareGPTMessage `json:"conversations" parquet:"conversations,list"`
	System        string            `json:"system" parquet:"system"`
	Tools         string            `json:"tools" parquet:"tools"` // JSON; "" without tools
	origin                          // LLaMA-Factory drops columns that dataset_info.json does not name
}

// sftShareGPTColumns gives the Parquet schema its name.
type sftShareGPTColumns sftShareGPTRow

type shareGPTMessage struct {
	From  string `json:"from" parquet:"from"`
	Value string `json:"value" parquet:"value"`
}

func shareGPTRow(v *renderer, x example) (sinks.Row, error) {
	prompt, completion := x.conversation.messages(x.span, true)
	row, err := shareGPTMessages(x.conversation.foldMasked(placeReasoning(append(prompt, completion...), v.opts), v.opts))
	if err != nil {
		return sinks.Row{}, err
	}
	if !row.alternates() {
		x.notes["rows_dropped_roles"]++
		return sinks.Row{}, nil
	}
	if len(x.tools) > 0 {
		var list []schemas.ToolSchema
		for _, t := range x.tools {
			list = append(list, t.Function)
		}
		if row.Tools, err = jsonText(list); err != nil {
			return sinks.Row{}, err
		}
	}
	row.origin = originOf(x.trajectory.Episode)
	return sinks.Row{Value: row, Columns: sftShareGPTColumns(row)}, nil
}

// alternates reports whether LLaMA-Factory would keep the row.
func (r sftShareGPTRow) alternates() bool {
	for i, m := range r.Conversations {
		isInput := m.From == shareGPTUser || m.From == shareGPTAnswer
		if isInput != (i%2 == 0) {
			return false
		}
	}
	return len(r.Conversations) > 0 && len(r.Conversations)%2 == 0
}

// thoughtTagRemover removes the tags of thoughts from the text in front of a call.
// shareGPTMessages encloses the whole text in new tags, in the form that most templates of
// LLaMA-Factory look for ("<think>\n" to "\n</think>\n\n"). Templates that look only for
// the tags without line breaks also find this form. They would read further tags as a part
// of the call.
var thoughtTagRemover = strings.NewReplacer("<think>\n", "", "\n</think>\n\n", "\n\n", "<think>", "", "</think>", "")

func shareGPTMessages(list []message) (sftShareGPTRow, error) {
	var row sftShareGPTRow
	answers := map[string]string{}
	for _, m := range list {
		if m.Role == "tool" {
			answers[m.ToolCallID] = m.Content
		}
	}
	pending := "" // the text of replies without a call that another reply follows directly
	add := func(from, value string) { row.Conversations = append(row.Conversations, shareGPTMessage{from, value}) }
	for i, m := range list {
		switch m.Role {
		case "system":
			row.System = strings.TrimPrefix(row.System+"\n\n"+m.Content, "\n\n")
		case "user":
			add(shareGPTUser, m.Content)
		case "assistant":
			text := strings.TrimPrefix(pending+"\n\n"+m.Content, "\n\n")
			pending = ""
			if len(m.ToolCalls) == 0 {
				if i+1 < len(list) && list[i+1].Role == "assistant" {
					pending = text
					continue
				}
				add(shareGPTReply, text)
			}
			for j, c := range m.ToolCalls {
				call, err := jsonText(c.Function)
				if err != nil {
					return row, err
				}
				if j == 0 && text != "" {
					call = "<think>\n" + strings.TrimSpace(thoughtTagRemover.Replace(text)) + "\n</think>\n\n" + call
				}
				add(shareGPTCall, call)
				add(shareGPTAnswer, answers[c.ID])
			}
		}
	}
	if n := len(row.Conversations); n > 0 && row.Conversations[n-1].From != shareGPTReply && row.Conversations[n-1].From != shareGPTCall {
		row.Conversations = row.Conversations[:n-1]
	}
	return row, nil
}
