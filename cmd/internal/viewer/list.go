package viewer

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tracesmith/tracesmith/configs/nearest"
	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/pipeline/selection"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

// query is what a request asks of the list.
type query struct {
	Search string
	Steps  bool   // Search looks in the texts of all steps
	Expr   string // CEL, as in tracesmith filter -e
	Sort   string // a column; descending after "-"
	Page   int    // from 1
	Facets map[string]string
}

const pageSize = 100

// inSteps is the value of parameter in for a search in the texts of all steps.
const inSteps = "steps"

// facets are the fields by which the list can be narrowed with one click.
var facets = []struct {
	key, title, column string // column of table episodes; "" if there is none
	value              func(*entry) string
}{
	{"place", "Place", "", func(e *entry) string { return fmt.Sprint(e.place.number) }},
	{"outcome", "Outcome", "outcome", (*entry).outcome},
	{"mark", "Your mark", "", ofEpisode(func(e *entry) string { return cmp.Or(e.place.marks[e.id].Mark, "unmarked") })},
	{"agent", "Agent", "agent_name", ofRow(func(r *schemas.EpisodeRow) string { return r.AgentName })},
	{"model", "Model", "model", ofRow(func(r *schemas.EpisodeRow) string { return r.Model })},
	{"exit", "Exit reason", "exit_reason", ofRow(func(r *schemas.EpisodeRow) string { return r.ExitReason })},
	{"ending", "Ending", "ending", ofRow(func(r *schemas.EpisodeRow) string { return schemas.Value(r.Ending) })},
	{"claimed", "Claim of the source", "claimed_resolved", ofRow(claimed)},
	{"error", "Error", "error_class", (*entry).errorClass},
	{"split", "Split", "split", ofRow(func(r *schemas.EpisodeRow) string { return r.Split })},
	{"bug", "Bug kind", "bug_kind", ofRow(func(r *schemas.EpisodeRow) string { return schemas.Value(r.BugKind) })},
	{"difficulty", "Difficulty", "difficulty", ofRow(func(r *schemas.EpisodeRow) string { return schemas.Value(r.Difficulty) })},
	{"repo", "Repository", "repo", ofRow(func(r *schemas.EpisodeRow) string { return r.Repo })},
}

// claimed returns what an imported file says about its episode.
func claimed(r *schemas.EpisodeRow) string {
	switch {
	case r.ClaimedResolved == nil:
		return ""
	case *r.ClaimedResolved:
		return "resolved"
	}
	return "not resolved"
}

func ofRow(value func(*schemas.EpisodeRow) string) func(*entry) string {
	return ofEpisode(func(e *entry) string { return value(e.row) })
}

// ofEpisode returns a function that has no value for jobs without an episode.
func ofEpisode(value func(*entry) string) func(*entry) string {
	return func(e *entry) string {
		if e.row == nil {
			return ""
		}
		return value(e)
	}
}

// outcome returns the outcome of an episode, or how its job ended without one.
func (e *entry) outcome() string {
	switch {
	case e.open != nil:
		if e.place.job(e.id) != nil {
			return "running"
		}
		return "unfinished"
	case e.dead != nil:
		return cmp.Or(schemas.Value(e.dead.ErrorClass), "dead letter")
	}
	return cmp.Or(e.row.OutcomeText(), "unknown")
}

func (e *entry) errorClass() string {
	if e.dead != nil {
		return schemas.Value(e.dead.ErrorClass)
	}
	return ofRow(func(r *schemas.EpisodeRow) string { return schemas.Value(r.ErrorClass) })(e)
}

func parseQuery(values url.Values) query {
	q := query{Search: values.Get("q"), Steps: values.Get("in") == inSteps, Expr: strings.TrimSpace(values.Get("e")), Sort: values.Get("sort"), Facets: map[string]string{}}
	q.Page, _ = strconv.Atoi(values.Get("page"))
	q.Page = max(1, q.Page)
	for _, f := range facets {
		if v := values.Get(f.key); v != "" {
			q.Facets[f.key] = v
		}
	}
	return q
}

// with returns the address of the list with one parameter changed; "" removes it.
func (q query) with(key, value string) string {
	values := url.Values{}
	set := func(k, v string) {
		if k == key {
			v = value
		}
		if v != "" {
			values.Set(k, v)
		}
	}
	page, in := "", ""
	if key == "page" {
		page = value
	}
	if q.Steps {
		in = inSteps
	}
	for _, p := range [][2]string{{"q", q.Search}, {"in", in}, {"e", q.Expr}, {"sort", q.Sort}, {"page", page}} {
		set(p[0], p[1])
	}
	for _, f := range facets {
		set(f.key, q.Facets[f.key])
	}
	if len(values) == 0 {
		return "/"
	}
	return "/?" + values.Encode()
}

// selected is the result of an expression for the episodes of a place.
type selected map[string]bool

