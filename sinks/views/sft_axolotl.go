package views

import (
	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/sinks"
)

func init() {
	sinks.Views.Register(plugin.Spec[sinks.View, sinks.ViewOptions]{
		Kind: "sft-axolotl", Summary: "conversations for Axolotl's chat_template type: train on each message",
		New: func(_ any, o sinks.ViewOptions) (sinks.View, error) {
			o, err := abilities{mask: anyMask, arguments: stringFirst, thinking: fieldFirst, tools: jsonFirst, content: emptyFirst}.check(o)
			return sftAxolotl{opts: o}, err
		},
	})
}

// sftAxolotl renders messages with a bool train each (message_field_training),
// and tools. Both are texts where they could differ in keys: datasets would give
// each call the keys of all others. Source: dataset-formats/conversation.qmd of
// Axolotl.
type sftAxolotl struct{ opts sinks.ViewOptions }

type sftAxolotlRow struct {
	Messages []any  `json:"messages"`
	Tools    any    `json:"tools"`
	Phase    string `json:"phase,omitempty"`
	origin
}

type sftAxolotlColumns struct {
	Messages []messageColumns `parquet:"messages,list"`
	Tools    string           `parquet:"tools"`
	Phase    *string          `parquet:"phase,optional"`
	originColumns
}

func (sftAxolotl) Container() string { return sinks.JSONL }

func (v sftAxolotl) Render(t sinks.Trajectory) ([]sinks.Row, sinks.Notes, error) {
	return eachStretch(t, v.opts, func(c *conversation, s stretch, list []message, tools []tool) (sinks.Row, error) {
		return trainedMessages(t, c, s, list, tools, v.opts)
	})
}

// trainedMessages is a row whose messages say whether they are trained on.
func trainedMessages(t sinks.Trajectory, c *conversation, s stretch, list []message, tools []tool, o sinks.ViewOptions) (sinks.Row, error) {
	row := sftAxolotlRow{Phase: c.phase, origin: originOf(t)}
	for _, m := range list {
		w := m.wire(o)
		w.Train = new(s.train[m.turn])
		row.Messages = append(row.Messages, w)
	}
	var err error
	if row.Tools, err = toolsValue(tools, o); err != nil {
		return sinks.Row{}, err
	}
	asText, err := jsonText(tools)
	return sinks.Row{Value: row, Columns: sftAxolotlColumns{columnsOf(list, s.train), asText, text(c.phase), originColumns(row.origin)}}, err
}
