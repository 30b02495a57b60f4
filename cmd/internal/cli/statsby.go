package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/pipeline/publish"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

// newGrouping returns the grouping by the columns that --by names.
func newGrouping(names []string) (arrowrec.Grouping, error) {
	var g arrowrec.Grouping
	for _, name := range names {
		column, err := episodeColumn("by", strings.TrimSpace(name))
		if err != nil {
			return nil, err
		}
		g = append(g, column)
	}
	return g, nil
}

// verdictGroup holds the verdicts of the episodes with the same value. Only episodes whose policy could not
// see the gold patch count for a rate of success.
type verdictGroup struct {
	counts    publish.VerdictCounts
	own, gold metrics.Group
}

func (g *verdictGroup) add(e *schemas.EpisodeRow) {
	g.counts = g.counts.With(*e)
	if e.GoldUsed {
		g.gold.Add(e)
	} else {
		g.own.Add(e)
	}
}

// verdictGroupJSON is the form of a verdictGroup in the output of --json.
type verdictGroupJSON struct {
	publish.VerdictCounts
	Own  metrics.GroupSummary `json:"without_gold"`
	Gold metrics.GroupSummary `json:"with_gold"`
}

func groupsJSON(groups map[string]*verdictGroup) map[string]verdictGroupJSON {
	out := map[string]verdictGroupJSON{}
	for value, g := range groups {
		out[value] = verdictGroupJSON{g.counts, g.own.Summary(), g.gold.Summary()}
	}
	return out
}

// printGroups prints the verdicts for each value, most frequent values first.
func printGroups(w *screen, name string, groups map[string]*verdictGroup) {
	values := slices.SortedFunc(maps.Keys(groups), func(a, b string) int {
		return cmp.Or(groups[b].counts.All()-groups[a].counts.All(), strings.Compare(a, b))
	})
	anyOwn := slices.ContainsFunc(values, func(v string) bool { return groups[v].own.Summary().Rate.Verified > 0 })
	anyGold := slices.ContainsFunc(values, func(v string) bool { return groups[v].gold.Summary().Rate.Verified > 0 })
	titles := []string{"by " + name, "episodes"}
	rows := make([][]cell, len(values))
	for i, value := range values {
		rows[i] = []cell{{text: w.safe(value)}, number("%d", groups[value].counts.All())}
	}
	add := func(cells func(*verdictGroup) []cell, columns ...string) {
		titles = append(titles, columns...)
		for i, value := range values {
			rows[i] = append(rows[i], cells(groups[value])[:len(columns)]...)
		}
	}
	rate := []string{"rate", "95 % interval", "$/resolved"}
	if anyOwn || !anyGold {
		add(func(g *verdictGroup) []cell { return rateCells(g.own.Summary()) }, append([]string{"resolved"}, rate...)...)
	}
	if anyGold {
		if anyOwn {
			rate = nil
		}
		add(func(g *verdictGroup) []cell { return rateCells(g.gold.Summary()) }, append([]string{"with gold"}, rate...)...)
	}
	fmt.Fprintln(w)
	w.table(titles, rows)
}

// rateCells returns the verdicts of a group, their rate with its interval, and the cost per resolved episode.
func rateCells(s metrics.GroupSummary) []cell {
	return []cell{
		outOf(s.Rate.Attempts), {text: observe.Percent(s.Rate.Rate), number: true},
		{text: observe.PercentRange(s.Rate.Low, s.Rate.High), number: true}, {text: dollars(s.CostPerResolved), number: true},
	}
}

func number(format string, v any) cell { return cell{text: fmt.Sprintf(format, v), number: true} }

// outOf formats how many of the attempts with a verdict are resolved.
func outOf(a metrics.Attempts) cell {
	if a.Verified == 0 {
		return cell{text: unknownText, number: true}
	}
	return cell{text: fmt.Sprintf("%d/%d", a.Resolved, a.Verified), number: true}
}

func dollars(v *float64) string {
	if v == nil {
		return unknownText
	}
	return fmt.Sprintf("%.4f", *v)
}
