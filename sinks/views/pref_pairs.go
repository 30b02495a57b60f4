package views

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tracesmith/tracesmith/configs/plugin"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

func init() {
	sinks.Views.Register(plugin.Spec[sinks.View, sinks.ViewOptions]{
		Kind: "pref-pairs", Summary: "prompt, chosen and rejected: a verified pass and a verified fail of one group",
		New: func(_ any, o sinks.ViewOptions) (sinks.View, error) {
			o, err := supportedOptions{
				mask: []string{sinks.MaskNone, sinks.MaskDropEpisode}, arguments: objectFirst, thinking: fieldFirst, tools: listFirst, content: emptyFirst,
			}.check(o)
			return &prefPairs{opts: o, groups: map[string]*prefGroup{}}, err
		},
	})
}

// prefPairs pairs the verified pass of a group that has the fewest turns with the verified
// fail that has the fewest turns. The loss of preference trainers is on whole completions, so
// no turn can be masked. Without AllowGold, prefPairs therefore leaves out episodes with
// steps from the gold patch.
type prefPairs struct {
	opts   sinks.ViewOptions
	groups map[string]*prefGroup
}

type prefGroup struct{ pass, fail *prefSide }

// prefSide is one conversation of a pair.
type prefSide struct {
	episode            schemas.EpisodeRow
	turns              int
	prompt, completion []message
	tools              []tool
	phase              string
}

type prefRow struct {
	Prompt     []wireMessage `json:"prompt"`
	Chosen     []wireMessage `json:"chosen"`
	Rejected   []wireMessage `json:"rejected"`
	Tools      any           `json:"tools"`
	GroupID    string        `json:"group_id"`
	Phase      string        `json:"phase,omitempty"`
	InstanceID string        `json:"instance_id"`
	Repo       string        `json:"repo"`
	Split      string        `json:"split"`
	ChosenID   string        `json:"chosen_episode_id"`
	RejectedID string        `json:"rejected_episode_id"`
}

func (*prefPairs) Container() string { return sinks.JSONLGz }

func (v *prefPairs) Render(t sinks.Trajectory) ([]sinks.Row, sinks.Notes, error) {
	notes := sinks.Notes{}
	conversations, err := conversationsOf(t, v.opts, notes)
	if err != nil {
		return nil, notes, err
	}
	e := t.Episode
	passed := e.VerifyStatus == "verified_pass" && e.Resolved != nil && *e.Resolved
	failed := e.VerifyStatus == "verified_fail" && e.Resolved != nil && !*e.Resolved
	if !passed && !failed {
		notes["episodes_without_verdict"]++
		return nil, notes, nil
	}
	if usedGold(t) && !v.opts.AllowGold {
		notes["episodes_without_rows_gold"]++
		return nil, notes, nil
	}
	for _, c := range conversations {
		n := len(c.turns)
		if n == 0 {
			continue
		}
		if v.opts.Mask == sinks.MaskDropEpisode && slices.ContainsFunc(c.turns, func(t turn) bool { return t.mask != "" }) {
			notes["rows_dropped_masked"]++
			continue
		}
		if !c.promptsExtend(1, n) {
			notes["rows_dropped_cut_history"]++
			continue
		}
		prompt, completion := c.messages(span{to: n}, false)
		side := &prefSide{
			episode: e, turns: n, phase: c.phase, tools: toolsOf(t, c.turns),
			prompt: placeReasoning(prompt, v.opts), completion: placeReasoning(completion, v.opts),
		}
		v.keep(side, passed)
	}
	return nil, notes, nil
}

// keep replaces the side of its group if s has fewer turns, or as many turns and a lower id.
func (v *prefPairs) keep(s *prefSide, passed bool) {
	key := s.episode.GroupID + "\x00" + s.phase
	g := v.groups[key]
	if g == nil {
		g = &prefGroup{}
		v.groups[key] = g
	}
	best := &g.fail
	if passed {
		best = &g.pass
	}
	if *best == nil || cmp.Or(cmp.Compare(s.turns, (*best).turns), cmp.Compare(s.episode.EpisodeID, (*best).episode.EpisodeID)) < 0 {
		*best = s
	}
}

func (v *prefPairs) Finish() ([]sinks.Row, sinks.Notes, error) {
	notes := sinks.Notes{}
	var rows []sinks.Row
	for _, key := range slices.Sorted(maps.Keys(v.groups)) {
		g := v.groups[key]
		if g.pass == nil || g.fail == nil {
			notes["groups_without_pair"]++
			continue
		}
		prompt, err := jsonText(g.pass.prompt)
		if err != nil {
			return nil, notes, err
		}
		if other, err := jsonText(g.fail.prompt); err != nil || prompt != other {
			notes["rows_dropped_prompts_differ"]++
			continue
		}
		tools, err := toolsValue(g.pass.tools, v.opts)
		if err != nil {
			return nil, notes, err
		}
		e := g.pass.episode
		rows = append(rows, sinks.Row{
			Value: prefRow{
				wireMessages(g.pass.prompt, v.opts), wireMessages(g.pass.completion, v.opts), wireMessages(g.fail.completion, v.opts), tools,
				e.GroupID, g.pass.phase, e.InstanceID, e.Repo, e.Split, e.EpisodeID, g.fail.episode.EpisodeID,
			},
			Texts:    texts(slices.Concat(g.pass.prompt, g.pass.completion, g.fail.completion), g.pass.tools),
			Trained:  texts(slices.Concat(g.pass.completion, g.fail.completion), nil),
			Episodes: []string{e.EpisodeID, g.fail.episode.EpisodeID},
		})
	}
	if len(rows) == 0 && len(v.groups) > 0 {
		return nil, notes, &sinks.MissingError{
			What:   "no group has both a verified pass and a verified fail with the same prompt",
			Remedy: "run more attempts of each task, and select the failures as well (--all)",
		}
	}
	return rows, notes, nil
}
