package views

import (
	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/sinks"
)

func init() {
	sinks.Views.Register(plugin.Spec[sinks.View, sinks.ViewOptions]{
		Kind: "infoseek-masked", Summary: "conversations that train on turns alone which found new information",
		New: func(_ any, o sinks.ViewOptions) (sinks.View, error) {
			o, err := abilities{
				mask: []string{sinks.MaskContext, sinks.MaskSplitRows}, arguments: stringFirst, thinking: fieldFirst, tools: jsonFirst, content: emptyFirst,
			}.check(o)
			return &infoseekMasked{o, newsNeed()}, err
		},
	})
}

// infoseekMasked has the rows of sft-axolotl, with train true on turns that looked
// and found something new. One row a conversation.
type infoseekMasked struct {
	opts sinks.ViewOptions
	need need
}

func (*infoseekMasked) Container() string { return sinks.JSONL }

func (v *infoseekMasked) Render(t sinks.Trajectory) ([]sinks.Row, sinks.Notes, error) {
	return someStretches(t, v.opts, func(c *conversation) { onlySeeking(c, &v.need) },
		func(c *conversation, s stretch, list []message, tools []tool) (sinks.Row, error) {
			return trainedMessages(t, c, s, list, tools, v.opts)
		})
}

func (v *infoseekMasked) Finish() ([]sinks.Row, sinks.Notes, error) { return nil, nil, v.need.check() }
