package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/pipeline/publish"
	"github.com/tracesmith/tracesmith/pipeline/selection"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

func isRemote(place string) bool {
	bucket, isS3 := strings.CutPrefix(place, "s3://")
	return isS3 && bucket != ""
}

// dataFlags are the flags of commands that read a dataset or a run.
type dataFlags struct {
	ConfigFlags
	endpoint string
}

// Add defines the flags.
func (f *dataFlags) Add(c *cobra.Command) {
	f.ConfigFlags.Add(c)
	c.Flags().StringVar(&f.endpoint, "s3-endpoint", "", "address of an S3-compatible server (path style)")
}

// config returns the configuration with the address of the S3 server.
func (f *dataFlags) config(s *State) (configs.Config, error) {
	cfg, err := f.Load(s)
	if f.endpoint != "" {
		cfg.S3.Endpoint, cfg.S3.PathStyle = f.endpoint, true
	}
	return cfg, err
}

// open opens the dataset or the run at place.
func (f *dataFlags) open(c *cobra.Command, s *State, place string) (*wire.Data, error) {
	cfg, err := f.config(s)
	if err != nil {
		return nil, err
	}
	data, err := wire.OpenData(c.Context(), place, cfg.S3)
	if err != nil {
		return nil, Usage(err)
	}
	return data, nil
}

type statsFlags struct {
	dataFlags
	pagerFlags
	asJSON           bool
	plots, selection string
	by               []string
}

func newStats(s *State) *cobra.Command {
	var f statsFlags
	c := &cobra.Command{
		Use: "stats DATASET-or-RUN", Short: "Show distributions of outcomes, turns, tokens, tools and metrics", Args: RangeArgs(1, 1),
		Long: `Show distributions of outcomes, turns, tokens, tools and metrics.

--by shows verdicts and metrics for each value of a column instead, or for each
combination of values of several columns. The rate is the share of resolved
episodes among those with a verdict, with the interval of Wilson, and $/resolved
is the cost of all episodes of the group per resolved one. Episodes whose policy
could see the reference fix are counted apart, as "knows fix".

A damaged file does not hide the others: stats counts what it can read, and the
exit code is 3.`,
		Example: "  tracesmith stats runs/a\n  tracesmith stats datasets/a --by model,bug_kind",
		RunE: func(c *cobra.Command, args []string) error {
			by, err := newGrouping(f.by)
			if err != nil {
				return Usage(err)
			}
			data, err := f.open(c, s, args[0])
			if err != nil {
				return err
			}
			defer func() { _ = data.Close() }()
			data.SkipDamaged()
			return f.run(c.Context(), s, data, by)
		},
	}
	f.dataFlags.Add(c)
	c.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	c.Flags().StringVar(&f.selection, "selection", "", "only these episodes: a built-in recipe, a recipe file, or a file that filter wrote")
	Must(c.RegisterFlagCompletionFunc("selection", orFile(selection.Builtin()...)))
	c.Flags().StringVar(&f.plots, "plots", "", "directory to write figures to, as SVG")
	c.Flags().StringSliceVar(&f.by, "by", nil, "show verdicts and metrics by these columns of table episodes, such as model, bug_kind or difficulty")
	Must(c.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(episodeColumns(), cobra.ShellCompDirectiveNoFileComp)))
	f.pagerFlags.Add(c)
	return c
}

// counted is what stats counts.
type counted struct {
	tally        *publish.Tally
	groups       map[string]*verdictGroup // by the value of --by
	seeking      *seekingStats
	withoutSteps int // episodes whose steps cannot be read
}

