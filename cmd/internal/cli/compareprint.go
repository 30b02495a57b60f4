package cli

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

// maxListed limits the tasks of each kind of flip, and the columns, that compare prints without --all.
const maxListed = 20

func printComparison(w *screen, c metrics.Comparison, all bool) {
	for i, p := range []metrics.ComparedPlace{c.A, c.B} {
		about := fmt.Sprintf("%c  %s: %s of %s%s%s\n", 'A'+i, p.Place, count(p.Episodes, "episode"), count(p.Tasks, "task"), w.safe(p.WithModels()), p.WithGold())
		fmt.Fprint(w, observe.Wrap(about, w.width))
	}
	for i, verified := range []int{c.All.A.Verified, c.All.B.Verified} {
		if verified == 0 {
			fmt.Fprintf(w, "%c has no verdicts; what imported files claim is not counted\n", 'A'+i)
		}
	}
	fmt.Fprintf(w, "%s in both\n\n", count(len(c.Tasks), "task"))
	printTotalRates(w, c)
	if len(c.Tasks) > 0 {
		printFlips(w, c, all)
	}
	if len(c.Kinds) > 0 && c.By != "" {
		rows := [][]cell{}
		slices.SortStableFunc(c.Kinds, func(x, y *metrics.ComparedKind) int { return y.Tasks - x.Tasks })
		for _, k := range c.Kinds {
			rows = append(rows, []cell{
				{text: w.safe(k.Value)}, number("%d", k.Tasks), outOf(k.A.Attempts), {text: observe.Percent(k.A.Rate), number: true},
				outOf(k.B.Attempts), {text: observe.Percent(k.B.Rate), number: true}, {text: observe.Points(k.Difference.Difference), number: true}, {text: observe.PointRange(k.Difference.Low, k.Difference.High), number: true},
			})
		}
		fmt.Fprintln(w)
		w.table([]string{"by " + c.By, "tasks", "A", "rate", "B", "rate", "B - A", "95 % interval"}, rows)
	}
}

// printTotalRates prints rates and costs over all tasks, and rates over those in both if these differ.
func printTotalRates(w *screen, c metrics.Comparison) {
	var rows [][]cell
	add := func(name string, cells ...cell) {
		rows = append(rows, append([]cell{{text: name}}, cells...))
	}
	text := func(s string) cell { return cell{text: s, number: true} }
	addRates := func(name string, r metrics.ComparedRates) {
		add("resolved"+name, outOf(r.A.Attempts), outOf(r.B.Attempts), text(""))
		add("  rate", text(observe.Percent(r.A.Rate)), text(observe.Percent(r.B.Rate)), text(observe.Points(r.Difference.Difference)))
		add("  95 % interval", text(observe.PercentRange(r.A.Low, r.A.High)), text(observe.PercentRange(r.B.Low, r.B.High)), text(observe.PointRange(r.Difference.Low, r.Difference.High)))
	}
	addRates("", c.All)
	if c.Shared.Tasks > 0 && c.Shared.Tasks < c.All.Tasks {
		addRates(", tasks in both", c.Shared)
	}
	change := unknownText
	if x, y := c.A.CostPerResolved, c.B.CostPerResolved; x != nil && y != nil {
		change = fmt.Sprintf("%+.4f", *y-*x)
	}
	add("$/resolved", text(dollars(c.A.CostPerResolved)), text(dollars(c.B.CostPerResolved)), text(change))
	change = unknownText
	x, y := c.A.TokensPerEpisode(), c.B.TokensPerEpisode()
	if x != nil && y != nil {
		change = fmt.Sprintf("%+.0f", *y-*x)
	}
	add("tokens/episode", text(whole(x)), text(whole(y)), text(change))
	w.table([]string{"", "A", "B", "B - A"}, rows)
}

func printFlips(w *screen, c metrics.Comparison, all bool) {
	fmt.Fprintf(w, "\ntasks in both: %d resolved by both, %d only by A, %d only by B, %d by neither", c.Flips.Both, c.Flips.OnlyA, c.Flips.OnlyB, c.Flips.Neither)
	if c.Flips.Unverified > 0 {
		fmt.Fprintf(w, ",\n%d without a verdict", c.Flips.Unverified)
	}
	fmt.Fprintln(w)
	if n := c.Flips.OnlyA + c.Flips.OnlyB; n > 0 {
		fmt.Fprintf(w, "sign test of %d against %d: p = %s\n", c.Flips.OnlyA, c.Flips.OnlyB, observe.Probability(c.Flips.P))
	}
	printTasks(w, "resolved only by A", c, all, (*metrics.ComparedTask).OnlyA)
	printTasks(w, "resolved only by B", c, all, (*metrics.ComparedTask).OnlyB)
	if all {
		printTasks(w, "other tasks in both", c, all, func(t *metrics.ComparedTask) bool { return !t.OnlyA() && !t.OnlyB() })
	}
}

// printTasks prints the tasks that show accepts.
func printTasks(w *screen, title string, c metrics.Comparison, all bool, show func(*metrics.ComparedTask) bool) {
	var rows [][]cell
	for _, t := range c.Tasks {
		if show(t) {
			rows = append(rows, []cell{{text: w.safe(t.Task)}, {text: w.safe(t.Kind)}, outOf(t.A), outOf(t.B)})
		}
	}
	if len(rows) == 0 {
		return
	}
	more := 0
	if !all && len(rows) > maxListed {
		more = len(rows) - maxListed
		rows = rows[:maxListed]
	}
	fmt.Fprintln(w)
	w.table([]string{title, cmp.Or(c.By, "kind"), "A", "B"}, rows)
	if more > 0 {
		fmt.Fprintf(w, "and %d more: see --all\n", more)
	}
}

func whole(v *float64) string {
	if v == nil {
		return unknownText
	}
	return fmt.Sprintf("%.0f", *v)
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

// printColumns prints how well the columns separate A and B.
func printColumns(w *screen, columns []metrics.Separation, all bool) {
	fmt.Fprintf(w, "\n%-30s %11s %11s %6s %15s\n", "column", "mean A", "mean B", "AUC", "95 % interval")
	left := 0
	for i, c := range columns {
		separates := c.Low != nil && (*c.Low > 0.5 || *c.High < 0.5)
		if !all && (i >= maxListed || !separates) {
			left++
			continue
		}
		interval := ""
		if c.Low != nil {
			interval = fmt.Sprintf("%.3f to %.3f", *c.Low, *c.High)
		}
		fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%-30s %11.5g %11.5g %6.3f %15s", c.Column, c.Mean[0], c.Mean[1], c.AUC, interval), " "))
	}
	if left > 0 {
		fmt.Fprintf(w, "and %s that separate less or not at all: see --all\n", count(left, "column"))
	}
}
