package views

import "github.com/tracesmith/tracesmith/sinks"

// sftTRL writes rows for TRL with datasets >= 4.7. By default, TRL trains on every
// token of a completion, so a completion is a single reply. With other masks than the
// default, a completion also contains tool results, and training needs
// assistant_only_loss to leave them out of the loss. Source: dataset_formats.md of TRL.
type sftTRL struct{ *renderer }

// TokenLimit returns the default max_length of SFTConfig.
func (sftTRL) TokenLimit() (tokens int, remedy string) {
	return 1024, "set max_length=None in SFTConfig"
}

type sftTRLRow struct {
	Prompt     []wireMessage   `json:"prompt"`
	Completion []wireMessage   `json:"completion"`
	Tools      any             `json:"tools"`
	Template   *sftTRLTemplate `json:"chat_template_kwargs,omitempty"`
	Phase      string          `json:"phase,omitempty"` // set if the episode has more than one conversation
	origin
}

// sftTRLTemplate holds the arguments of the chat template.
type sftTRLTemplate struct {
	EnableThinking bool `json:"enable_thinking"`
}

type sftTRLColumns struct {
	Prompt     []messageColumns `parquet:"prompt,list"`
	Completion []messageColumns `parquet:"completion,list"`
	Tools      string           `parquet:"tools"` // JSON
	Thinking   *bool            `parquet:"enable_thinking,optional"`
	Phase      *string          `parquet:"phase,optional"`
	origin
}

func trlRow(v *renderer, x example) (sinks.Row, error) {
	tools, asText, err := v.toolValues(x)
	if err != nil {
		return sinks.Row{}, err
	}
	phase, from := x.conversation.phase, originOf(x.trajectory.Episode)
	thinking := v.thinking(x, sinks.ThinkingField)
	var template *sftTRLTemplate
	if thinking != nil {
		template = &sftTRLTemplate{*thinking}
	}
	return sinks.Row{
		Value:   sftTRLRow{v.wire(x, x.prompt), v.wire(x, x.completion), tools, template, phase, from},
		Columns: sftTRLColumns{columnsOf(x.prompt, nil), columnsOf(x.completion, nil), asText, thinking, nilIfEmpty(phase), from},
	}, nil
}