// count counts the episodes in keep, or all if keep is nil.
func (f *statsFlags) count(ctx context.Context, data *wire.Data, by arrowrec.Grouping, keep map[string]bool) (*counted, error) {
	groupings := []arrowrec.Grouping{by}
	if f.asJSON {
		usual, err := newGrouping(seekingColumns)
		if err != nil {
			return nil, err
		}
		for _, c := range usual {
			groupings = append(groupings, arrowrec.Grouping{c})
		}
	}
	c := &counted{tally: publish.NewTally(), groups: map[string]*verdictGroup{}, seeking: newSeekingStats(groupings...)}
	for t, err := range data.Trajectories(ctx) {
		if err != nil {
			return nil, Usage(err)
		}
		e := &t.Episode
		if keep != nil && !keep[e.EpisodeID] {
			continue
		}
		if len(t.Steps) < int(e.NSteps) {
			c.withoutSteps++
		}
		c.tally.Add(*e, t.Steps)
		c.seeking.add(e)
		if by != nil {
			value := by.Value(e)
			if c.groups[value] == nil {
				c.groups[value] = &verdictGroup{}
			}
			c.groups[value].add(e)
		}
	}
	if keep != nil {
		return c, nil
	}
	dead, err := data.DeadLetters(ctx)
	for _, d := range dead {
		c.tally.AddDead([]schemas.DeadLetterRow{d.DeadLetterRow})
	}
	return c, Usage(err)
}

func (f *statsFlags) run(ctx context.Context, s *State, data *wire.Data, by arrowrec.Grouping) error {
	keep, err := selectedIDs(ctx, data, f.selection)
	if err != nil {
		return err
	}
	c, err := f.count(ctx, data, by, keep)
	if err != nil {
		return err
	}
	stats := c.tally.Stats()
	if damaged := data.Damaged(); stats.Episodes == 0 && len(damaged) > 0 {
		return Usage(damaged[0].Err)
	}
	if err := writePlots(s, f.plots, c.tally.Plots()); err != nil {
		return err
	}
	if f.asJSON {
		err = PrintJSON(s, struct {
			Schema string `json:"schema"`
			publish.Stats
			By      map[string]verdictGroupJSON `json:"by,omitempty"` // by the value of the columns of --by
			Seeking *seekingJSON                `json:"seeking,omitempty"`
			LeftOut []publish.LeftOut           `json:"left_out,omitempty"` // damaged files
		}{"tracesmith.stats/1", stats, groupsJSON(c.groups), c.seeking.json(), data.Damaged()})
	} else {
		err = f.print(s, func(w *screen) {
			printTotals(w, stats, data.DeadLettersPath())
			if by != nil {
				printGroups(w, by.Name(), c.groups)
			} else {
				printDistributions(w, stats)
			}
			c.seeking.print(w, by.Name())
		})
	}
	if err != nil {
		return err
	}
	return reportDamage(s, data, fmt.Sprintf("%s and the steps of %d of these are counted", count(stats.Episodes, "episode"), stats.Episodes-c.withoutSteps))
}

// applySelection applies a built-in recipe, a recipe file or a selection file.
func applySelection(ctx context.Context, data *wire.Data, nameOrFile string) (selection.Result, error) {
	chosen, err := selection.Load(nameOrFile)
	if err != nil {
		return selection.Result{}, Usage(err)
	}
	result, err := chosen.Apply(ctx, data.Episodes)
	return result, Usage(err)
}

// selectedIDs returns the ids of the episodes that a selection keeps; nil if nameOrFile is "".
func selectedIDs(ctx context.Context, data *wire.Data, nameOrFile string) (map[string]bool, error) {
	if nameOrFile == "" {
		return nil, nil
	}
	result, err := applySelection(ctx, data, nameOrFile)
	if err != nil {
		return nil, err
	}
	if len(result.Kept) == 0 {
		return nil, &Error{Code: ExitUsage, Try: shell("tracesmith", "filter", data.Place, "--recipe", nameOrFile, "--dry-run"), Err: fmt.Errorf("selection %s keeps none of %d episodes", result.Info.Name, len(result.Rows))}
	}
	keep := map[string]bool{}
	for _, id := range result.Kept {
		keep[id] = true
	}
	return keep, nil
}

// writePlots writes one file per figure, unless dir is "". It returns an error if a file
// exists.
func writePlots(s *State, dir string, plots []publish.Plot) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Usage(fmt.Errorf("making the directory for figures: %w", err))
	}
	for _, p := range plots {
		path := filepath.Join(dir, p.Name+".svg")
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, os.ErrExist) {
			return Usage(fmt.Errorf("%s exists: choose another --plots", path))
		}
		if err != nil {
			return Usage(fmt.Errorf("writing a figure: %w", err))
		}
		if _, err := file.Write(p.SVG); err != nil {
			return errors.Join(fmt.Errorf("writing a figure: %w", err), file.Close())
		}
		if err := file.Close(); err != nil {
			return fmt.Errorf("writing a figure: %w", err)
		}
	}
	fmt.Fprintf(s.Stderr, "wrote %s (SVG) to %s\n", count(len(plots), "figure"), dir)
	return nil
}

