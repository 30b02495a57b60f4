package cli

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

// seekingStats holds the means of the metrics of information seeking, over all episodes and by the
// values of some columns.
type seekingStats struct {
	all       metrics.Summary
	groupings []arrowrec.Grouping
	by        map[string]map[string]*metrics.Summary // by the name of a grouping and by value
}

// seekingColumns are the columns by which the output of --json groups the metrics.
var seekingColumns = []string{"gold_operator", "bug_kind", "repo", "difficulty"}

func newSeekingStats(groupings ...arrowrec.Grouping) *seekingStats {
	s := &seekingStats{by: map[string]map[string]*metrics.Summary{}}
	for _, g := range groupings {
		if name := g.Name(); name != "" && s.by[name] == nil {
			s.groupings, s.by[name] = append(s.groupings, g), map[string]*metrics.Summary{}
		}
	}
	return s
}

func (s *seekingStats) add(e *schemas.EpisodeRow) {
	s.all.Add(e)
	for _, g := range s.groupings {
		groups, value := s.by[g.Name()], g.Value(e)
		if groups[value] == nil {
			groups[value] = &metrics.Summary{}
		}
		groups[value].Add(e)
	}
}

// seekingJSON is the form of seekingStats in the output of --json.
type seekingJSON struct {
	All []metrics.Mean                       `json:"all"`
	By  map[string]map[string][]metrics.Mean `json:"by"` // by column and value
}

func (s *seekingStats) json() *seekingJSON {
	out := &seekingJSON{All: s.all.Means(), By: map[string]map[string][]metrics.Mean{}}
	if out.All == nil {
		return nil
	}
	for name, groups := range s.by {
		out.By[name] = map[string][]metrics.Mean{}
		for value, summary := range groups {
			if means := summary.Means(); means != nil {
				out.By[name][value] = means
			}
		}
	}
	return out
}

// print prints the means over all episodes, and those for each value of the grouping with a name.
func (s *seekingStats) print(w io.Writer, name string) {
	means := s.all.Means()
	if means == nil {
		return
	}
	fmt.Fprintf(w, "\n%-32s %9s %19s %8s %6s\n", "information seeking", "mean", "95 % interval", "episodes", "tasks")
	printMeans(w, means)
	groups := s.by[name]
	values := slices.SortedFunc(maps.Keys(groups), func(a, b string) int {
		return cmp.Or(groups[b].Episodes()-groups[a].Episodes(), strings.Compare(a, b))
	})
	for _, value := range values[:min(len(values), 20)] {
		if means := groups[value].Means(); means != nil {
			fmt.Fprintf(w, "\n%s\n", name+" "+value)
			printMeans(w, means)
		}
	}
	if n := len(values) - 20; n > 0 {
		fmt.Fprintf(w, "\nand %d more: see --json\n", n)
	}
}

func printMeans(w io.Writer, means []metrics.Mean) {
	for _, m := range means {
		interval := ""
		if m.Low != nil {
			interval = fmt.Sprintf("%.3f to %.3f", *m.Low, *m.High)
		}
		fmt.Fprintf(w, "  %-30s %9.3f %19s %8d %6d\n", m.Metric, m.Mean, interval, m.Episodes, m.Tasks)
	}
}
