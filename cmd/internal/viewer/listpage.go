package viewer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/schemas"
)

// listPage is the list of episodes, as the template shows it.
type listPage struct {
	page
	Query      query
	Places     []placeView
	Columns    []columnHead
	Lines      []lineView
	Facets     []facetView
	Hidden     []param // parameters that the forms carry along
	Total      int     // lines of all places
	Matched    int     // lines that match the query
	From, To   int     // positions of the lines of this page
	Previous   string  // address of the previous page; "" if there is none
	Next       string
	Several    bool // more than one place
	Jobs       []jobsView
	Error      string
	Limit      string   // says that a search in the steps reached its limit
	entries    []*entry // all that match
	numbers    []int    // numberColumns that it has
	hits       map[*entry]stepHits
	unsearched int
}

type param struct{ Name, Value string }

type placeView struct {
	Number     int
	Name, Kind string
	Counts     string // of episodes, of jobs without one, and of verdicts
	Live       string // progress of a run that is being worked on
	Share      int    // of Live, in percent
	Warnings   []string
}

type columnHead struct {
	Title, Link string
	About       string
	Order       string // ascending, descending or none, as in aria-sort
	Number      bool
}

type facetView struct {
	Title, About string
	Values       []facetValue
	More         int // values that are not shown
}

type facetValue struct {
	Label, Link string
	Count       int
	On          bool
}

type lineView struct {
	Link                               string // "" if there is nothing to open
	ID, Place, Task, Agent, Model      string
	OutcomeAbout                       string
	Outcome, Class, Detail, Mark, Note string
	Turns, Steps                       string
	Numbers                            []param   // by the titles of numberColumns
	Span                               int       // columns between outcome and id
	Hits                               []hitView // of a search in the steps
	MoreHits                           int
}

// hitView is a step that contains the text of a search.
type hitView struct {
	Link, Before, Text, After string
	Step                      int32
}

// numberColumns are the columns of the list with a number. Those without a value in any line are left out.
var numberColumns = []struct {
	title, column string // of table episodes, or tokensColumn
	text          func(*schemas.EpisodeRow) string
}{
	{"Turns", "n_turns", func(r *schemas.EpisodeRow) string { return fmt.Sprint(r.NTurns) }},
	{"Steps", "n_steps", func(r *schemas.EpisodeRow) string { return fmt.Sprint(r.NSteps) }},
	{"pdb", "n_pdb", func(r *schemas.EpisodeRow) string { return textOr(r.NPDB, grouped) }},
	{"Errors", "n_errors", func(r *schemas.EpisodeRow) string { return textOr(r.NErrors, grouped) }},
	{"Tokens", tokensColumn, func(r *schemas.EpisodeRow) string { return textOr(metrics.Tokens(r), grouped) }},
	{"Cost", "cost_usd", func(r *schemas.EpisodeRow) string { return textOr(r.CostUSD, observe.USD) }},
	{"Time", "wall_ms", func(r *schemas.EpisodeRow) string { return textOr(r.WallMS, millis) }},
}

// textOr returns the text of a value, or "" if there is none.
func textOr[V any](v *V, text func(V) string) string {
	if v == nil {
		return ""
	}
	return text(*v)
}

// list answers a query. An error of the query is part of the page.
func (s *Server) list(ctx context.Context, q query) *listPage {
	l := &listPage{Query: q, Several: len(s.places) > 1}
	l.page, l.Jobs = s.page("Episodes", "list"), s.jobs()
	for _, p := range s.places {
		l.Places = append(l.Places, p.view())
		l.Total += len(p.entries)
	}
	m, err := s.match(ctx, q)
	if err != nil {
		l.Error = err.Error()
	}
	l.entries, l.hits, l.unsearched = m.shown, m.hits, m.unsearched
	if l.unsearched > 0 {
		l.Limit = fmt.Sprintf("The search stopped after %s steps, before it had read all episodes: look for a longer text, or narrow the list.", grouped(maxHits))
	}
	l.addFacets(m.found)
	l.Matched = len(l.entries)
	l.addColumns()
	l.paginate()
	for _, f := range facets {
		if v := q.Facets[f.key]; v != "" {
			l.Hidden = append(l.Hidden, param{f.key, v})
		}
	}
	if q.Sort != "" {
		l.Hidden = append(l.Hidden, param{"sort", q.Sort})
	}
	return l
}

