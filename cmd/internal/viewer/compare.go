package viewer

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

// maxTasks limits the rows of a table of tasks.
const maxTasks = 1000

// comparePage compares two places, as the template shows it.
type comparePage struct {
	page
	Places     []placeView
	A, B       int      // numbers of the places
	About      []string // a line about each of them
	By         string   // columns that make the kinds
	Tables     []rateTable
	Flips      string // how many tasks only one of them resolves
	Tasks      []taskTable
	All        bool   // also show the tasks that did not flip
	Other      string // address of the page with the opposite of All
	Swap, JSON string
	Error      string
}

// rateTable shows rates of A and B, one row for each group of tasks.
type rateTable struct {
	Title, Head string
	Rows        []rateRow
}

type rateRow struct {
	Name         string
	A, B, Change rateCell
}

type rateCell struct{ Value, Range string }

// taskTable shows tasks of A and B with links to their episodes.
type taskTable struct {
	Title string
	Rows  []taskRow
	More  int // tasks that are not shown
}

type taskRow struct {
	Task, Kind string
	A, B       []attemptLink
}

type attemptLink struct{ Link, Text, Class string }

// compareJSON is the page for programs. It has the schema of `tracesmith compare --json`.
type compareJSON struct {
	metrics.Comparison
	Error string `json:"error,omitempty"`
}

// comparedSide is A or B.
type comparedSide struct {
	place *place
	side  *metrics.Side
	tasks map[string][]*entry
}

func (s *Server) showCompare(r *http.Request) (answer, error) {
	values := r.URL.Query()
	by, err := columnsNamed("by", cmp.Or(values.Get("by"), "bug_kind"))
	v := &comparePage{page: s.page("Comparison", "compare"), By: by.Name(), All: values.Get("all") != ""}
	if err != nil {
		v.Error = err.Error()
	}
	var sides [2]comparedSide
	for i, name := range []string{"a", "b"} {
		p, err := s.placeNumbered(cmp.Or(values.Get(name), strconv.Itoa(i+1)))
		if err != nil {
			return answer{}, err
		}
		sides[i] = newComparedSide(p, by)
	}
	for _, p := range s.places {
		v.Places = append(v.Places, p.view())
	}
	a, b := sides[0], sides[1]
	c := metrics.Compare(a.side, b.side, v.By)
	v.A, v.B = a.place.number, b.place.number
	v.Swap, v.JSON = v.address(v.B, v.A, v.All), "/api/v1"+v.address(v.A, v.B, false)
	v.Other = v.address(v.A, v.B, !v.All)
	v.fill(c, a, b)
	return answer{"compare", v, compareJSON{c, v.Error}}, nil
}

// columnsNamed returns the grouping by the columns that a parameter of the address names.
func columnsNamed(parameter, names string) (arrowrec.Grouping, error) {
	var g arrowrec.Grouping
	for name := range strings.SplitSeq(names, ",") {
		column, err := episodeColumn(parameter, strings.TrimSpace(name))
		if err != nil {
			return nil, err
		}
		g = append(g, column)
	}
	return g, nil
}

func newComparedSide(p *place, by arrowrec.Grouping) comparedSide {
	s := comparedSide{p, metrics.NewSide(p.data.Place), map[string][]*entry{}}
	for _, e := range p.entries {
		if e.row != nil {
			s.side.Add(e.row, by.Value(e.row))
			task := metrics.TaskOf(e.row)
			s.tasks[task] = append(s.tasks[task], e)
		}
	}
	return s
}

func (v *comparePage) address(a, b int, all bool) string {
	values := url.Values{"a": {strconv.Itoa(a)}, "b": {strconv.Itoa(b)}, "by": {v.By}}
	if all {
		values.Set("all", "1")
	}
	return "/compare?" + values.Encode()
}

