package selection

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

// Result is what a recipe decided about a set of episodes.
type Result struct {
	Kept   []string               // episode ids in table order
	Rows   []schemas.SelectionRow // one per episode, in table order
	Funnel []schemas.FunnelStep   // predicates, dedup, caps; each Out is the next In
	Info   schemas.SelectionInfo
}

// Reasons counts the episodes by their first reason for being left out.
func (r Result) Reasons() map[string]int {
	m := map[string]int{}
	for _, row := range r.Rows {
		if row.FirstReason != nil {
			m[*row.FirstReason]++
		}
	}
	return m
}

// Apply decides about rows, which may come in any order; the result depends on
// the set of rows alone.
func (r *Recipe) Apply(rows []schemas.EpisodeRow) (Result, error) {
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return rows[a].Compare(rows[b]) })
	s := &state{rows: rows, out: make([]schemas.SelectionRow, len(rows)), alive: order}
	for _, i := range order {
		s.out[i] = schemas.SelectionRow{EpisodeID: rows[i].EpisodeID, Kept: true, Reasons: []string{}}
	}
	if err := r.filter(s, order); err != nil {
		return Result{}, err
	}
	for _, col := range r.Dedup {
		s.dedup(col)
	}
	for _, col := range r.capColumns() {
		s.limit(col, r.Caps[col], r.Seed)
	}
	res := Result{Funnel: s.funnel, Info: schemas.SelectionInfo{
		Name: r.Name, SHA256: r.SHA256(), Seed: r.Seed, Caps: maps.Clone(r.Caps), Dedup: r.Dedup, Funnel: s.funnel,
	}}
	for _, i := range order {
		res.Rows = append(res.Rows, s.out[i])
		if s.out[i].Kept {
			res.Kept = append(res.Kept, rows[i].EpisodeID)
		}
	}
	return res, nil
}

// state is one application under way; alive holds the indexes still in.
type state struct {
	rows   []schemas.EpisodeRow
	out    []schemas.SelectionRow
	alive  []int
	funnel []schemas.FunnelStep
}

// filter asks every predicate about every episode: the funnel counts the first
// to fail, the reasons list all.
func (r *Recipe) filter(s *state, order []int) error {
	steps := make([]schemas.FunnelStep, len(r.Predicates))
	for i, p := range r.Predicates {
		steps[i] = schemas.FunnelStep{Predicate: p.Name, Expr: p.Expr}
	}
	for _, i := range order {
		a, err := activation(&s.rows[i])
		if err != nil {
			return fmt.Errorf("selection %s: episode %s: %w", r.Name, s.rows[i].EpisodeID, err)
		}
		for k, prog := range r.compiled {
			v, err := prog.eval(a)
			if err != nil {
				return fmt.Errorf("selection %s: predicate %s on episode %s: %w", r.Name, r.Predicates[k].Name, s.rows[i].EpisodeID, err)
			}
			in := s.out[i].Kept
			if in {
				steps[k].In++
			}
			switch {
			case v != yes:
				if in && v == unknown {
					steps[k].Unknown++
				}
				s.reject(i, r.Predicates[k].Name)
			case in:
				steps[k].Out++
			}
		}
	}
	s.funnel = steps
	s.alive = slices.DeleteFunc(slices.Clone(order), func(i int) bool { return !s.out[i].Kept })
	return nil
}

func (s *state) reject(i int, reason string) {
	row := &s.out[i]
	if row.Kept {
		row.Kept, row.FirstReason = false, &reason
	}
	row.Reasons = append(row.Reasons, reason)
}

// dedup keeps the first episode of each value of col.
func (s *state) dedup(col string) {
	seen := map[string]bool{}
	s.narrow("dedup:"+col, "first of each "+col, func(i int) bool {
		v, known := s.text(i, col)
		duplicate := known && seen[v]
		seen[v] = seen[v] || known
		return !duplicate
	})
}

// limit keeps k episodes of each value of col, in an order that the seed and
// the episode's id decide.
func (s *state) limit(col string, k int, seed int64) {
	groups := map[string][]int{}
	for _, i := range s.alive {
		v, _ := s.text(i, col)
		groups[v] = append(groups[v], i)
	}
	rank := map[int]int32{}
	for _, members := range groups {
		draw := map[int]string{}
		for _, i := range members {
			draw[i] = schemas.HashBytes(fmt.Appendf(nil, "%d/%s", seed, s.rows[i].EpisodeID))
		}
		slices.SortFunc(members, func(a, b int) int { return strings.Compare(draw[a], draw[b]) })
		for n, i := range members {
			rank[i] = int32(n + 1)
		}
	}
	s.narrow("cap:"+col, fmt.Sprintf("at most %d per %s", k, col), func(i int) bool {
		s.out[i].RankInGroup = new(rank[i])
		return rank[i] <= int32(k)
	})
}

func (s *state) narrow(name, expr string, keep func(i int) bool) {
	step := schemas.FunnelStep{Predicate: name, Expr: expr, In: len(s.alive)}
	var next []int
	for _, i := range s.alive {
		if keep(i) {
			next = append(next, i)
			continue
		}
		s.reject(i, name)
	}
	s.alive, step.Out = next, len(next)
	s.funnel = append(s.funnel, step)
}

func (s *state) text(i int, col string) (value string, known bool) {
	c, _ := arrowrec.Episodes.Column(col)
	v, known := c.Value(reflect.ValueOf(&s.rows[i]).Elem()).(string)
	return v, known
}
