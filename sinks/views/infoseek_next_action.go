package views

import (
	"fmt"
	"slices"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

func init() {
	register(shape{
		kind: "infoseek-next-action", summary: "prompt and one turn that found new information, a few per episode",
		container: sinks.JSONLGz, loss: lossOnCompletion, row: nextActionRowOf,
		options:  trlOptions.withMasks(sinks.MaskSplitRows),
		settings: func() any { return &nextActionConfig{PerEpisode: 8} },
		build: func(v *renderer, settings any) (sinks.View, error) {
			n := settings.(*nextActionConfig).PerEpisode
			if n < 1 {
				return nil, fmt.Errorf("per_episode %d: it must be at least 1", n)
			}
			view := &infoseekNextAction{sftTRL{v}, requireNewInformation(), n}
			v.choose = func(c *conversation) { skipUninformativeTurns(c, &view.requirement) }
			return view, nil
		},
	})
}

type nextActionConfig struct {
	PerEpisode int `json:"per_episode"` // maximum number of rows of one episode
}

// infoseekNextAction writes rows of sft-trl with one turn each. Because the prompts of an
// episode repeat each other, it writes only a few rows per episode: those of the last turns
// that found new information.
type infoseekNextAction struct {
	sftTRL
	requirement
	perEpisode int
}

type nextActionRow struct {
	sftTRLRow
	StepIndex    int32  `json:"step_index"`
	ActionKind   string `json:"action_kind"`
	ToolName     string `json:"tool_name"`
	PromptTokens *int64 `json:"prompt_tokens,omitempty"`
}

func nextActionRowOf(v *renderer, x example) (sinks.Row, error) {
	row, err := trlRow(v, x)
	if err != nil {
		return sinks.Row{}, err
	}
	turn := x.conversation.turns[x.span.from]
	found, _ := turn.newInformation()
	return sinks.Row{Value: nextActionRow{
		row.Value.(sftTRLRow), found.StepIndex, found.ActionKind, schemas.Value(found.ToolName), turn.row.PromptTokens,
	}}, nil
}

func (v *infoseekNextAction) Render(t sinks.Trajectory) ([]sinks.Row, sinks.Notes, error) {
	rows, notes, err := v.sftTRL.Render(t)
	if n := len(rows) - v.perEpisode; n > 0 {
		notes["rows_dropped_per_episode"] += n
		rows = slices.Clone(rows[n:])
	}
	return rows, notes, err
}