// maxKept limits the results that a place keeps per version of its index.
const maxKept = 32

// selectBy returns the ids of the episodes for which an expression holds. It reads steps only if
// the expression uses them. The caller holds p.mu.
func (p *place) selectBy(ctx context.Context, expr string) (selected, error) {
	p.cache.Lock()
	defer p.cache.Unlock()
	if kept, ok := p.cache.kept[expr]; ok {
		return kept, nil
	}
	recipe, err := selection.FromExpr(expr)
	if err != nil {
		return nil, err
	}
	result, err := recipe.Apply(ctx, func(ctx context.Context, steps bool) iter.Seq2[selection.Episode, error] {
		if steps {
			return p.data.Episodes(ctx, true)
		}
		return func(yield func(selection.Episode, error) bool) {
			for _, e := range p.entries {
				if e.row != nil && !yield(selection.Episode{Row: *e.row}, nil) {
					return
				}
			}
		}
	})
	if err != nil {
		return nil, err
	}
	kept := selected{}
	for _, id := range result.Kept {
		kept[id] = true
	}
	if len(p.cache.kept) >= maxKept {
		clear(p.cache.kept)
	}
	p.cache.kept[expr] = kept
	return kept, nil
}

// find returns the entries that match a query except for its facets, which it applies with
// narrow. The callers hold the locks of all places.
func find(ctx context.Context, places []*place, q query) ([]*entry, error) {
	var out []*entry
	words := strings.Fields(strings.ToLower(q.Search))
	if q.Steps {
		words = nil
	}
	for _, p := range places {
		var kept selected
		if q.Expr != "" {
			var err error
			if kept, err = p.selectBy(ctx, q.Expr); err != nil {
				return nil, err
			}
		}
		for _, e := range p.entries {
			matches := q.Expr == "" || kept[e.id]
			for _, w := range words {
				matches = matches && strings.Contains(e.search, w)
			}
			if matches {
				out = append(out, e)
			}
		}
	}
	return out, nil
}

// narrow returns the entries that have the values of the facets, except for the facet skip.
func narrow(entries []*entry, q query, skip string) []*entry {
	for _, f := range facets {
		if want := q.Facets[f.key]; want != "" && f.key != skip {
			entries = slices.DeleteFunc(slices.Clone(entries), func(e *entry) bool { return f.value(e) != want })
		}
	}
	return entries
}

// tokensColumn stands for the tokens of all model calls. They are no column of table episodes.
const tokensColumn = "tokens"

// sortEntries sorts by a column of table episodes, or by tokensColumn. Entries without a value come last.
func sortEntries(entries []*entry, by string) error {
	name, descending := strings.CutPrefix(by, "-")
	if by == "" {
		return nil
	}
	value := func(r *schemas.EpisodeRow) any {
		if n := metrics.Tokens(r); n != nil {
			return *n
		}
		return nil
	}
	if name != tokensColumn {
		column, err := episodeColumn("sort", name)
		if err != nil {
			return err
		}
		value = func(r *schemas.EpisodeRow) any { return column.Value(reflect.ValueOf(r).Elem()) }
	}
	values := make(map[*entry]any, len(entries))
	for _, e := range entries {
		if e.row != nil {
			values[e] = value(e.row)
		}
	}
	slices.SortStableFunc(entries, func(a, b *entry) int {
		x, y := values[a], values[b]
		switch {
		case x == nil && y == nil:
			return 0
		case x == nil:
			return 1
		case y == nil:
			return -1
		case descending:
			return -compareValues(x, y)
		}
		return compareValues(x, y)
	})
	return nil
}

// episodeColumn returns the column of table episodes that a parameter of the address names.
func episodeColumn(parameter, name string) (arrowrec.Column, error) {
	column, ok := arrowrec.Episodes.Column(name)
	if ok {
		return column, nil
	}
	var names []string
	for _, c := range arrowrec.Episodes.Columns {
		names = append(names, c.Name)
	}
	hint := ""
	if n := nearest.Name(name, names, 3); n != "" {
		hint = fmt.Sprintf(": did you mean %q?", n)
	}
	return column, fmt.Errorf("%s=%s: table episodes has no such column%s", parameter, name, hint)
}

// compareValues compares two values of one column.
func compareValues(a, b any) int {
	switch x := a.(type) {
	case string:
		return cmp.Compare(x, b.(string))
	case int32:
		return cmp.Compare(x, b.(int32))
	case int64:
		return cmp.Compare(x, b.(int64))
	case float64:
		return cmp.Compare(x, b.(float64))
	case time.Time:
		return x.Compare(b.(time.Time))
	case []string:
		return slices.Compare(x, b.([]string))
	case bool:
		switch {
		case x == b.(bool):
			return 0
		case x:
			return 1
		}
		return -1
	}
	return 0
}
