package metrics

import "github.com/tracesmith/tracesmith/schemas"

// Group collects the verdicts and costs of a group of episodes. Its zero value is empty.
type Group struct {
	Tasks    map[string]Attempts // by TaskOf; a task without a verdict has none
	episodes int
	gold     int // resolved, by a policy that could see the gold patch
	derived  int // part of gold: by an edit that does not come from the gold patch
	cost     float64
	costs    int // episodes with a known cost
	tokens   int64
	tokenN   int // episodes with a known number of tokens
}

// TaskOf identifies the task of an episode.
func TaskOf(e *schemas.EpisodeRow) string { return e.TaskSource + "/" + e.InstanceID }

// Add adds an episode.
func (g *Group) Add(e *schemas.EpisodeRow) {
	if g.Tasks == nil {
		g.Tasks = map[string]Attempts{}
	}
	g.episodes++
	g.Tasks[TaskOf(e)] = g.Tasks[TaskOf(e)].With(e)
	if schemas.Value(e.Resolved) && e.GoldUsed {
		g.gold++
		if schemas.Value(e.Ending) == schemas.EndingEdit {
			g.derived++
		}
	}
	if e.CostUSD != nil {
		g.cost += *e.CostUSD
		g.costs++
	}
	if tokens := Tokens(e); tokens != nil {
		g.tokens += *tokens
		g.tokenN++
	}
}

// Tokens returns the tokens of all prompts and completions of an episode; nil if unknown.
func Tokens(e *schemas.EpisodeRow) *int64 {
	if e.PromptTokens == nil || e.CompletionTokens == nil {
		return nil
	}
	return new(*e.PromptTokens + *e.CompletionTokens)
}

// GroupSummary describes a group of episodes.
type GroupSummary struct {
	Episodes int  `json:"episodes"`
	Tasks    int  `json:"tasks"`
	Rate     Rate `json:"rate"`
	// ResolvedGold is how many of the resolved episodes have a policy that could see the gold patch.
	ResolvedGold int `json:"resolved_gold_used"`
	Derived      int `json:"resolved_derived"` // part of ResolvedGold: by an edit that does not come from the gold patch
	// CostUSD is the cost of all episodes, and CostPerResolved its share of each resolved one. They are nil
	// if the cost of an episode is unknown, CostPerResolved also if no episode is resolved.
	CostUSD         *float64 `json:"cost_usd"`
	CostPerResolved *float64 `json:"cost_usd_per_resolved"`
	Tokens          *int64   `json:"tokens"` // of prompts and completions; nil if unknown for an episode
}

// Summary returns the summary of the episodes that were added.
func (g *Group) Summary() GroupSummary {
	s := GroupSummary{Episodes: g.episodes, Tasks: len(g.Tasks), ResolvedGold: g.gold, Derived: g.derived, Rate: RateOf(g.Tasks)}
	if g.episodes > 0 && g.costs == g.episodes {
		s.CostUSD = new(g.cost)
		if s.Rate.Resolved > 0 {
			s.CostPerResolved = new(g.cost / float64(s.Rate.Resolved))
		}
	}
	if g.episodes > 0 && g.tokenN == g.episodes {
		s.Tokens = new(g.tokens)
	}
	return s
}

// TokensPerEpisode returns the mean number of tokens; nil if unknown.
func (s GroupSummary) TokensPerEpisode() *float64 {
	if s.Tokens == nil {
		return nil
	}
	return new(float64(*s.Tokens) / float64(s.Episodes))
}
