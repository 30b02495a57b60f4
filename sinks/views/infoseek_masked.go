package views

import "github.com/tracesmith/tracesmith/sinks"

func init() {
	register(shape{
		kind: "infoseek-masked", summary: "conversations that train only on turns that found new information",
		container: sinks.JSONL, loss: lossByTrain, row: axolotlRow,
		options: axolotlOptions.withMasks(sinks.MaskContext, sinks.MaskSplitRows),
		build: func(v *renderer, _ any) (sinks.View, error) {
			view := &infoseekMasked{v, requireNewInformation()}
			v.choose = func(c *conversation) { skipUninformativeTurns(c, &view.requirement) }
			return view, nil
		},
	})
}

// infoseekMasked writes the rows of sft-axolotl, with train true only for turns that looked
// for something and found new information.
type infoseekMasked struct {
	*renderer
	requirement
}
