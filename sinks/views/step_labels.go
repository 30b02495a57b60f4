package views

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

func init() {
	sinks.Views.Register(plugin.Spec[sinks.View, sinks.ViewOptions]{
		Kind: "step-labels", Summary: "prompt, completions and labels for TRL's stepwise supervision",
		Default: func() any { return &stepLabelsConfig{Labels: "progress", Template: "chatml"} },
		New: func(cfg any, o sinks.ViewOptions) (sinks.View, error) {
			c := cfg.(*stepLabelsConfig)
			o, err := supportedOptions{mask: recordMasks, thinking: inlineOrDrop}.check(o)
			switch {
			case err != nil:
				return nil, err
			case c.Labels != "progress" && c.Labels != "gold":
				return nil, fmt.Errorf("labels %q: choose progress or gold", c.Labels)
			case c.Labels == "gold" && !o.AllowGold:
				return nil, errors.New("labels gold come from the gold patch: add --allow-gold to permit this")
			}
			d, err := newTextTemplate(c.Template)
			return &stepLabels{opts: o, template: d, labels: c.Labels, requirement: requirement{
				what:   "no step says whether it made progress (is_new_information, is_error; with labels=gold: gold_hit_file)",
				remedy: "export a run or dataset made by tracesmith, not an imported one",
			}}, err
		},
	})
}

type stepLabelsConfig struct {
	Labels   string `json:"labels"`   // progress or gold
	Template string `json:"template"` // as in sft-text
}

// stepLabels labels each turn. With progress, the label is true if no call of the turn
// failed or repeated an earlier call, and all calls that looked for something found new
// information. With gold, calls that look for something must instead show a file of the gold
// patch. A completion is a reply and the answers to it.
// Source: dataset_formats.md of TRL, stepwise supervision.
type stepLabels struct {
	opts     sinks.ViewOptions
	template *textTemplate
	labels   string
	requirement
}

type stepLabelsRow struct {
	Prompt      string   `json:"prompt" parquet:"prompt"`
	Completions []string `json:"completions" parquet:"completions,list"`
	Labels      []bool   `json:"labels" parquet:"labels,list"`
	LabelSource string   `json:"label_source" parquet:"label_source"`
	SHA256      string   `json:"template_sha256" parquet:"template_sha256"`
	origin
}

func (*stepLabels) Container() string { return sinks.JSONLGz }

func (v *stepLabels) Render(t sinks.Trajectory) ([]sinks.Row, sinks.Notes, error) {
	return recordRows(t, v.opts, func(c *conversation, notes sinks.Notes) (sinks.Row, error) {
		row, err := v.row(t, c, notes)
		if err != nil {
			return sinks.Row{}, err
		}
		v.observe(len(row.Labels) > 0)
		if len(row.Labels) == 0 {
			return sinks.Row{}, nil
		}
		return sinks.Row{Value: row, Columns: row, Texts: append([]string{row.Prompt}, row.Completions...), Trained: row.Completions}, nil
	})
}

func (v *stepLabels) row(t sinks.Trajectory, c *conversation, notes sinks.Notes) (stepLabelsRow, error) {
	out := stepLabelsRow{LabelSource: v.labels, SHA256: v.template.sha256, origin: originOf(t.Episode)}
	for i, x := range c.turns {
		label, ok := v.label(x)
		if !ok {
			notes["turns_cut_unlabelled"] += len(c.turns) - i
			c.turns = c.turns[:i]
			break
		}
		out.Labels = append(out.Labels, label)
	}
	list := placeReasoning(c.allMessages(), v.opts)
	whole, replies, err := v.template.render(list, toolsOf(t, c.turns))
	if err != nil || len(replies) == 0 {
		return out, err
	}
	out.Prompt = whole[:replies[0][0]]
	for i, at := range replies {
		end := len(whole)
		if i+1 < len(replies) {
			end = replies[i+1][0]
		}
		out.Completions = append(out.Completions, whole[at[0]:end])
	}
	return out, nil
}

// label returns the label of a turn. known is false if the rows lack the data for it.
func (v *stepLabels) label(x turn) (label, known bool) {
	label = true
	for _, r := range x.rows {
		if r.ToolName == nil {
			return r.FormatError == nil || !*r.FormatError, true
		}
		ok, known := v.progress(r)
		if !known {
			return false, false
		}
		label = label && ok
	}
	return label, true
}

// progress reports whether the call of a row made progress. known is false if the row lacks the
// data for it.
func (v *stepLabels) progress(r *schemas.StepRow) (ok, known bool) {
	if strings.HasPrefix(r.ActionKind, "seek_") {
		found := r.IsNewInformation
		if v.labels == "gold" {
			found = r.GoldHitFile
		}
		if found == nil {
			return false, false
		}
		return *found && (r.IsError == nil || !*r.IsError) && r.RepeatOf == nil, true
	}
	if r.IsError == nil {
		return false, false
	}
	return !*r.IsError && r.RepeatOf == nil, true
}
