package cli

import (
	"fmt"
	"io"
	"reflect"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

// maxColumns limits the columns that compare prints without --all.
const maxColumns = 20

type compareFlags struct {
	dataFlags
	asJSON, all bool
}

func newCompare(s *State) *cobra.Command {
	var f compareFlags
	c := &cobra.Command{
		Use: "compare A B", Short: "Show which columns tell the episodes of two datasets or runs apart", Args: RangeArgs(2, 2),
		Long: `Show which columns of table episodes tell the episodes of two datasets or runs
apart.

AUC is the probability that an episode of A has a greater value than an episode
of B, where equal values count half: 1 and 0 separate the two completely, 0.5
not at all. The intervals come from a bootstrap that draws tasks.`,
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, s, args) },
	}
	f.Add(c)
	c.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&f.all, "all", false, "show all columns, also those that do not separate A and B")
	return c
}

// comparedGroup describes one of two groups of episodes.
type comparedGroup struct {
	Place    string `json:"place"`
	Episodes int    `json:"episodes"`
	Tasks    int    `json:"tasks"`
	Resolved int    `json:"resolved"`
}

func (f *compareFlags) run(c *cobra.Command, s *State, places []string) error {
	var groups [2]comparedGroup
	var separator metrics.Separator
	tasks := [2]map[string]bool{{}, {}}
	for i, place := range places {
		data, err := f.open(c, s, place)
		if err != nil {
			return err
		}
		groups[i].Place = place
		defer func() { _ = data.Close() }()
		for e, err := range data.Episodes(c.Context(), false) {
			if err != nil {
				return Usage(err)
			}
			task := e.Row.TaskSource + "\x00" + e.Row.InstanceID
			tasks[i][task] = true
			groups[i].Episodes++
			if schemas.Value(e.Row.Resolved) {
				groups[i].Resolved++
			}
			separator.Add(i, task, numbersOf(e.Row))
		}
		groups[i].Tasks = len(tasks[i])
	}
	shared := 0
	for task := range tasks[0] {
		if tasks[1][task] {
			shared++
		}
	}
	columns := separator.Separations()
	if f.asJSON {
		return PrintJSON(s, struct {
			Schema  string               `json:"schema"`
			A       comparedGroup        `json:"a"`
			B       comparedGroup        `json:"b"`
			Shared  int                  `json:"tasks_in_both"`
			Columns []metrics.Separation `json:"columns"`
		}{"tracesmith.compare/1", groups[0], groups[1], shared, columns})
	}
	printComparison(s.Stdout, groups, shared, columns, f.all)
	return nil
}

// numbersOf returns the columns of an episode that are numbers or truth values.
func numbersOf(e schemas.EpisodeRow) map[string]float64 {
	row, out := reflect.ValueOf(e), map[string]float64{}
	for _, column := range arrowrec.Episodes.Columns {
		switch v := column.Value(row).(type) {
		case bool:
			out[column.Name] = 0
			if v {
				out[column.Name] = 1
			}
		case int32:
			out[column.Name] = float64(v)
		case int64:
			out[column.Name] = float64(v)
		case float64:
			out[column.Name] = v
		}
	}
	return out
}

func printComparison(w io.Writer, groups [2]comparedGroup, shared int, columns []metrics.Separation, all bool) {
	for i, g := range groups {
		fmt.Fprintf(w, "%c  %s: %s of %s, %d resolved\n", 'A'+i, g.Place, count(g.Episodes, "episode"), count(g.Tasks, "task"), g.Resolved)
	}
	fmt.Fprintf(w, "%s in both\n\n%-30s %11s %11s %6s %15s\n", count(shared, "task"), "column", "mean A", "mean B", "AUC", "95 % interval")
	left := 0
	for i, c := range columns {
		separates := c.Low != nil && (*c.Low > 0.5 || *c.High < 0.5)
		if !all && (i >= maxColumns || !separates) {
			left++
			continue
		}
		interval := ""
		if c.Low != nil {
			interval = fmt.Sprintf("%.3f to %.3f", *c.Low, *c.High)
		}
		fmt.Fprintf(w, "%-30s %11.5g %11.5g %6.3f %15s\n", c.Column, c.Mean[0], c.Mean[1], c.AUC, interval)
	}
	if left > 0 {
		fmt.Fprintf(w, "and %s that separate less or not at all: see --all\n", count(left, "column"))
	}
}
