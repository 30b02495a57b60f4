package views

import (
	"strings"

	"github.com/tracesmith/tracesmith/sinks"
)

// sftVerlRow holds messages that consist only of a role and a text. Tools are part of the
// system prompt, calls are part of the replies, and answers are part of user messages, in
// the format of ChatML templates. This has two reasons. verl reads Parquet with pandas,
// which would give the arguments of each call the keys of all other calls. It also renders
// each message separately, which with some templates differs from rendering all at once.
type sftVerlRow struct {
	Messages []sftVerlMessage `json:"messages" parquet:"messages,list"`
	origin
}

// sftVerlThinkingRow adds the column that verl passes to the chat template. verl fails on a
// null in this column, so either all rows have a value or the column is absent.
type sftVerlThinkingRow struct {
	sftVerlRow
	Thinking bool `json:"enable_thinking" parquet:"enable_thinking"`
}

type sftVerlMessage struct {
	Role    string `json:"role" parquet:"role"`
	Content string `json:"content" parquet:"content"`
}

func verlRow(v *renderer, x example) (sinks.Row, error) {
	messages, err := verlMessages(v.template, x.conversation.foldMasked(x.messages, v.opts), x.tools)
	row := sftVerlRow{messages, originOf(x.trajectory.Episode)}
	if thinking := v.thinking(x, sinks.ThinkingInline); thinking != nil {
		row := sftVerlThinkingRow{row, *thinking}
		return sinks.Row{Value: row, Columns: row}, err
	}
	return sinks.Row{Value: row, Columns: row}, err
}

func verlMessages(template *textTemplate, list []message, tools []tool) ([]sftVerlMessage, error) {
	var out []sftVerlMessage
	definitions, err := template.execute("tools", tools)
	if err != nil {
		return nil, err
	}
	if definitions != "" && (len(list) == 0 || list[0].Role != "system") {
		out = append(out, sftVerlMessage{"system", strings.TrimPrefix(definitions, "\n\n")})
		definitions = ""
	}
	for _, m := range list {
		parts := []string{m.Content}
		role := m.Role
		switch role {
		case "system":
			parts[0] += definitions
			definitions = ""
		case "assistant":
			for _, c := range templateCalls(m.ToolCalls) {
				text, err := template.execute("call", c)
				if err != nil {
					return nil, err
				}
				parts = append(parts, text)
			}
		case "tool":
			role = "user"
			if parts[0], err = template.execute("answer", m.Content); err != nil {
				return nil, err
			}
		}
		text := strings.TrimPrefix(strings.Join(parts, "\n"), "\n")
		if n := len(out); n > 0 && role == "user" && out[n-1].Role == "user" {
			out[n-1].Content += "\n" + text
			continue
		}
		out = append(out, sftVerlMessage{role, text})
	}
	return out, nil
}
