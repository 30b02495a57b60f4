package views

import (
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

func init() {
	register(shape{
		kind: "sft-negative-pi", summary: "sft-trl rows of failed episodes whose prompt lists facts labeled wrong: for training only",
		container: sinks.JSONLGz, loss: lossOnCompletion, row: trlRow,
		options:  trlOptions,
		settings: func() any { return &negativePIConfig{MaxWrong: 0.8} },
		build: func(v *renderer, settings any) (sinks.View, error) {
			return &negativePI{sftTRL{v}, requirement{
				what:   "no failed episode has usable facts labeled wrong (annotations of kind fact)",
				remedy: "annotate the failures, select them (--all), and add --allow-gold if the gold patch was used to judge facts",
			}, settings.(*negativePIConfig).MaxWrong}, nil
		},
	})
}

type negativePIConfig struct {
	MaxWrong float64 `json:"max_wrong"` // share of wrong facts above which an episode is omitted
}

// negativePI writes rows of sft-trl from failed episodes, with an <information> block in
// the first message of the user. The block lists wrong facts: statements that the agent
// relied on, and that an annotation made after the run labels as wrong. Their evidence is
// not shown. With AllowGold they include facts that were judged with the gold patch.
// The method and its name come from debug-gym's post on Negative-PI.
type negativePI struct {
	sftTRL
	requirement
	maxWrong float64
}

func (v *negativePI) Render(t sinks.Trajectory) ([]sinks.Row, sinks.Notes, error) {
	if _, err := conversationsOf(t, v.opts, sinks.Notes{}); err != nil {
		return nil, nil, err
	}
	e := t.Episode
	if e.Resolved == nil || *e.Resolved {
		v.observe(false)
		return nil, sinks.Notes{"episodes_without_failure": 1}, nil
	}
	wrong, share := v.facts(t)
	v.observe(len(wrong) > 0)
	switch {
	case len(wrong) == 0:
		return nil, sinks.Notes{"episodes_without_facts": 1}, nil // none that is wrong and may be shown
	case share > v.maxWrong:
		return nil, sinks.Notes{"rows_dropped_wrong_facts": 1}, nil
	}
	t.Steps = slices.Clone(t.Steps)
	for i := range t.Steps {
		if s := &t.Steps[i]; s.Source == "user" && s.TurnIndex == nil {
			s.Message += "\n\n<information>\nAll of these statements are wrong:\n- " + strings.Join(wrong, "\n- ") + "\n</information>"
			break
		}
	}
	return v.sftTRL.Render(t)
}

// facts returns the wrong facts that rows may show, and the share of wrong facts among all.
func (v *negativePI) facts(t sinks.Trajectory) (wrong []string, share float64) {
	total, wrongTotal := 0, 0
	for _, a := range t.Annotations {
		if a.Kind != "fact" || a.Text == nil {
			continue
		}
		total++
		if schemas.Value(a.Label) != "wrong" {
			continue
		}
		wrongTotal++
		if !a.UsesGold || v.opts.AllowGold {
			wrong = append(wrong, strings.Join(strings.Fields(*a.Text), " "))
		}
	}
	if t.Episode.WrongFactRatio != nil {
		return wrong, *t.Episode.WrongFactRatio
	}
	return wrong, float64(wrongTotal) / float64(max(total, 1))
}