func printTotals(w *screen, st publish.Stats, deadLettersPath string) {
	fmt.Fprintf(w, "%s of %s, %s\n", count(st.Episodes, "episode"), count(st.Instances, "task"), count(int(st.Steps), "step"))
	if without := st.NoEpisode(); without != "" {
		fmt.Fprintf(w, "without an episode: %s: see %s\n", without, deadLettersPath)
	}
	successes := observe.Successes{Verified: st.Resolved + st.ResolvedGold + st.Unresolved, Alone: st.Resolved, Gold: st.ResolvedGold, Derived: st.Derived}
	fmt.Fprintln(w, observe.Wrap(successes.String(), w.width))
	if st.Unverified > 0 {
		fmt.Fprintf(w, "%s without a verdict\n", count(st.Unverified, "episode"))
	}
	if st.Claims > 0 {
		fmt.Fprintf(w, "claimed by the source: %d of %d resolved; tracesmith did not verify these\n", st.Claimed, st.Claims)
	}
	if st.Duplicates > 0 {
		fmt.Fprintf(w, "%s with the calls and texts of an earlier one\n", count(st.Duplicates, "episode"))
	}
	if st.Trimmed > 0 {
		fmt.Fprintf(w, "%s whose model did not always see the whole history\n", count(st.Trimmed, "episode"))
	}
	if st.CostUSD != nil && *st.CostUSD > 0 {
		fmt.Fprintf(w, "cost $%.4f, of the %d episodes that report one\n", *st.CostUSD, st.Cost.N)
	}
}

func printDistributions(w io.Writer, st publish.Stats) {
	fmt.Fprintf(w, "\n%-18s %8s %8s %8s %8s\n", "per episode", "p50", "p90", "p99", "max")
	for _, row := range []struct {
		name string
		s    publish.Spread[int64]
	}{
		{"steps", st.StepsEach}, {"turns", st.Turns}, {"wall ms", st.WallMS}, {"prompt tokens", st.PromptTokens}, {"  cached", st.CachedTokens},
		{"completion tokens", st.OutputTokens}, {"  reasoning", st.ReasoningTokens}, {"tokens as a text", st.SFTTokens},
	} {
		if row.s.N > 0 {
			fmt.Fprintf(w, "%-18s %8d %8d %8d %8d\n", row.name, row.s.P50, row.s.P90, row.s.P99, row.s.Max)
		}
	}
	if c := st.Cost; c.N > 0 {
		fmt.Fprintf(w, "%-18s %8.4f %8.4f %8.4f %8.4f\n", "cost $", c.P50, c.P90, c.P99, c.Max)
	}
	for _, table := range []struct {
		name   string
		counts map[string]int
	}{
		{"outcome", st.Outcomes}, {"exit reason", st.ExitReasons}, {"verified or claimed by", st.Verdicts}, {"agent", st.Agents}, {"model", st.Models},
		{"source", st.Sources}, {"split", st.Splits}, {"license", st.Licenses}, {"tool", st.Tools}, {"pdb command", st.PDBCommands},
		{"error", st.Errors}, {"not trained on", st.Masks},
	} {
		printCounts(w, table.name, table.counts)
	}
}

// printCounts prints the 20 largest counts of a table.
func printCounts(w io.Writer, name string, counts map[string]int) {
	if len(counts) == 0 {
		return
	}
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a, b))
	})
	fmt.Fprintf(w, "\n%s\n", name)
	for _, k := range keys[:min(len(keys), 20)] {
		fmt.Fprintf(w, "  %-28s %6d\n", k, counts[k])
	}
	if len(keys) > 20 {
		fmt.Fprintf(w, "  and %d more\n", len(keys)-20)
	}
}