// fill fills in what the page shows of a comparison.
func (v *comparePage) fill(c metrics.Comparison, a, b comparedSide) {
	for i, p := range []metrics.ComparedPlace{c.A, c.B} {
		v.About = append(v.About, fmt.Sprintf("%c is %s: %s of %s%s%s", 'A'+i, visible(p.Place), plural(int64(p.Episodes), "episode"), plural(int64(p.Tasks), "task"), visible(p.WithModels()), p.WithGold()))
	}
	totals := rateTable{Head: "Resolved", Rows: []rateRow{newRateRow(plural(int64(c.All.Tasks), "task"), c.All)}}
	if c.Shared.Tasks > 0 && c.Shared.Tasks < c.All.Tasks {
		totals.Rows = append(totals.Rows, newRateRow(plural(int64(c.Shared.Tasks), "task")+" with verdicts of both", c.Shared))
	}
	totals.Rows = append(totals.Rows, moneyRow(c.A.CostPerResolved, c.B.CostPerResolved), tokensRow(c.A.TokensPerEpisode(), c.B.TokensPerEpisode()))
	kinds := rateTable{Title: "By " + v.By, Head: "Resolved"}
	slices.SortStableFunc(c.Kinds, func(x, y *metrics.ComparedKind) int { return y.Tasks - x.Tasks })
	for _, k := range c.Kinds {
		kinds.Rows = append(kinds.Rows, newRateRow(fmt.Sprintf("%s (%s)", visible(k.Value), plural(int64(k.Tasks), "task")), k.ComparedRates))
	}
	if v.Tables = []rateTable{totals}; v.By != "" {
		v.Tables = append(v.Tables, kinds)
	}
	f := c.Flips
	v.Flips = fmt.Sprintf("%s in both: %d resolved by both, %d only by A, %d only by B, %d by neither", plural(int64(len(c.Tasks)), "task"), f.Both, f.OnlyA, f.OnlyB, f.Neither)
	if f.Unverified > 0 {
		v.Flips += fmt.Sprintf(", %d without a verdict of both", f.Unverified)
	}
	if f.OnlyA+f.OnlyB > 0 {
		v.Flips += fmt.Sprintf(". Sign test of %d against %d: p = %s", f.OnlyA, f.OnlyB, observe.Probability(f.P))
	}
	v.addTasks("Resolved only by A", c, a, b, (*metrics.ComparedTask).OnlyA)
	v.addTasks("Resolved only by B", c, a, b, (*metrics.ComparedTask).OnlyB)
	if v.All {
		v.addTasks("Other tasks in both", c, a, b, func(t *metrics.ComparedTask) bool { return !t.OnlyA() && !t.OnlyB() })
	}
}

func newRateRow(name string, r metrics.ComparedRates) rateRow {
	side := func(r metrics.Rate) rateCell {
		if r.Rate == nil {
			return rateCell{Value: "no verdict"}
		}
		return rateCell{observe.Percent(r.Rate), fmt.Sprintf("%d of %d, %s", r.Resolved, r.Verified, observe.PercentRange(r.Low, r.High))}
	}
	row := rateRow{Name: name, A: side(r.A), B: side(r.B)}
	if d := r.Difference; d.Difference != nil {
		row.Change = rateCell{observe.Points(d.Difference) + " points", observe.PointRange(d.Low, d.High)}
	}
	return row
}

func moneyRow(a, b *float64) rateRow {
	return amountRow("Cost per resolved episode", a, b, func(v float64) string {
		if v < 0 {
			return "-" + observe.USD(-v)
		}
		return observe.USD(v)
	})
}

func tokensRow(a, b *float64) rateRow {
	return amountRow("Tokens per episode", a, b, func(v float64) string { return grouped(int64(v)) })
}

// amountRow compares two amounts, which are nil if they are unknown.
func amountRow(name string, a, b *float64, format func(float64) string) rateRow {
	row := rateRow{Name: name, A: rateCell{Value: "unknown"}, B: rateCell{Value: "unknown"}}
	if a != nil {
		row.A.Value = format(*a)
	}
	if b != nil {
		row.B.Value = format(*b)
	}
	if a != nil && b != nil {
		if row.Change.Value = format(*b - *a); *b > *a {
			row.Change.Value = "+" + row.Change.Value
		}
	}
	return row
}

// addTasks adds a table of the tasks that show accepts.
func (v *comparePage) addTasks(title string, c metrics.Comparison, a, b comparedSide, show func(*metrics.ComparedTask) bool) {
	table := taskTable{Title: title}
	for _, t := range c.Tasks {
		switch {
		case !show(t):
		case len(table.Rows) == maxTasks:
			table.More++
		default:
			table.Rows = append(table.Rows, taskRow{t.Task, t.Kind, attemptLinks(a.tasks[t.Task]), attemptLinks(b.tasks[t.Task])})
		}
	}
	if len(table.Rows) > 0 {
		v.Tasks = append(v.Tasks, table)
	}
}

func attemptLinks(attempts []*entry) []attemptLink {
	var links []attemptLink
	for _, e := range attempts {
		outcome := e.row.OutcomeText()
		links = append(links, attemptLink{e.address(query{}), fmt.Sprintf("#%d %s", e.row.Attempt, outcome), outcomeClass(schemas.Value(e.row.Outcome))})
	}
	return links
}
