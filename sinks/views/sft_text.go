package views

import (
	"slices"

	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/sinks"
)

func init() {
	sinks.Views.Register(plugin.Spec[sinks.View, sinks.ViewOptions]{
		Kind: "sft-text", Summary: "prompt and completion, or text, rendered with a named template",
		Default: func() any { return &sftTextConfig{Template: "chatml"} },
		New: func(cfg any, o sinks.ViewOptions) (sinks.View, error) {
			o, err := abilities{mask: anyMask, thinking: inlineOrDrop}.check(o)
			if err != nil {
				return nil, err
			}
			d, err := newDialect(cfg.(*sftTextConfig).Template)
			return sftText{o, d}, err
		},
	})
}

type sftTextConfig struct {
	Template string `json:"template"` // chatml, llama3 or xml
}

// sftText renders plain texts. With masks that keep every turn apart (context,
// split-rows) a row is one turn: prompt, completion. With the others it is a whole
// conversation: text, for trainers that find the replies by their markers.
type sftText struct {
	opts    sinks.ViewOptions
	dialect *dialect
}

type sftTextRow struct {
	Prompt     *string `json:"prompt,omitempty" parquet:"prompt,optional"`
	Completion *string `json:"completion,omitempty" parquet:"completion,optional"`
	Text       *string `json:"text,omitempty" parquet:"text,optional"`
	Template   string  `json:"template" parquet:"template"`
	SHA256     string  `json:"template_sha256" parquet:"template_sha256"`
	EpisodeID  string  `json:"episode_id" parquet:"episode_id"`
	InstanceID string  `json:"instance_id" parquet:"instance_id"`
	Repo       string  `json:"repo" parquet:"repo"`
	Split      string  `json:"split" parquet:"split"`
	Resolved   *bool   `json:"resolved,omitempty" parquet:"resolved,optional"`
}

func (sftText) Container() string { return sinks.Parquet }

func (v sftText) Render(t sinks.Trajectory) ([]sinks.Row, sinks.Notes, error) {
	o := v.opts
	single := slices.Contains([]string{sinks.MaskContext, sinks.MaskSplitRows}, o.Mask)
	if single {
		o.Mask = sinks.MaskSplitRows
	}
	return eachStretch(t, o, func(c *conversation, _ stretch, list []message, tools []tool) (sinks.Row, error) {
		whole, replies, err := v.dialect.text(list, tools)
		if err != nil {
			return sinks.Row{}, err
		}
		e := t.Episode
		row := sftTextRow{
			Template: v.dialect.name, SHA256: v.dialect.sha256,
			EpisodeID: e.EpisodeID, InstanceID: e.InstanceID, Repo: e.Repo, Split: e.Split, Resolved: e.Resolved,
		}
		if at := replies[len(replies)-1]; single {
			row.Prompt, row.Completion = new(whole[:at[0]]), new(whole[at[0]:at[1]])
			return sinks.Row{Value: row, Columns: row}, nil
		}
		row.Text = &whole
		out := sinks.Row{Value: row, Columns: row}
		c.loss(&out, list, o, c.everyReply(o))
		return out, nil
	})
}
