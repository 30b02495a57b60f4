package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/internal/cli"
	"github.com/tracesmith/tracesmith/cmd/internal/lab/learn"
	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/env/tasks/taskfile"
)

type learnFlags struct {
	config cli.ConfigFlags
	policy string
	tasks  []string
	sizes  []int
	parts  int
	seed   uint64
	asJSON bool
}

func newLearn(s *cli.State) *cobra.Command {
	var f learnFlags
	c := &cobra.Command{
		Use: "learn DATASET-or-RUN...", Short: "Measure whether trajectories teach where to set a breakpoint", Args: cli.RangeArgs(1, -1),
		Long: `Train a small linear model on the first breakpoints of the episodes with
--policy, and count how often the first breakpoint that it chooses is at a
line that the fix changes, in repositories that it was not trained on. It sees
what the answers of tools showed before the breakpoint, and no gold_ column.

Compare the oracle with datasets of the agent baseline, which does not know
the fix: the model must choose in what a baseline agent has read. Controls are
the line with the highest Ochiai score (if baseline computed scores), the
innermost line of the traceback, the entry of the function read last, a random
line, what the agent itself did, and models whose training choices or
observations are exchanged between episodes.`,
		Example: "  tracesmith-lab learn out/oracle out/ochiai out/traceback\n  tracesmith-lab learn out/oracle out/ochiai --tasks bugs/tasks.jsonl --sizes 100,300,1000 --json",
		RunE: func(c *cobra.Command, args []string) error {
			if len(f.sizes) == 0 || slices.Min(f.sizes) < 1 || f.parts < 2 {
				return cli.Usage(errors.New("--sizes must be numbers of at least 1, --parts at least 2"))
			}
			report, err := f.run(c.Context(), s, args)
			if err != nil {
				return err
			}
			if f.asJSON {
				return cli.PrintJSON(s, report)
			}
			return printLearned(s, report)
		},
	}
	f.config.Add(c)
	c.Flags().StringVar(&f.policy, "policy", "oracle", "learn from the episodes with this policy")
	c.Flags().StringArrayVar(&f.tasks, "tasks", nil, "task file with the fixes; without one, patches of resolved episodes are the fixes")
	c.Flags().IntSliceVar(&f.sizes, "sizes", []int{1000, 3000, 10_000}, "numbers of trajectories to train on")
	c.Flags().IntVar(&f.parts, "parts", 3, "parts of the repositories, each of which is held out once")
	c.Flags().Uint64Var(&f.seed, "seed", 1, "seed of the parts and of the training")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	return c
}

func (f *learnFlags) run(ctx context.Context, s *cli.State, places []string) (r learn.Report, err error) {
	cfg, err := f.config.Load(s)
	if err != nil {
		return r, err
	}
	study := learn.NewStudy(f.policy)
	for _, name := range f.tasks {
		entries, err := taskfile.Read(ctx, name, "")
		if err != nil {
			return r, cli.Usage(err)
		}
		for _, e := range entries {
			if err := study.AddFix(e.Task.InstanceID, e.Task.GoldPatch); err != nil {
				return r, cli.Usage(err)
			}
		}
	}
	for _, place := range places {
		data, err := wire.OpenData(ctx, place, cfg.S3)
		if err != nil {
			return r, cli.Usage(err)
		}
		defer func() { _ = data.Close() }()
		for t, err := range data.Trajectories(ctx) {
			if err != nil {
				return r, cli.Usage(err)
			}
			if err := study.Add(&t.Episode, t.Steps); err != nil {
				return r, err
			}
		}
	}
	r, err = study.Measure(ctx, f.sizes, f.parts, f.seed)
	if ctx.Err() == nil {
		err = cli.Usage(err)
	}
	return r, err
}

// columnsPerTable is how many kinds of states fit into 80 columns.
const columnsPerTable = 5

func printLearned(s *cli.State, r learn.Report) error {
	fmt.Fprintf(s.Stdout, `policy %s: %d trajectories; %d more do not show what they chose
%d groups of repositories in %d parts; a model has %d bytes

First breakpoints at a line that the fix changes: %% of the states of held-out
repositories, and the %% of the lowest and the highest part.
`, r.Policy, r.Trajectories, r.Unusable, r.Groups, r.Parts, r.ModelBytes)
	for from := 0; from < len(r.Columns); from += columnsPerTable {
		to := min(from+columnsPerTable, len(r.Columns))
		print := func(name string, cell func(i int) string) {
			fmt.Fprintf(s.Stdout, "%-25s", name)
			for i := from; i < to; i++ {
				fmt.Fprintf(s.Stdout, "%11s", cell(i))
			}
			fmt.Fprintln(s.Stdout)
		}
		fmt.Fprintln(s.Stdout)
		print("", func(i int) string { return fmt.Sprintf("%.10s", r.Columns[i].Kind) })
		print("states", func(i int) string { return strconv.Itoa(r.Columns[i].States) })
		print("tasks", func(i int) string { return strconv.Itoa(r.Columns[i].Tasks) })
		print("candidates, median", func(i int) string { return strconv.Itoa(r.Columns[i].Candidates) })
		print("changed line shown", func(i int) string { return fmt.Sprintf("%.0f", 100*r.Columns[i].Shown) })
		for _, row := range r.Rows {
			name := row.Name
			if row.Trained > 0 {
				name = fmt.Sprintf("%s, %d", name, row.Trained)
			}
			print(name, func(i int) string { return percent(row.Hits[i]) })
		}
	}
	_, err := fmt.Fprintf(s.Stdout, "\n%s", learnedNotes)
	if err != nil {
		return fmt.Errorf("writing output: %w", err)
	}
	for _, row := range r.Rows {
		if row.Trained < row.Asked {
			fmt.Fprintf(s.Stdout, "\nmissed: %d trajectories to train on; outside of a part there are only %d\n", row.Asked, row.Trained)
			break
		}
	}
	return nil
}

const learnedNotes = `The oracle knows the fix, and what it reads depends on it: compare columns of
agents that do not know it. A pooled state is what all of them read of a task.
`

func percent(s *learn.Share) string {
	if s == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f %.0f-%.0f", 100*s.Mean, 100*s.Low, 100*s.High)
}