// addColumns adds the heads of those columns that have a value in a line that matches.
func (l *listPage) addColumns() {
	for _, c := range [][2]string{{"Outcome", "outcome"}, {"Task", "instance_id"}, {"Agent", "agent_name"}} {
		l.Columns = append(l.Columns, l.Query.head(c[0], c[1], false))
	}
	for i, c := range numberColumns {
		if slices.ContainsFunc(l.entries, func(e *entry) bool { return e.row != nil && c.text(e.row) != "" }) {
			l.Columns = append(l.Columns, l.Query.head(c.title, c.column, true))
			l.numbers = append(l.numbers, i)
		}
	}
	l.Columns = append(l.Columns, l.Query.head("Episode", "episode_id", false))
}

// paginate fills in the lines of the requested page.
func (l *listPage) paginate() {
	pages := max(1, (l.Matched+pageSize-1)/pageSize)
	l.Query.Page = min(l.Query.Page, pages)
	from := (l.Query.Page - 1) * pageSize
	shown := l.entries[from:min(from+pageSize, l.Matched)]
	l.From, l.To = min(from+1, l.Matched), from+len(shown)
	if l.Query.Page > 1 {
		l.Previous = l.Query.with("page", fmt.Sprint(l.Query.Page-1))
	}
	if l.Query.Page < pages {
		l.Next = l.Query.with("page", fmt.Sprint(l.Query.Page+1))
	}
	for _, e := range shown {
		line := e.line().at(e, l.Query, l.hits[e])
		line.Span = len(l.Columns) - 2
		for _, i := range l.numbers {
			number := param{Name: numberColumns[i].title}
			if e.row != nil {
				number.Value = numberColumns[i].text(e.row)
			}
			line.Numbers = append(line.Numbers, number)
		}
		l.Lines = append(l.Lines, line)
	}
}

// head returns the head of a column, whose link sorts by it.
func (q query) head(title, column string, number bool) columnHead {
	h := columnHead{Title: title, About: about(column), Number: number, Order: "none", Link: q.with("sort", column)}
	if number {
		h.Link = q.with("sort", "-"+column)
	}
	switch q.Sort {
	case column:
		h.Order, h.Link = "ascending", q.with("sort", "-"+column)
	case "-" + column:
		h.Order, h.Link = "descending", q.with("sort", column)
	}
	return h
}

// maxFacetValues limits the values that the list shows of a facet.
const maxFacetValues = 12

// addFacets counts the values of every facet among the entries that match the rest of the query.
func (l *listPage) addFacets(found []*entry) {
	for _, f := range facets {
		if f.key == "place" && !l.Several {
			continue
		}
		counts, labels, total := map[string]int{}, map[string]string{}, 0
		for _, e := range narrow(found, l.Query, f.key) {
			if v := f.value(e); v != "" {
				counts[v]++
				total++
				if f.key == "place" {
					labels[v] = e.place.name
				}
			}
		}
		chosen := l.Query.Facets[f.key]
		if (len(counts) < 2 || len(counts) == total) && chosen == "" {
			continue // the values do not divide the entries into groups
		}
		values := make([]string, 0, len(counts))
		for v := range counts {
			values = append(values, v)
		}
		slices.SortFunc(values, func(a, b string) int { return cmp.Or(counts[b]-counts[a], strings.Compare(a, b)) })
		view := facetView{Title: f.title, About: about(f.column)}
		for i, v := range values {
			if i >= maxFacetValues && v != chosen {
				view.More++
				continue
			}
			link := l.Query.with(f.key, v)
			if v == chosen {
				link = l.Query.with(f.key, "")
			}
			view.Values = append(view.Values, facetValue{Label: cmp.Or(labels[v], v), Count: counts[v], Link: link, On: v == chosen})
		}
		l.Facets = append(l.Facets, view)
	}
}

func (p *place) view() placeView {
	v := placeView{Number: p.number, Name: p.name, Kind: p.kind(), Counts: plural(int64(len(p.episodes)), "episode")}
	v.Warnings = p.data.Warnings()
	for _, d := range p.data.Damaged() {
		v.Warnings = append(v.Warnings, fmt.Sprintf("%v; %s of table %s left out", d.Err, plural(d.Rows, "row"), d.Table))
	}
	if without := len(p.entries) - len(p.episodes); without > 0 {
		v.Counts += fmt.Sprintf(", %s without one", plural(int64(without), "job"))
	}
	var s observe.Successes
	for _, e := range p.episodes {
		switch {
		case e.row.Resolved == nil:
			continue
		case *e.row.Resolved && e.row.GoldUsed:
			s.Gold++
			if schemas.Value(e.row.Ending) == schemas.EndingEdit {
				s.Derived++
			}
		case *e.row.Resolved:
			s.Alone++
		}
		s.Verified++
	}
	if s.Verified > 0 {
		v.Counts += " · " + s.String()
	}
	if s := p.status; s != nil && p.running() == nil {
		v.Counts += fmt.Sprintf(" · %s: %s selected", s.Phase, grouped(s.Selected))
		if left := s.Waiting + s.Running; left > 0 {
			v.Counts += fmt.Sprintf(", %s without an outcome: repeat the run command", grouped(left))
		}
		if s.Failed > 0 {
			v.Counts += fmt.Sprintf(", %s given up: repeat the run command with --retry infra", grouped(s.Failed))
		}
	}
	if s := p.running(); s != nil {
		v.Live = fmt.Sprintf("%d of %d done, %d running", s.Done+s.Failed, s.Selected, s.Running)
		v.Share = 100 * (s.Done + s.Failed) / max(1, s.Selected)
	}
	return v
}

