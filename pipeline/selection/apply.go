package selection

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

// Apply decides which episodes of src to keep. The result depends only on the set of
// episodes, not on their order.
func (r *Recipe) Apply(ctx context.Context, src Source) (Result, error) {
	groups, err := r.countGroups(ctx, src)
	if err != nil {
		return Result{}, err
	}
	usesSteps := func(p program) bool { return p.steps }
	steps := slices.ContainsFunc(r.programs, usesSteps) || slices.ContainsFunc(r.reports, usesSteps)
	columns := r.boundColumns()
	var all []*candidate
	for e, err := range src(ctx, steps) {
		if err != nil {
			return Result{}, err
		}
		c, err := r.evaluate(ctx, &e, columns, groups[r.groupOf(&e.Row)])
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return Result{}, cause
			}
			return Result{}, &Error{fmt.Errorf("selection %s: %w", r.Name, err)}
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *candidate) int { return slices.Compare(a.key[:], b.key[:]) })
	s := &application{all: all}
	s.applyPredicates(r)
	for _, col := range r.Dedup {
		s.dedup(col)
	}
	if r.Near > 0 {
		if err := s.computeSignatures(ctx, src); err != nil {
			return Result{}, err
		}
		s.dropNear(r.Near)
	}
	s.choose(r)
	for _, col := range r.capColumns() {
		s.applyCap(col, r.Caps[col], r.Seed)
	}
	res := Result{Funnel: s.funnel, Episodes: episodesHash(all), Info: schemas.SelectionInfo{
		Name: r.Name, SHA256: r.SHA256(), Expr: r.Expr(), Seed: r.Seed, Caps: maps.Clone(r.Caps), Dedup: r.Dedup, Near: r.Near, Select: r.Select, Best: r.Best,
		Funnel: s.funnel, Reports: s.reports(r), Definitions: r.Definitions(),
	}}
	if r.Group != defaultGroup {
		res.Info.Group = r.Group
	}
	for _, c := range all {
		res.Rows = append(res.Rows, c.out)
		if c.out.Kept {
			res.Kept = append(res.Kept, c.out.EpisodeID)
			if c.gold {
				res.Info.KeptGold++
			}
		}
	}
	return res, nil
}

// boundColumns returns the columns that the programs of a recipe refer to. These are all columns if
// a program asks which ones are null.
func (r *Recipe) boundColumns() []arrowrec.Column {
	refs := map[string]bool{}
	for _, p := range slices.Concat(r.programs, r.reports) {
		maps.Copy(refs, p.refs)
	}
	if refs[nullColumns] {
		return arrowrec.Episodes.Columns
	}
	return slices.DeleteFunc(slices.Clone(arrowrec.Episodes.Columns), func(c arrowrec.Column) bool { return !refs[c.Name] })
}

// countGroups counts the attempts of each group over all episodes, including those that the
// recipe rejects. It returns nil if no expression uses groups.
func (r *Recipe) countGroups(ctx context.Context, src Source) (map[string]*groupCounts, error) {
	usesGroup := func(p program) bool { return p.group }
	if !slices.ContainsFunc(r.programs, usesGroup) && !slices.ContainsFunc(r.reports, usesGroup) {
		return nil, nil
	}
	groups := map[string]*groupCounts{}
	for e, err := range src(ctx, false) {
		if err != nil {
			return nil, err
		}
		name := r.groupOf(&e.Row)
		if groups[name] == nil {
			groups[name] = &groupCounts{}
		}
		groups[name].add(&e.Row)
	}
	return groups, nil
}

// evaluate evaluates all predicates and reports for an episode. columns are those that they refer to.
// g has the counts of its
// group; nil if no expression uses groups.
func (r *Recipe) evaluate(ctx context.Context, e *Episode, columns []arrowrec.Column, g *groupCounts) (*candidate, error) {
	c := r.candidate(&e.Row)
	a, err := activation(e, columns, g)
	if err != nil {
		return nil, fmt.Errorf("episode %s: %w", c.out.EpisodeID, err)
	}
	evaluate := func(p Predicate, prog program) (verdict, error) {
		v, err := prog.eval(ctx, a)
		if err != nil {
			err = fmt.Errorf("predicate %s on episode %s: %w", p.Name, c.out.EpisodeID, err)
		}
		return v, err
	}
	for k, prog := range r.programs {
		v, err := evaluate(r.Predicates[k], prog)
		if err != nil {
			return nil, err
		}
		if v != yes {
			if c.firstFail < 0 {
				c.firstFail = k
			}
			c.reject(r.Predicates[k].Name)
		}
		c.unknownAt = append(c.unknownAt, v == unknown)
	}
	for k, prog := range r.reports {
		v, err := evaluate(r.Report[k], prog)
		if err != nil {
			return nil, err
		}
		c.reports = append(c.reports, v)
	}
	return c, nil
}
