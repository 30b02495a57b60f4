package views

import "github.com/tracesmith/tracesmith/sinks"

// debugGymSFTRow is a row for debug-gym's analysis/sft_data_viewer, which shows the first
// seven keys and ignores others.
type debugGymSFTRow struct {
	Messages  []wireMessage `json:"messages"`
	Tools     []tool        `json:"tools"`
	Problem   string        `json:"problem"`
	RunID     string        `json:"run_id"`
	Criteria  []string      `json:"satisfied_criteria"`
	Truncated bool          `json:"truncated"` // the row lacks turns of the episode: the mask cut them, or the last prompt omitted them
	Tokens    int           `json:"#tokens"`
	origin
}

func debugGymRow(v *renderer, x example) (sinks.Row, error) {
	e, c := x.trajectory.Episode, x.conversation
	row := debugGymSFTRow{
		Messages: v.wire(x, c.foldMasked(x.messages, v.opts)), Tools: x.tools,
		Problem: e.InstanceID, RunID: e.RunID, Criteria: e.SatisfiedCriteria, origin: originOf(e),
		Truncated: x.span.to < len(c.turns) || len(c.turns[x.span.to-1].op.Dropped) > 0,
	}
	if row.Criteria == nil {
		row.Criteria = []string{}
	}
	for _, text := range texts(x.messages, x.tools) {
		row.Tokens += v.opts.Count(text)
	}
	return sinks.Row{Value: row}, nil
}
