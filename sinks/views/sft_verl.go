package views

import (
	"strings"

	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/sinks"
)

func init() {
	sinks.Views.Register(plugin.Spec[sinks.View, sinks.ViewOptions]{
		Kind: "sft-verl", Summary: "conversations for verl's MultiTurnSFTDataset: Parquet, every reply is trained on",
		New: func(_ any, o sinks.ViewOptions) (sinks.View, error) {
			o, err := abilities{mask: wholeMasks, thinks: true, thinking: dropOrInline}.check(o)
			if err != nil {
				return nil, err
			}
			d, err := newDialect("chatml")
			return sftVerl{o, d}, err
		},
	})
}

// sftVerl renders messages of a role and a text alone. verl reads Parquet with
// pandas, where objects of different calls would take each other's keys, and
// renders each message by itself, where templates disagree with the whole. So
// tools stand in the system prompt, calls in the replies and answers in messages
// of the user, in the words that ChatML templates make of them.
type sftVerl struct {
	opts    sinks.ViewOptions
	dialect *dialect
}

type sftVerlRow struct {
	Messages   []sftVerlMessage `json:"messages" parquet:"messages,list"`
	EpisodeID  string           `json:"episode_id" parquet:"episode_id"`
	InstanceID string           `json:"instance_id" parquet:"instance_id"`
	Repo       string           `json:"repo" parquet:"repo"`
	Split      string           `json:"split" parquet:"split"`
	Resolved   *bool            `json:"resolved,omitempty" parquet:"resolved,optional"`
}

// sftVerlThinkingRow has the column that verl hands to the chat template. A null in it
// would be an error there, so rows either have it or have no such column.
type sftVerlThinkingRow struct {
	sftVerlRow
	Thinking bool `json:"enable_thinking" parquet:"enable_thinking"`
}

type sftVerlMessage struct {
	Role    string `json:"role" parquet:"role"`
	Content string `json:"content" parquet:"content"`
}

func (sftVerl) Container() string { return sinks.Parquet }

func (v sftVerl) Render(t sinks.Trajectory) ([]sinks.Row, sinks.Notes, error) {
	return eachStretch(t, v.opts, func(c *conversation, _ stretch, list []message, tools []tool) (sinks.Row, error) {
		e := t.Episode
		messages, err := v.plain(c.folded(list, v.opts), tools)
		row := sftVerlRow{
			Messages: messages, EpisodeID: e.EpisodeID, InstanceID: e.InstanceID, Repo: e.Repo, Split: e.Split, Resolved: e.Resolved,
		}
		out := sinks.Row{Value: row, Columns: row}
		if v.opts.ChatTemplate != "" {
			thinking := sftVerlThinkingRow{row, v.opts.Thinking == sinks.ThinkingInline && c.hasReasoning()}
			out = sinks.Row{Value: thinking, Columns: thinking}
		}
		c.loss(&out, list, v.opts, c.everyReply(v.opts))
		return out, err
	})
}

func (v sftVerl) plain(list []message, tools []tool) ([]sftVerlMessage, error) {
	var out []sftVerlMessage
	said, err := v.dialect.speak("tools", tools)
	if err != nil {
		return nil, err
	}
	if said != "" && (len(list) == 0 || list[0].Role != "system") {
		out = append(out, sftVerlMessage{"system", strings.TrimPrefix(said, "\n\n")})
		said = ""
	}
	for _, m := range list {
		parts := []string{m.Content}
		role := m.Role
		switch role {
		case "system":
			parts[0] += said
			said = ""
		case "assistant":
			for _, c := range spoken(m.ToolCalls) {
				text, err := v.dialect.speak("call", c)
				if err != nil {
					return nil, err
				}
				parts = append(parts, text)
			}
		case "tool":
			role = "user"
			if parts[0], err = v.dialect.speak("answer", m.Content); err != nil {
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
