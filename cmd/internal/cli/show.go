package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/sinks"
)

type showFlags struct {
	dataFlags
	pagerFlags
	listFlags
	stepFlags
	bytes, asJSON, interactive bool
}

func newShow(s *State) *cobra.Command {
	var f showFlags
	c := &cobra.Command{
		Use: "show DATASET-or-RUN [EPISODE]", Short: "List episodes, or show one of them step by step",
		Long: `Without EPISODE, list the episodes: how they ended, why, and what they cost.
-e, --sort, --limit and --columns choose what is listed.

With EPISODE, print what the agent said, called and saw, and where the debugger
stood. EPISODE is an episode id, a prefix of one, the instance id of a task, or
TASK#ATTEMPT. --interactive shows one step at a time and waits for a command.

On a terminal, the output goes through a pager ($PAGER, or less; NO_PAGER turns
it off) and has colors (NO_COLOR turns them off). A damaged file does not hide
the others: show prints what it can read, and the exit code is 3.`,
		Example: `  tracesmith show out/quickstart/dataset
  tracesmith show runs/a -e '!resolved && n_turns > 20' --sort -cost --limit 10
  tracesmith show runs/a --columns task,outcome,n_pdb,difficulty --sort n_pdb
  tracesmith show out/quickstart/dataset stockroom --step 7
  tracesmith show runs/a stockroom#1 --only pdb,edit`,
		Args: RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.check(c, args); err != nil {
				return Usage(err)
			}
			data, err := f.open(c, s, args[0])
			if err != nil {
				return err
			}
			defer func() { _ = data.Close() }()
			data.SkipDamaged()
			if len(args) == 1 {
				return f.list(c.Context(), s, data)
			}
			return f.showOne(c.Context(), s, data, args[1])
		},
	}
	c.ValidArgsFunction = f.completeEpisode
	f.dataFlags.Add(c)
	f.listFlags.Add(c)
	f.stepFlags.Add(c)
	c.Flags().BoolVarP(&f.interactive, "interactive", "i", false, "show one step at a time, with commands to move and search")
	c.Flags().BoolVar(&f.bytes, "wire", false, "show the bytes of the model calls, failed ones included; only of a run")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print the rows as JSON")
	f.pagerFlags.Add(c)
	return c
}

// check refuses flags that have no effect together.
func (f *showFlags) check(c *cobra.Command, args []string) error {
	flags, reason := []string{"step", "last", "full", "only", "hide", "interactive", "wire"}, "it needs an EPISODE"
	if len(args) == 2 {
		flags, reason = []string{"expr", "sort", "limit", "columns"}, "it applies to the list, without an EPISODE"
	}
	for _, name := range flags {
		if c.Flags().Changed(name) {
			return fmt.Errorf("--%s: %s", name, reason)
		}
	}
	if c.Flags().Changed("step") && f.step < 0 {
		return fmt.Errorf("--step %d: want 0 or more", f.step)
	}
	if f.interactive && (f.asJSON || f.bytes || f.step >= 0 || f.last) {
		return fmt.Errorf("--interactive chooses the steps itself: leave out --step, --last, --json and --wire")
	}
	return nil
}

// showOne shows the episode with a name.
func (f *showFlags) showOne(ctx context.Context, s *State, data *wire.Data, name string) error {
	var found []*sinks.Trajectory
	for t, err := range data.Trajectories(ctx) {
		if err != nil {
			return Usage(err)
		}
		if e := t.Episode; matches(name, e.EpisodeID, e.InstanceID) || name == taskText(&e) {
			found = append(found, &t)
		}
	}
	switch {
	case len(found) == 0:
		if err := f.deadLetterError(ctx, data, name); err != nil {
			return err
		}
		if found, err := f.showUnfinished(ctx, s, data, name); found || err != nil {
			return err
		}
		err := fmt.Errorf("no episode %q in %s", name, data.Place)
		if damaged := data.Damaged(); len(damaged) > 0 {
			return Usage(fmt.Errorf("%w; it may be in a damaged file: %w", err, damaged[0].Err))
		}
		return &Error{Code: ExitUsage, Try: shell("tracesmith", "show", data.Place), Err: err}
	case len(found) > 1:
		slices.SortStableFunc(found, func(a, b *sinks.Trajectory) int {
			return cmp.Or(strings.Compare(a.Episode.InstanceID, b.Episode.InstanceID), int(a.Episode.Attempt)-int(b.Episode.Attempt), strings.Compare(a.Episode.Model, b.Episode.Model))
		})
		fmt.Fprintf(s.Stderr, "%d episodes match %q; showing the first. Name one by its id or its attempt:\n", len(found), name)
		columns, err := newListColumns("columns", []string{"episode", "task", "outcome", "turns", "model", "agent", "claim"})
		if err != nil {
			return err
		}
		matching := &episodeList{columns: columns}
		for _, t := range found {
			matching.episodes = append(matching.episodes, newListed(&t.Episode, columns, nil, false))
		}
		matching.dropEmpty()
		matching.print(&screen{Writer: s.Stderr})
	}
	if err := f.showEpisode(ctx, s, data, *found[0]); err != nil {
		return err
	}
	effect := "the episode is complete"
	if len(found[0].Steps) < int(found[0].Episode.NSteps) {
		effect = fmt.Sprintf("%d of the %d steps of the episode are missing", int(found[0].Episode.NSteps)-len(found[0].Steps), found[0].Episode.NSteps)
	}
	return reportDamage(s, data, effect)
}

// matches reports whether name is an episode's id, a prefix of it with at least 4 characters,
// or the instance id of its task.
func matches(name, id, instance string) bool {
	return name == id || name == instance || len(name) >= 4 && strings.HasPrefix(id, name)
}

// showEpisode shows the steps of an episode that the flags choose.
func (f *showFlags) showEpisode(ctx context.Context, s *State, data *wire.Data, t sinks.Trajectory) error {
	steps, err := f.choose(t)
	if err != nil {
		return Usage(err)
	}
	switch {
	case f.bytes:
		return f.showCalls(s, data, t, steps)
	case f.asJSON:
		return PrintJSON(s, map[string]any{"schema": "tracesmith.trajectory/1", "episode": t.Episode, "steps": steps})
	}
	if steps, err = completeObservations(ctx, data, t.Episode, steps); err != nil {
		return Usage(err)
	}
	if f.interactive {
		return f.walk(ctx, s, t.Episode, steps)
	}
	return f.print(s, func(w *screen) {
		whole := f.step < 0 && !f.last
		if whole {
			printEpisodeHead(w, t.Episode)
		}
		for _, step := range steps {
			f.printStep(w, step)
		}
		if whole {
			printEpisodeEnd(w, t.Episode)
		}
	})
}
