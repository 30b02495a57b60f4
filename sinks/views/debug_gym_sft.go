package views

import (
	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/sinks"
)

func init() {
	sinks.Views.Register(plugin.Spec[sinks.View, sinks.ViewOptions]{
		Kind: "debug-gym-sft", Summary: "the seven keys that debug-gym's SFT data viewer reads",
		New: func(_ any, o sinks.ViewOptions) (sinks.View, error) {
			o, err := abilities{mask: wholeMasks, arguments: stringFirst, thinking: fieldFirst, tools: []string{sinks.ToolsList}}.check(o)
			return debugGymSFT{o}, err
		},
	})
}

// debugGymSFT renders records that open in debug-gym's analysis/sft_data_viewer.
type debugGymSFT struct{ opts sinks.ViewOptions }

type debugGymSFTRow struct {
	Messages  []any    `json:"messages"`
	Tools     []tool   `json:"tools"`
	Problem   string   `json:"problem"`
	RunID     string   `json:"run_id"`
	Criteria  []string `json:"satisfied_criteria"`
	Truncated bool     `json:"truncated"` // less than the episode: turns are cut or were not shown
	Tokens    int      `json:"#tokens"`
	origin             // the viewer shows the keys above and ignores others
}

func (debugGymSFT) Container() string { return sinks.JSONL }

func (v debugGymSFT) Render(t sinks.Trajectory) ([]sinks.Row, sinks.Notes, error) {
	return eachStretch(t, v.opts, func(c *conversation, s stretch, list []message, tools []tool) (sinks.Row, error) {
		e := t.Episode
		row := debugGymSFTRow{
			Messages: wireMessages(c.folded(list, v.opts), v.opts), Tools: tools, Problem: e.InstanceID, RunID: e.RunID, Criteria: e.SatisfiedCriteria, origin: originOf(t),
			Truncated: s.to < len(c.turns) || len(c.turns[s.to-1].op.Dropped) > 0,
		}
		if row.Criteria == nil {
			row.Criteria = []string{}
		}
		for _, text := range texts(list, tools) {
			row.Tokens += v.opts.Count(text)
		}
		out := sinks.Row{Value: row}
		c.loss(&out, list, v.opts, c.everyReply(v.opts))
		return out, nil
	})
}
