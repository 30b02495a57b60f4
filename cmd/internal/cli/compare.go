package cli

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

type compareFlags struct {
	dataFlags
	pagerFlags
	by                   []string
	asJSON, all, columns bool
}

func newCompare(s *State) *cobra.Command {
	var f compareFlags
	c := &cobra.Command{
		Use: "compare A B", Short: "Compare verdicts and costs of two datasets or runs", Args: RangeArgs(2, 2),
		Long: `Compare the episodes of two datasets or runs: resolved rates and costs, the
tasks that only one of them resolves, and rates by kind of bug.

A rate is the share of resolved episodes among those with a verdict. A task is
resolved if at least one attempt is. Intervals cover 95 %: those of rates are
Wilson's, those of differences Newcombe's, paired if A and B have the same
tasks. Both allow for several attempts at a task.

--columns also shows which columns of table episodes tell the two apart. AUC is
the probability that an episode of A has a greater value than an episode of B,
where equal values count half: 1 and 0 separate the two completely, 0.5 not at
all. These intervals come from a bootstrap that draws tasks.`,
		Example: "  tracesmith compare runs/small runs/large\n  tracesmith compare runs/small runs/large --by difficulty,bug_kind --all",
		RunE: func(c *cobra.Command, args []string) error {
			by, err := newGrouping(f.by)
			if err != nil {
				return Usage(err)
			}
			return f.run(c, s, args, by)
		},
	}
	f.dataFlags.Add(c)
	c.Flags().StringSliceVar(&f.by, "by", []string{"bug_kind"}, "show rates by these columns of table episodes")
	Must(c.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(episodeColumns(), cobra.ShellCompDirectiveNoFileComp)))
	c.Flags().BoolVar(&f.columns, "columns", false, "also show which columns separate A and B")
	c.Flags().BoolVar(&f.all, "all", false, "show all tasks, and all columns with --columns")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	f.pagerFlags.Add(c)
	return c
}

func (f *compareFlags) run(c *cobra.Command, s *State, places []string, by arrowrec.Grouping) error {
	var sides [2]*metrics.Side
	var separator metrics.Separator
	var damage error
	for i, place := range places {
		data, err := f.open(c, s, place)
		if err != nil {
			return err
		}
		defer func() { _ = data.Close() }()
		data.SkipDamaged()
		if sides[i], err = f.read(c.Context(), data, by, func(e *schemas.EpisodeRow) {
			if f.columns {
				separator.Add(i, metrics.TaskOf(e), numbersOf(*e))
			}
		}); err != nil {
			return Usage(err)
		}
		damage = cmp.Or(damage, reportDamage(s, data, "the comparison is incomplete"))
	}
	result := metrics.Compare(sides[0], sides[1], by.Name())
	if f.columns {
		result.Columns = separator.Separations()
	}
	if f.asJSON {
		return cmp.Or(PrintJSON(s, result), damage)
	}
	return cmp.Or(f.print(s, func(w *screen) {
		printComparison(w, result, f.all)
		if f.columns {
			printColumns(w, result.Columns, f.all)
		}
	}), damage)
}

// read reads the episodes of a place and passes each to use.
func (f *compareFlags) read(ctx context.Context, data *wire.Data, by arrowrec.Grouping, use func(*schemas.EpisodeRow)) (*metrics.Side, error) {
	out := metrics.NewSide(data.Place)
	for e, err := range data.Episodes(ctx, false) {
		if err != nil {
			return nil, err
		}
		out.Add(&e.Row, by.Value(&e.Row))
		use(&e.Row)
	}
	return out, nil
}
