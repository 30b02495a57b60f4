package selection

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

// Episode is what a selection decides about.
type Episode struct {
	Row   schemas.EpisodeRow
	Steps []schemas.StepRow // in order; nil where they were not asked for
}

// Source hands out all episodes, in any order, with their steps or without. It is
// read once, and again where a recipe asks about groups or where near duplicates lack their signatures.
type Source func(ctx context.Context, steps bool) iter.Seq2[Episode, error]

// Result is what a selection decided about a set of episodes.
type Result struct {
	Kept     []string               // episode ids in table order
	Rows     []schemas.SelectionRow // one per episode, in table order
	Funnel   []schemas.FunnelStep   // predicates, dedup, select, caps; each Out is the next In
	Info     schemas.SelectionInfo
	Episodes string // SHA-256 of which episodes there were: see identity
}

// Error: a selection cannot decide about these episodes, by its own fault.
type Error struct{ Err error }

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

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

// candidate is what is remembered of an episode: enough to order, group and
// choose, so that steps and texts need not stay in memory.
type candidate struct {
	out     schemas.SelectionRow
	key     [4]string // sort key
	said    string    // content_sha256
	minhash string    // minhash_b64
	text    map[string]*string
	group   string

	attempt    int32
	created    time.Time
	turns      int32
	completion *int64
	resolved   bool
	gold       bool // gold_used
	reward     *float64

	firstFail int    // index of the first predicate that failed; -1: none
	first     []bool // per predicate: unknown was why
	reports   []verdict
}

// Apply decides about the episodes of src; the result depends on the set of
// episodes alone.
func (r *Recipe) Apply(ctx context.Context, src Source) (Result, error) {
	groups, err := r.tallies(ctx, src)
	if err != nil {
		return Result{}, err
	}
	asks := func(p program) bool { return p.steps }
	steps := slices.ContainsFunc(r.programs, asks) || slices.ContainsFunc(r.reports, asks)
	var all []*candidate
	for e, err := range src(ctx, steps) {
		if err != nil {
			return Result{}, err
		}
		c, err := r.judge(ctx, &e, groups[r.groupOf(&e.Row)])
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return Result{}, cause
			}
			return Result{}, &Error{fmt.Errorf("selection %s: %w", r.Name, err)}
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *candidate) int { return slices.Compare(a.key[:], b.key[:]) })
	s := &state{all: all}
	s.predicates(r)
	for _, col := range r.Dedup {
		s.dedup(col)
	}
	if r.Near > 0 {
		if err := s.sign(ctx, src); err != nil {
			return Result{}, err
		}
		s.near(r.Near)
	}
	s.choose(r)
	for _, col := range r.capColumns() {
		s.limit(col, r.Caps[col], r.Seed)
	}
	res := Result{Funnel: s.funnel, Episodes: identity(all), Info: schemas.SelectionInfo{
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

// tallies counts the attempts of every group, over all episodes: what a recipe
// leaves out is an attempt, too.
func (r *Recipe) tallies(ctx context.Context, src Source) (map[string]*tally, error) {
	asks := func(p program) bool { return p.group }
	if !slices.ContainsFunc(r.programs, asks) && !slices.ContainsFunc(r.reports, asks) {
		return nil, nil
	}
	groups := map[string]*tally{}
	for e, err := range src(ctx, false) {
		if err != nil {
			return nil, err
		}
		name := r.groupOf(&e.Row)
		if groups[name] == nil {
			groups[name] = &tally{}
		}
		groups[name].add(&e.Row)
	}
	return groups, nil
}

// judge asks every predicate about an episode.
func (r *Recipe) judge(ctx context.Context, e *Episode, g *tally) (*candidate, error) {
	c := r.candidate(&e.Row)
	a, err := activation(e, g)
	if err != nil {
		return nil, fmt.Errorf("episode %s: %w", c.out.EpisodeID, err)
	}
	ask := func(p Predicate, prog program) (verdict, error) {
		v, err := prog.eval(ctx, a)
		if err != nil {
			err = fmt.Errorf("predicate %s on episode %s: %w", p.Name, c.out.EpisodeID, err)
		}
		return v, err
	}
	for k, prog := range r.programs {
		v, err := ask(r.Predicates[k], prog)
		if err != nil {
			return nil, err
		}
		if v != yes {
			if c.firstFail < 0 {
				c.firstFail = k
			}
			c.reject(r.Predicates[k].Name)
		}
		c.first = append(c.first, v == unknown)
	}
	for k, prog := range r.reports {
		v, err := ask(r.Report[k], prog)
		if err != nil {
			return nil, err
		}
		c.reports = append(c.reports, v)
	}
	return c, nil
}

func (r *Recipe) candidate(e *schemas.EpisodeRow) *candidate {
	c := &candidate{
		out: schemas.SelectionRow{EpisodeID: e.EpisodeID, Kept: true, Reasons: []string{}},
		key: [4]string{e.Split, e.Repo, e.InstanceID, e.EpisodeID}, text: map[string]*string{}, firstFail: -1,
		attempt: e.Attempt, created: e.CreatedAt, turns: e.NTurns, completion: e.CompletionTokens,
		resolved: e.Resolved != nil && *e.Resolved, gold: e.GoldUsed, reward: e.Reward,
	}
	if e.MinhashB64 != nil {
		c.minhash = *e.MinhashB64
	}
	if e.ContentSHA256 != nil {
		c.said = *e.ContentSHA256
	}
	for _, col := range slices.Concat(r.Dedup, r.capColumns()) {
		c.text[col] = columnText(e, col)
	}
	c.group = r.groupOf(e)
	return c
}

func (c *candidate) reject(reason string) {
	if c.out.Kept {
		c.out.Kept, c.out.FirstReason = false, &reason
	}
	c.out.Reasons = append(c.out.Reasons, reason)
}

// groupOf names the group of an episode; one that is in none is one of its own.
func (r *Recipe) groupOf(e *schemas.EpisodeRow) string {
	if v := columnText(e, r.Group); v != nil {
		return *v
	}
	return "\x00" + e.EpisodeID
}

// columnText is the value of a text column, nil for null.
func columnText(e *schemas.EpisodeRow, col string) *string {
	column, _ := arrowrec.Episodes.Column(col)
	if v, ok := column.Value(reflect.ValueOf(e).Elem()).(string); ok {
		return &v
	}
	return nil
}

// identity names a set of episodes by their ids and what was said in them.
func identity(all []*candidate) string {
	pairs := make([][2]string, len(all))
	for i, c := range all {
		pairs[i] = [2]string{c.out.EpisodeID, c.said}
	}
	slices.SortFunc(pairs, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	return schemas.Hash(pairs)
}
