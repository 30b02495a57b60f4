package selection

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// application is the state of one call of Recipe.Apply: all candidates in table order, and those that
// remain, because nothing has rejected them yet.
type application struct {
	all, remaining []*candidate
	funnel         []schemas.FunnelStep
}

// applyPredicates adds a funnel step for each predicate and drops the rejected candidates.
// The funnel counts an episode only at the first predicate that rejects it.
func (s *application) applyPredicates(r *Recipe) {
	for k, p := range r.Predicates {
		step := schemas.FunnelStep{Predicate: p.Name, Expr: r.programs[k].text}
		for _, c := range s.all {
			switch {
			case c.firstFail >= 0 && c.firstFail < k:
				continue
			case c.firstFail != k:
				step.Out++
			case c.unknownAt[k]:
				step.Unknown++
			}
			step.In++
		}
		s.funnel = append(s.funnel, step)
	}
	s.remaining = slices.DeleteFunc(slices.Clone(s.all), func(c *candidate) bool { return !c.out.Kept })
}

// reports counts the recipe's reports over the kept episodes.
func (s *application) reports(r *Recipe) []schemas.FunnelStep {
	var out []schemas.FunnelStep
	for k, p := range r.Report {
		step := schemas.FunnelStep{Predicate: p.Name, Expr: r.reports[k].text, In: len(s.remaining)}
		for _, c := range s.remaining {
			switch c.reports[k] {
			case yes:
				step.Out++
			case unknown:
				step.Unknown++
			}
		}
		out = append(out, step)
	}
	if r.ReportNear > 0 {
		out = append(out, s.reportNear(r.ReportNear))
	}
	return out
}

// dedup keeps the first episode of each value of a column. It keeps all episodes in which the
// column is null.
func (s *application) dedup(col string) {
	seen := map[string]bool{}
	s.filter("dedup:"+col, "first of each "+col, func(c *candidate) bool {
		v := c.text[col]
		if v == nil {
			return true
		}
		duplicate := seen[*v]
		seen[*v] = true
		return !duplicate
	})
}

// choose keeps the episodes of each group that the recipe selects.
func (s *application) choose(r *Recipe) {
	if r.Select == "" {
		return
	}
	if r.Select == selectCorrect {
		s.filter("select:"+selectCorrect, "the resolved episodes of each "+r.Group, func(c *candidate) bool { return c.resolved })
		return
	}
	k := max(r.Best, 1)
	ranks := s.rank(func(c *candidate) string { return c.group }, func(group []*candidate) {
		counted := !slices.ContainsFunc(group, func(c *candidate) bool { return c.completion == nil })
		slices.SortFunc(group, func(a, b *candidate) int {
			return cmp.Or(comparators[r.Select](a, b, counted), strings.Compare(a.out.EpisodeID, b.out.EpisodeID))
		})
	})
	s.keepRanked("select:"+r.Select, fmt.Sprintf("the %s %d of each %s", r.Select, k, r.Group), k, ranks)
}

// comparators maps the values of Recipe.Select to functions that compare two episodes of a
// group. counted means that the completion tokens of the whole group are known.
var comparators = map[string]func(a, b *candidate, counted bool) int{
	"shortest": compareLengths,
	"best": func(a, b *candidate, counted bool) int {
		return cmp.Or(falseLast(a.resolved, b.resolved), cmp.Compare(rewardOf(b), rewardOf(a)), compareLengths(a, b, counted))
	},
	"first": func(a, b *candidate, _ bool) int {
		return cmp.Or(cmp.Compare(a.attempt, b.attempt), a.created.Compare(b.created))
	},
}

// compareLengths orders episodes by completion tokens, if counted, then by turns and attempt.
func compareLengths(a, b *candidate, counted bool) int {
	tokens := 0
	if counted {
		tokens = cmp.Compare(*a.completion, *b.completion)
	}
	return cmp.Or(tokens, cmp.Compare(a.turns, b.turns), cmp.Compare(a.attempt, b.attempt))
}

func falseLast(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// rewardOf returns the reward of an episode. An unknown reward is lower than any other.
func rewardOf(c *candidate) float64 {
	if c.reward == nil {
		return -1e308
	}
	return *c.reward
}

// applyCap keeps at most k episodes for each value of a column. Which ones it keeps is random,
// but depends only on the seed and the episode IDs.
func (s *application) applyCap(col string, k int, seed int64) {
	value := func(c *candidate) string { // null counts as a value
		if v := c.text[col]; v != nil {
			return *v
		}
		return ""
	}
	ranks := s.rank(value, func(group []*candidate) {
		sortKeys := map[*candidate]string{}
		for _, c := range group {
			sortKeys[c] = schemas.HashBytes(fmt.Appendf(nil, "%d/%s", seed, c.out.EpisodeID))
		}
		slices.SortFunc(group, func(a, b *candidate) int { return strings.Compare(sortKeys[a], sortKeys[b]) })
	})
	s.keepRanked("cap:"+col, fmt.Sprintf("at most %d per %s", k, col), k, ranks)
}

// rank numbers the members of each group from 1, in the order of sort.
func (s *application) rank(group func(*candidate) string, sort func([]*candidate)) map[*candidate]int32 {
	groups := map[string][]*candidate{}
	for _, c := range s.remaining {
		groups[group(c)] = append(groups[group(c)], c)
	}
	ranks := map[*candidate]int32{}
	for _, members := range groups {
		sort(members)
		for n, c := range members {
			ranks[c] = int32(n + 1)
		}
	}
	return ranks
}

func (s *application) keepRanked(name, expr string, k int, ranks map[*candidate]int32) {
	s.filter(name, expr, func(c *candidate) bool {
		c.out.RankInGroup = new(ranks[c])
		return ranks[c] <= int32(k)
	})
}

// filter drops the candidates for which keep returns false, with the reason name, and adds a
// funnel step.
func (s *application) filter(name, expr string, keep func(*candidate) bool) {
	step := schemas.FunnelStep{Predicate: name, Expr: expr, In: len(s.remaining)}
	var next []*candidate
	for _, c := range s.remaining {
		if keep(c) {
			next = append(next, c)
			continue
		}
		c.reject(name)
	}
	s.remaining, step.Out = next, len(next)
	s.funnel = append(s.funnel, step)
}
