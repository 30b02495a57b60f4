package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/pipeline/metrics"
	"github.com/tracesmith/tracesmith/schemas"
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

// side holds the episodes of A or B.
type side struct {
	place string
	all   metrics.Group
	kinds map[string]string                      // value of --by, by task
	by    map[string]map[string]metrics.Attempts // by value of --by and by task
}

func (s *side) add(e *schemas.EpisodeRow, by grouping) {
	s.all.Add(e)
	task, value := metrics.TaskOf(e), by.value(e)
	s.kinds[task] = value
	if s.by[value] == nil {
		s.by[value] = map[string]metrics.Attempts{}
	}
	s.by[value][task] = s.by[value][task].With(e)
}

// comparedRates are the rates of A and B over the same kind of tasks.
type comparedRates struct {
	Tasks int          `json:"tasks"`
	A     metrics.Rate `json:"a"`
	B     metrics.Rate `json:"b"`
	metrics.Difference
}

func newComparedRates(a, b map[string]metrics.Attempts) comparedRates {
	tasks := len(a)
	for task := range b {
		if _, inA := a[task]; !inA {
			tasks++
		}
	}
	return comparedRates{tasks, metrics.RateOf(a), metrics.RateOf(b), metrics.DifferenceOf(a, b)}
}

// comparedKind are the rates for a value of --by.
type comparedKind struct {
	Value string `json:"value"`
	comparedRates
}

// comparedTask is a task of A and B.
type comparedTask struct {
	Task string           `json:"task"`
	Kind string           `json:"by"` // value of --by
	A    metrics.Attempts `json:"a"`
	B    metrics.Attempts `json:"b"`
}

// flips counts the tasks of A and B by who resolved them with at least one attempt.
type flips struct {
	Both       int     `json:"both"`
	OnlyA      int     `json:"only_a"`
	OnlyB      int     `json:"only_b"`
	Neither    int     `json:"neither"`
	Unverified int     `json:"unverified"` // without a verdict in A or in B
	P          float64 `json:"p"`          // of the sign test for OnlyA and OnlyB
}

// comparison is the output of compare --json.
type comparison struct {
	Schema  string               `json:"schema"`
	A       comparedPlace        `json:"a"`
	B       comparedPlace        `json:"b"`
	All     comparedRates        `json:"all_tasks"`
	Shared  comparedRates        `json:"tasks_verified_in_both"`
	Flips   flips                `json:"flips"` // of the tasks in both
	Tasks   []*comparedTask      `json:"tasks"` // those in both
	By      string               `json:"by"`    // columns of Kinds
	Kinds   []*comparedKind      `json:"kinds"`
	Columns []metrics.Separation `json:"columns,omitempty"` // with --columns
}

type comparedPlace struct {
	Place string `json:"place"`
	metrics.GroupSummary
}

func (f *compareFlags) run(c *cobra.Command, s *State, places []string, by grouping) error {
	var sides [2]*side
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
	result := compareSides(sides[0], sides[1], by)
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
func (f *compareFlags) read(ctx context.Context, data *wire.Data, by grouping, use func(*schemas.EpisodeRow)) (*side, error) {
	out := &side{place: data.Place, kinds: map[string]string{}, by: map[string]map[string]metrics.Attempts{}}
	for e, err := range data.Episodes(ctx, false) {
		if err != nil {
			return nil, err
		}
		out.add(&e.Row, by)
		use(&e.Row)
	}
	return out, nil
}

func compareSides(a, b *side, by grouping) comparison {
	c := comparison{
		Schema: "tracesmith.compare/2", By: by.name(), Tasks: []*comparedTask{}, Kinds: []*comparedKind{},
		A: comparedPlace{a.place, a.all.Summary()}, B: comparedPlace{b.place, b.all.Summary()}, All: newComparedRates(a.all.Tasks, b.all.Tasks),
	}
	sharedA, sharedB := map[string]metrics.Attempts{}, map[string]metrics.Attempts{}
	for task, attempts := range a.all.Tasks {
		other, inB := b.all.Tasks[task]
		if !inB {
			continue
		}
		if attempts.Verified > 0 && other.Verified > 0 {
			sharedA[task], sharedB[task] = attempts, other
		}
		c.Tasks = append(c.Tasks, &comparedTask{task, a.kinds[task], attempts, other})
		c.Flips.add(attempts, other)
	}
	slices.SortFunc(c.Tasks, func(x, y *comparedTask) int { return strings.Compare(x.Task, y.Task) })
	c.Flips.P = metrics.SignTest(c.Flips.OnlyA, c.Flips.OnlyB)
	c.Shared = newComparedRates(sharedA, sharedB)
	values := map[string]bool{}
	for _, s := range []*side{a, b} {
		for value := range s.by {
			if !values[value] {
				c.Kinds = append(c.Kinds, &comparedKind{value, newComparedRates(a.by[value], b.by[value])})
			}
			values[value] = true
		}
	}
	slices.SortFunc(c.Kinds, func(x, y *comparedKind) int { return strings.Compare(x.Value, y.Value) })
	return c
}

func (f *flips) add(a, b metrics.Attempts) {
	switch {
	case a.Verified == 0 || b.Verified == 0:
		f.Unverified++
	case a.Resolved > 0 && b.Resolved > 0:
		f.Both++
	case a.Resolved > 0:
		f.OnlyA++
	case b.Resolved > 0:
		f.OnlyB++
	default:
		f.Neither++
	}
}
