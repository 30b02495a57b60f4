package views

import "github.com/tracesmith/tracesmith/sinks"

type sftTextConfig struct {
	Template string `json:"template"` // chatml, llama3 or xml
}

// sftTextRow is one row of plain text. With the masks context and split-rows, it holds one turn
// as Prompt and Completion. With all other masks, it holds a whole conversation as Text, for
// trainers that find the replies by the template's markers.
type sftTextRow struct {
	Prompt     *string `json:"prompt,omitempty" parquet:"prompt,optional"`
	Completion *string `json:"completion,omitempty" parquet:"completion,optional"`
	Text       *string `json:"text,omitempty" parquet:"text,optional"`
	Template   string  `json:"template" parquet:"template"`
	SHA256     string  `json:"template_sha256" parquet:"template_sha256"`
	origin
}

func buildText(v *renderer, settings any) (sinks.View, error) {
	if v.opts.Mask == sinks.MaskContext { // plain text cannot mark turns as masked
		v.opts.Mask = sinks.MaskSplitRows
	}
	return v.withTemplate(settings.(*sftTextConfig).Template)
}

func textRow(v *renderer, x example) (sinks.Row, error) {
	whole, replies, err := v.template.render(x.messages, x.tools)
	if err != nil {
		return sinks.Row{}, err
	}
	row := sftTextRow{Template: v.template.name, SHA256: v.template.sha256, origin: originOf(x.trajectory.Episode)}
	if v.opts.Mask == sinks.MaskSplitRows {
		last := replies[len(replies)-1]
		row.Prompt, row.Completion = new(whole[:last[0]]), new(whole[last[0]:last[1]])
	} else {
		row.Text = &whole
	}
	return sinks.Row{Value: row, Columns: row}, nil
}
