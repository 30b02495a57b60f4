package views

import (
	"fmt"
	"slices"

	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/sinks"
)

func init() {
	sinks.Views.Register(plugin.Spec[sinks.View, sinks.ViewOptions]{
		Kind: "infoseek-next-action", Summary: "prompt and one turn that found new information, a few an episode",
		Default: func() any { return &nextActionConfig{PerEpisode: 8} },
		New: func(cfg any, o sinks.ViewOptions) (sinks.View, error) {
			n := cfg.(*nextActionConfig).PerEpisode
			if n < 1 {
				return nil, fmt.Errorf("per_episode %d: it must be at least 1", n)
			}
			o, err := abilities{mask: []string{sinks.MaskSplitRows}, thinks: true, arguments: objectFirst, thinking: fieldFirst, tools: listFirst, content: emptyFirst}.check(o)
			return &infoseekNextAction{sftTRL{o}, n, newsNeed()}, err
		},
	})
}

type nextActionConfig struct {
	PerEpisode int `json:"per_episode"` // rows, those of the latest turns
}

// infoseekNextAction has the rows of sft-trl with one turn each. Prompts repeat,
// so that an episode gives few: the last of its turns that found something new.
type infoseekNextAction struct {
	sftTRL
	most int
	need need
}

type nextActionRow struct {
	sftTRLRow
	StepIndex    int32  `json:"step_index"`
	ActionKind   string `json:"action_kind"`
	ToolName     string `json:"tool_name"`
	PromptTokens *int64 `json:"prompt_tokens,omitempty"`
}

func (v *infoseekNextAction) Render(t sinks.Trajectory) ([]sinks.Row, sinks.Notes, error) {
	notes := sinks.Notes{}
	conversations, err := converse(t, v.opts, notes)
	if err != nil {
		return nil, notes, err
	}
	var rows []sinks.Row
	for _, c := range conversations {
		onlySeeking(c, &v.need)
		for _, at := range targets(c, v.opts, notes) {
			row, err := v.row(t, c, at, notes)
			if err != nil {
				return nil, notes, err
			}
			did, _ := c.turns[at.from].seeking()
			row.Value = nextActionRow{row.Value.(sftTRLRow), did.StepIndex, did.ActionKind, value(did.ToolName), c.turns[at.from].row.PromptTokens}
			row.Columns = nil
			rows = append(rows, row)
		}
	}
	if n := len(rows) - v.most; n > 0 {
		notes["rows_dropped_per_episode"] += n
		rows = slices.Clone(rows[n:])
	}
	return rows, notes, nil
}

func (v *infoseekNextAction) Finish() ([]sinks.Row, sinks.Notes, error) {
	return nil, nil, v.need.check()
}
