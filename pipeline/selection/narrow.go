package selection

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// application is the state of one Apply: all candidates in table order, and those not yet rejected.
type application struct {
	all, alive []*candidate
	funnel     []schemas.FunnelStep
}

// predicates adds a funnel step for each predicate. The funnel counts an episode at its
// first failed predicate; its reasons list all of them.
func (s *application) predicates(r *Recipe) {
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
	s.alive = slices.DeleteFunc(slices.Clone(s.all), func(c *candidate) bool { return !c.out.Kept })
}

// reports evaluates the recipe's reports over the kept episodes.
func (s *application) reports(r *Recipe) []schemas.FunnelStep {
	var out []schemas.FunnelStep
	for k, p := range r.Report {
		step := schemas.FunnelStep{Predicate: p.Name, Expr: r.reports[k].text, In: len(s.alive)}
		for _, c := range s.alive {
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

// dedup keeps the first episode of each value of col.
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

// choose keeps the first episodes of each group, in the order of the recipe.
func (s *application) choose(r *Recipe) {
	if r.Select == "" {
		return
	}
	if r.Select == selectCorrect {
		s.filter("select:"+selectCorrect, "those of each "+r.Group+" that are resolved", func(c *candidate) bool { return c.resolved })
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

// comparators compare two episodes of a group; counted means that the completion tokens
// of the whole group are known.
var comparators = map[string]func(a, b *candidate, counted bool) int{
	"shortest": compareLength,
	"best": func(a, b *candidate, counted bool) int {
		return cmp.Or(falseLast(a.resolved, b.resolved), cmp.Compare(rewardOf(b), rewardOf(a)), compareLength(a, b, counted))
	},
	"first": func(a, b *candidate, _ bool) int {
		return cmp.Or(cmp.Compare(a.attempt, b.attempt), a.created.Compare(b.created))
	},
}

func compareLength(a, b *candidate, counted bool) int {
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

// rewardOf returns the reward; an unknown one is the lowest.
func rewardOf(c *candidate) float64 {
	if c.reward == nil {
		return -1e308
	}
	return *c.reward
}

// limit keeps k episodes per value of col, in a random order given by the seed and the
// episode ids.
func (s *application) limit(col string, k int, seed int64) {
	value := func(c *candidate) string { // null counts as a value
		if v := c.text[col]; v != nil {
			return *v
		}
		return ""
	}
	ranks := s.rank(value, func(group []*candidate) {
		draw := map[*candidate]string{}
		for _, c := range group {
			draw[c] = schemas.HashBytes(fmt.Appendf(nil, "%d/%s", seed, c.out.EpisodeID))
		}
		slices.SortFunc(group, func(a, b *candidate) int { return strings.Compare(draw[a], draw[b]) })
	})
	s.keepRanked("cap:"+col, fmt.Sprintf("at most %d per %s", k, col), k, ranks)
}

// rank numbers the members of each group from 1, in the order of sort.
func (s *application) rank(group func(*candidate) string, sort func([]*candidate)) map[*candidate]int32 {
	groups := map[string][]*candidate{}
	for _, c := range s.alive {
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

func (s *application) filter(name, expr string, keep func(*candidate) bool) {
	step := schemas.FunnelStep{Predicate: name, Expr: expr, In: len(s.alive)}
	var next []*candidate
	for _, c := range s.alive {
		if keep(c) {
			next = append(next, c)
			continue
		}
		c.reject(name)
	}
	s.alive, step.Out = next, len(next)
	s.funnel = append(s.funnel, step)
}
