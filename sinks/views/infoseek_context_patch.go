package views

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

func init() {
	sinks.Views.Register(plugin.Spec[sinks.View, sinks.ViewOptions]{
		Kind: "infoseek-context-patch", Summary: "prompt with issue and evidence, and the verified patch as its completion",
		Default: func() any { return &contextPatchConfig{Evidence: "base-state", Budget: 8192} },
		New: func(cfg any, o sinks.ViewOptions) (sinks.View, error) {
			c := cfg.(*contextPatchConfig)
			o, err := supportedOptions{mask: recordMasks, noConversation: true}.check(o)
			switch {
			case err != nil:
				return nil, err
			case !slices.Contains(evidencePolicies, c.Evidence):
				return nil, fmt.Errorf("evidence %q: choose one of %s", c.Evidence, strings.Join(evidencePolicies, ", "))
			case c.Evidence == "gold-ranked" && !o.AllowGold:
				return nil, errors.New("evidence gold-ranked is ordered by the gold patch: add --allow-gold to permit this")
			case c.Budget < 1:
				return nil, fmt.Errorf("budget %d: it must be at least 1 token", c.Budget)
			}
			return &contextPatch{o, *c, requirement{
				what:   "no verified pass has a patch and recorded states of the workspace (workspace_sha256)",
				remedy: "select verified passes of a run or dataset made by tracesmith; add --allow-gold if their patches come from the gold patch",
			}}, nil
		},
	})
}

type contextPatchConfig struct {
	Evidence string `json:"evidence"` // which evidence: base-state, before-final-edit or gold-ranked
	Budget   int    `json:"budget"`   // tokens of evidence; the earliest, or lowest-ranked, is left out first
}

// contextPatch pairs an issue and the evidence of its episode with the patch that solved
// the issue. The evidence consists of the answers to successful calls that looked for
// something. With base-state, it contains only answers from before the first change to the
// workspace. With before-final-edit and gold-ranked, it contains all answers from before the
// final edit, and an answer is stale if a file that it shows was changed afterwards.
// gold-ranked puts answers that show the places of the gold patch first.
type contextPatch struct {
	opts sinks.ViewOptions
	cfg  contextPatchConfig
	requirement
}

type contextPatchRow struct {
	Prompt     string `json:"prompt" parquet:"prompt"`
	Completion string `json:"completion" parquet:"completion"`
	Evidence   string `json:"evidence_json" parquet:"evidence_json"`
	Policy     string `json:"evidence_policy" parquet:"evidence_policy"`
	Tokens     int    `json:"evidence_tokens" parquet:"evidence_tokens"`
	Source     string `json:"patch_source" parquet:"patch_source"`
	EpisodeID  string `json:"episode_id" parquet:"episode_id"`
	InstanceID string `json:"instance_id" parquet:"instance_id"`
	Repo       string `json:"repo" parquet:"repo"`
	Split      string `json:"split" parquet:"split"`
}

func (*contextPatch) Container() string { return sinks.JSONLGz }

func (v *contextPatch) Render(t sinks.Trajectory) ([]sinks.Row, sinks.Notes, error) {
	notes := sinks.Notes{}
	if _, err := conversationsOf(t, v.opts, sinks.Notes{}); err != nil {
		return nil, notes, err
	}
	patch, source := verifiedPatch(t, v.opts, notes)
	hasStates := slices.ContainsFunc(t.Steps, func(s schemas.StepRow) bool { return s.WorkspaceSHA256 != nil })
	v.observe(patch != "" && hasStates)
	if patch == "" {
		return nil, notes, nil
	}
	if !hasStates {
		notes["episodes_without_workspace"]++
		return nil, notes, nil
	}
	found := v.withinBudget(gatherEvidence(t, v.cfg.Evidence))
	if len(found) == 0 {
		notes["rows_dropped_no_evidence"]++
		return nil, notes, nil
	}
	listed, err := jsonText(found)
	if err != nil {
		return nil, notes, err
	}
	e := t.Episode
	row := contextPatchRow{
		Prompt: contextPrompt(issueOf(t), found), Completion: patch, Evidence: listed, Policy: v.cfg.Evidence, Source: source,
		EpisodeID: e.EpisodeID, InstanceID: e.InstanceID, Repo: e.Repo, Split: e.Split,
	}
	for _, f := range found {
		row.Tokens += v.opts.Count(f.text)
	}
	return []sinks.Row{{Value: row, Columns: row, Texts: []string{row.Prompt, row.Completion}, Trained: []string{row.Completion}}}, notes, nil
}

// withinBudget drops the evidence that exceeds the budget: the earliest if the list is in
// the order of the episode, and the lowest-ranked if it is ranked.
func (v *contextPatch) withinBudget(found []evidence) []evidence {
	ranked := v.cfg.Evidence == "gold-ranked"
	used, n := 0, 0
	for n < len(found) {
		i := len(found) - 1 - n
		if ranked {
			i = n
		}
		if used += v.opts.Count(found[i].text); used > v.cfg.Budget {
			break
		}
		n++
	}
	if ranked {
		return found[:n]
	}
	return found[len(found)-n:]
}

// contextPrompt writes the issue, the evidence and the request for a patch.
func contextPrompt(issue string, found []evidence) string {
	var b strings.Builder
	b.WriteString(issue + "\n\nWhat was found out:\n")
	for i, f := range found {
		fmt.Fprintf(&b, "\n[%d] %s %s", i+1, f.Tool, f.call)
		if f.State == "stale" {
			b.WriteString(" (changed since)")
		}
		b.WriteString("\n" + f.text + "\n")
	}
	b.WriteString("\nWrite the patch as a unified diff.\n")
	return b.String()
}
