package views

import "github.com/tracesmith/tracesmith/sinks"

// sftAxolotlRow is a conversation whose messages say whether they are trained on
// (message_field_training). Arguments and tools are JSON text by default, because
// the datasets library would give each object the keys of all others.
// Source: dataset-formats/conversation.qmd of Axolotl.
type sftAxolotlRow struct {
	Messages []wireMessage `json:"messages"`
	Tools    any           `json:"tools"`
	Phase    string        `json:"phase,omitempty"`
	origin
}

type sftAxolotlColumns struct {
	Messages []messageColumns `parquet:"messages,list"`
	Tools    string           `parquet:"tools"`
	Phase    *string          `parquet:"phase,optional"`
	origin
}

func axolotlRow(v *renderer, x example) (sinks.Row, error) {
	tools, asText, err := v.toolValues(x)
	phase, from := x.conversation.phase, originOf(x.trajectory.Episode)
	return sinks.Row{
		Value:   sftAxolotlRow{v.wire(x, x.messages), tools, phase, from},
		Columns: sftAxolotlColumns{columnsOf(x.messages, x.span.train), asText, nilIfEmpty(phase), from},
	}, err
}