func (e *entry) line() lineView {
	m := e.place.marks[e.id]
	v := lineView{ID: shortID(e.id), Place: e.place.name, Outcome: e.outcome(), Mark: m.Mark, Note: m.Note, Class: "plain"}
	switch {
	case e.open != nil:
		v.Task = cmp.Or(e.open.Instance, "unknown task")
		v.Detail = "not finished: repeat the run command to continue it"
		if job := e.place.job(e.id); job != nil {
			v.Task, v.Detail = fmt.Sprintf("%s#%d", job.Instance, job.Attempt), job.Text()
		}
	case e.dead != nil:
		v.Class = "bad"
		v.Task = cmp.Or(e.dead.Instance, "task "+shortID(schemas.Value(e.dead.InputRef)))
		v.Detail = fmt.Sprintf("no episode after %s: %s", plural(e.dead.Attempts, "attempt"), schemas.Value(e.dead.ErrorMessage))
	default:
		e.fill(&v)
	}
	return v
}

// at adds what depends on the list: the address of the episode, and what a search found in its steps.
func (v lineView) at(e *entry, q query, h stepHits) lineView {
	if v.Link == "" {
		return v
	}
	v.Link = e.address(q)
	for _, x := range h.Excerpts {
		v.Hits = append(v.Hits, hitView{fmt.Sprintf("%s#s%d", v.Link, x.Step), visible(x.Before), visible(x.Text), visible(x.After), x.Step})
	}
	v.MoreHits = h.Steps - len(h.Excerpts)
	return v
}

// fill sets the fields of the line of an episode.
func (e *entry) fill(v *lineView) {
	r := e.row
	v.Link = e.address(query{})
	v.Task, v.Agent, v.Model = fmt.Sprintf("%s#%d", r.InstanceID, r.Attempt), r.AgentName, r.Model
	v.Class, v.OutcomeAbout = outcomeClass(schemas.Value(r.Outcome)), outcomeAbout(r)
	v.Turns, v.Steps = fmt.Sprint(r.NTurns), fmt.Sprint(r.NSteps)
	v.Detail = cmp.Or(schemas.Value(r.ErrorMessage), schemas.Value(r.VerifyReason))
	if outcome := schemas.Value(r.Outcome); outcome == schemas.OutcomeAgentError || outcome == schemas.OutcomeLimit {
		v.Detail = strings.TrimSuffix(r.ExitReason+": "+v.Detail, ": ") // the verdict does not tell why it ended
	}
}

// outcomeAbout explains the outcome of an episode whose agent could see the reference fix.
func outcomeAbout(r *schemas.EpisodeRow) string {
	switch {
	case r.OutcomeText() == schemas.Value(r.Outcome):
		return about("outcome")
	case schemas.Value(r.Ending) == schemas.EndingEdit:
		return "the agent knows the reference fix, but derived its own edit from what it saw"
	}
	return "the agent knows the reference fix and made its edits"
}

// columnMeanings are the meanings of the columns of table episodes.
var columnMeanings = sync.OnceValue(func() map[string]string {
	meanings := map[string]string{}
	table, _ := schemas.Table("episodes")
	for _, c := range table.Columns {
		meanings[c.Name] = c.Meaning
	}
	meanings[tokensColumn] = "tokens of all prompts and replies"
	return meanings
})

// about returns what a column of table episodes means.
func about(column string) string { return columnMeanings()[column] }

// outcomeClass returns the style class of an outcome. The word itself always stands next to it.
func outcomeClass(outcome string) string {
	switch outcome {
	case schemas.OutcomeResolved:
		return "good"
	case schemas.OutcomeInfra, schemas.OutcomeAgentError:
		return "bad"
	case schemas.OutcomeUnresolved, schemas.OutcomeLimit:
		return "warn"
	}
	return "plain"
}
