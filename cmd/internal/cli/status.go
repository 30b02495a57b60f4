package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/pipeline/rundir"
)

func newStatus(s *State) *cobra.Command {
	var f ConfigFlags
	var nats string
	var asJSON bool
	c := &cobra.Command{
		Use: "status [RUN_DIR]", Args: RangeArgs(0, 1),
		Short: "Show the progress of a run, or the runs of a cluster",
		Long: `Show the progress of the run in a run directory or, with --nats, of one run or
all runs of a cluster and of their workers. This works even if the processes of
the run, or a minority of the NATS nodes, are down. The figures always add up.`,
		Example: "  tracesmith status runs/a\n  tracesmith status runs/a --nats nats://n1:4222\n  tracesmith status --nats nats://n1:4222 --json",
		RunE: func(c *cobra.Command, args []string) error {
			cfg, err := f.Load(s)
			if err != nil {
				return err
			}
			cfg.NATS.URL = cmp.Or(nats, cfg.NATS.URL)
			if cfg.NATS.URL == "" && len(args) == 0 {
				return Usage(errors.New("name a run directory, or a cluster: --nats URL or nats.url"))
			}
			if cfg.NATS.URL == "" {
				r, err := wire.LocalStatus(c.Context(), args[0])
				if err != nil {
					return Usage(err)
				}
				return printStatuses(s, []observe.Status{r}, asJSON)
			}
			runID := ""
			if len(args) == 1 {
				info, err := rundir.ReadInfo(args[0])
				if err != nil {
					return Usage(err)
				}
				runID = info.RunID
			}
			return showStatus(c.Context(), s, cfg.NATS, runID, asJSON)
		},
	}
	f.Add(c)
	c.Flags().StringVar(&nats, "nats", "", "URLs of the NATS cluster, separated by commas")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// showStatus prints the status of one run of a cluster or, if runID is "", of all runs.
func showStatus(ctx context.Context, s *State, cfg configs.NATS, runID string, asJSON bool) error {
	conn, err := wire.Dial(ctx, cfg, 30*time.Second)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	list, err := wire.Statuses(ctx, conn, runID, s.Now)
	if err != nil {
		return Usage(err)
	}
	if len(list) == 0 && !asJSON {
		fmt.Fprintf(s.Stdout, "no run on %s\n", conn.Place())
	}
	return printStatuses(s, list, asJSON)
}

func printStatuses(s *State, list []observe.Status, asJSON bool) error {
	if asJSON {
		return PrintJSON(s, struct {
			Schema string           `json:"schema"`
			Runs   []observe.Status `json:"runs"`
		}{"tracesmith.status/1", list})
	}
	for _, r := range list {
		if err := printStatus(s, r); err != nil {
			return err
		}
	}
	return nil
}

func printStatus(s *State, run observe.Status) error {
	fmt.Fprintf(s.Stdout, "run %s: %s, %s, heard of %.0fs ago\n", run.RunID, run.Phase, run.Coordinator, run.SilentSeconds)
	fmt.Fprintf(s.Stdout, "  %d selected = %d reused + %d ran + %d missing\n", run.Selected, run.Reused, run.Ran, run.Missing)
	fmt.Fprintf(s.Stdout, "  %d selected = %d waiting + %d running + %d done + %d failed\n", run.Selected, run.Waiting, run.Running, run.Done, run.Failed)
	if b := run.Budget; b != nil {
		limit := "no limit for the run"
		if b.LimitUSD > 0 {
			limit = fmt.Sprintf("of $%.4f", b.LimitUSD)
		}
		fmt.Fprintf(s.Stdout, "  $%.4f spent + $%.4f reserved for running calls, %s\n", b.SpentUSD, b.ReservedUSD, limit)
		if b.LostUSD > 0 {
			fmt.Fprintf(s.Stdout, "  $%.4f of this is the worst case of calls whose worker is gone\n", b.LostUSD)
		}
	}
	if run.Orphaned > 0 {
		fmt.Fprintf(s.Stdout, "  %d of the running episodes belong to silent workers: other workers get them when the leases expire\n", run.Orphaned)
	}
	if len(run.Workers) == 0 {
		return nil
	}
	w := newTable(s.Stdout, "  WORKER\tHOST\tVERSION\tSTATE\tJOBS\tLOAD\tSEEN\tWHY")
	for _, worker := range run.Workers {
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%d/%d\t%.1f\t%.0fs ago\t%s\n", worker.Name, worker.Host, worker.Version, worker.State, len(worker.Running), worker.Slots, worker.Load, worker.SilentSeconds, clip(strings.TrimSpace(worker.Reason), 60))
	}
	return w.Flush()
}
