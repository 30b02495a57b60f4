package views

import (
	"slices"

	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/sinks"
)

func init() {
	sinks.Views.Register(plugin.Spec[sinks.View, sinks.ViewOptions]{
		Kind: "sft-trl", Summary: "conversations for TRL's SFTTrainer: prompt, completion, object arguments",
		New: func(_ any, o sinks.ViewOptions) (sinks.View, error) {
			o, err := abilities{mask: rowMasks, thinks: true, arguments: objectFirst, thinking: fieldFirst, tools: listFirst, content: emptyFirst}.check(o)
			return sftTRL{o}, err
		},
	})
}

// sftTRL renders what TRL loads with datasets >= 4.7: rows of prompt, completion
// and tools. By default TRL's loss is on every token of the completion, so a completion
// is one reply; with the other masks it also holds the answers of tools, which only
// assistant_only_loss keeps out of the loss. Arguments are objects, rows end on the
// assistant, nothing is null that was not null in a call. The Parquet form has arguments and
// tools as JSON text. Source: dataset_formats.md of TRL.
type sftTRL struct{ opts sinks.ViewOptions }

type sftTRLRow struct {
	Prompt     []any           `json:"prompt"`
	Completion []any           `json:"completion"`
	Tools      any             `json:"tools"`
	Template   *sftTRLTemplate `json:"chat_template_kwargs,omitempty"`
	Phase      string          `json:"phase,omitempty"` // of episodes with more than one conversation
	origin
}

type sftTRLColumns struct {
	Prompt     []messageColumns `parquet:"prompt,list"`
	Completion []messageColumns `parquet:"completion,list"`
	Tools      string           `parquet:"tools"`
	Thinking   *bool            `parquet:"enable_thinking,optional"`
	Phase      *string          `parquet:"phase,optional"`
	originColumns
}

// sftTRLTemplate is handed to the chat template: whether thoughts are rendered.
type sftTRLTemplate struct {
	EnableThinking bool `json:"enable_thinking"`
}

// origin says where a row comes from.
type origin struct {
	EpisodeID  string `json:"episode_id"`
	InstanceID string `json:"instance_id"`
	Repo       string `json:"repo"`
	Split      string `json:"split"`
	Resolved   *bool  `json:"resolved,omitempty"`
}

type originColumns struct {
	EpisodeID  string `parquet:"episode_id"`
	InstanceID string `parquet:"instance_id"`
	Repo       string `parquet:"repo"`
	Split      string `parquet:"split"`
	Resolved   *bool  `parquet:"resolved,optional"`
}

func originOf(t sinks.Trajectory) origin {
	e := t.Episode
	return origin{e.EpisodeID, e.InstanceID, e.Repo, e.Split, e.Resolved}
}

func (sftTRL) Container() string { return sinks.JSONLGz }

// TokenLimit is the default max_length of SFTConfig.
func (sftTRL) TokenLimit() (tokens int, remedy string) {
	return 1024, "set max_length=None in SFTConfig"
}

func (v sftTRL) Render(t sinks.Trajectory) ([]sinks.Row, sinks.Notes, error) {
	notes := sinks.Notes{}
	conversations, err := converse(t, v.opts, notes)
	if err != nil {
		return nil, notes, err
	}
	var rows []sinks.Row
	for _, c := range conversations {
		for _, target := range targets(c, v.opts, notes) {
			row, err := v.row(t, c, target, notes)
			if err != nil {
				return nil, notes, err
			}
			rows = append(rows, row)
		}
	}
	return rows, notes, nil
}

func (v sftTRL) row(t sinks.Trajectory, c *conversation, at target, notes sinks.Notes) (sinks.Row, error) {
	prompt, completion := c.messages(at)
	prompt, completion = think(prompt, v.opts), think(completion, v.opts)
	whole := slices.Concat(prompt, completion)
	lintMessages(whole, notes)
	if slices.ContainsFunc(completion, func(m message) bool { return m.Role != "assistant" }) {
		notes["rows_that_need_assistant_only_loss"]++
	}
	tools := toolsOf(t, c.turns[at.from:at.to])
	shown, err := toolsValue(tools, v.opts)
	if err != nil {
		return sinks.Row{}, err
	}
	asText, err := jsonText(tools)
	var thinking *bool
	var kwargs *sftTRLTemplate
	if v.opts.ChatTemplate != "" {
		thinking = new(v.opts.Thinking == sinks.ThinkingField && c.hasReasoning())
		kwargs = &sftTRLTemplate{*thinking}
	}
	row := sinks.Row{
		Value: sftTRLRow{wireMessages(prompt, v.opts), wireMessages(completion, v.opts), shown, kwargs, c.phase, originOf(t)},
		Columns: sftTRLColumns{
			columnsOf(prompt, nil), columnsOf(completion, nil), asText, thinking, text(c.phase), originColumns(originOf(t)),
		},
		Texts: texts(whole, tools),
	}
	c.loss(&row, prompt, v.opts, func(int) bool { return false })
	row.Trained = texts(completion, nil) // with answers of tools, if there are any
	return row, err
}
