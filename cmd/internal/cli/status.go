package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/pipeline/rundir"
)

// statusEvery is the interval at which status --watch reads the status again.
const statusEvery = 2 * time.Second

type statusFlags struct {
	ConfigFlags
	nats   string
	asJSON bool
	watch  bool
}

func newStatus(s *State) *cobra.Command {
	var f statusFlags
	c := &cobra.Command{
		Use: "status [RUN_DIR]", Args: RangeArgs(0, 1),
		Short: "Show the progress of a run, or the runs of a cluster",
		Long: `Show the progress of the run in a run directory or, with --nats, of one run or
all runs of a cluster and of their workers: what each running episode does or
waits for, outcomes, and cost. This works even if the processes of the run, or a
minority of the NATS nodes, are down. The figures always add up.`,
		Example: "  tracesmith status runs/a --watch\n  tracesmith status runs/a --nats nats://n1:4222\n  tracesmith status --nats nats://n1:4222 --json",
		RunE:    func(c *cobra.Command, args []string) error { return f.run(c.Context(), s, args) },
		Annotations: map[string]string{
			StoppingAnnotation: "ending the display; the run goes on",
		},
	}
	f.Add(c)
	c.Flags().StringVar(&f.nats, "nats", "", "URLs of the NATS cluster, separated by commas")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&f.watch, "watch", false, "show the status again every 2 seconds until no run is in progress")
	c.MarkFlagsMutuallyExclusive("json", "watch")
	return c
}

func (f *statusFlags) run(ctx context.Context, s *State, args []string) error {
	cfg, err := f.Load(s)
	if err != nil {
		return err
	}
	cfg.NATS.URL = cmp.Or(f.nats, cfg.NATS.URL)
	if cfg.NATS.URL == "" && len(args) == 0 {
		return Usage(errors.New("name a run directory, or a cluster: --nats URL or nats.url"))
	}
	if cfg.NATS.URL == "" {
		return f.show(ctx, s, func() ([]observe.Status, error) {
			r, err := wire.LocalStatus(ctx, args[0])
			return []observe.Status{r}, Usage(err)
		})
	}
	runID := ""
	if len(args) == 1 {
		info, err := rundir.ReadInfo(args[0])
		if err != nil {
			return Usage(err)
		}
		runID = info.RunID
	}
	conn, err := wire.Dial(ctx, cfg.NATS, 30*time.Second)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return f.show(ctx, s, func() ([]observe.Status, error) {
		list, err := wire.Statuses(ctx, conn, runID, s.Now)
		if err == nil && len(list) == 0 && !f.asJSON {
			fmt.Fprintf(s.Stdout, "no run on %s\n", conn.Place())
		}
		return list, Usage(err)
	})
}

// show prints the status that read returns, repeatedly with --watch. On a terminal, each status
// replaces the last one.
func (f *statusFlags) show(ctx context.Context, s *State, read func() ([]observe.Status, error)) error {
	list, err := read()
	switch {
	case err != nil:
		return err
	case f.asJSON:
		return PrintJSON(s, struct {
			Schema string           `json:"schema"`
			Runs   []observe.Status `json:"runs"`
		}{"tracesmith.status/2", list})
	case !f.watch:
		return observe.WriteStatuses(s.Stdout, list, s.Now())
	}
	screen, _ := observe.TerminalOf(s.Stdout).(*observe.Screen)
	if screen != nil {
		defer screen.Draw()
	}
	for isLive(list) {
		if screen != nil {
			screen.DrawStatuses(list, s.Now())
		} else if err := observe.WriteStatuses(s.Stdout, list, s.Now()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(statusEvery):
		}
		if list, err = read(); err != nil {
			return err
		}
	}
	if screen != nil {
		screen.Draw()
	}
	return observe.WriteStatuses(s.Stdout, list, s.Now())
}

func isLive(list []observe.Status) bool { return slices.ContainsFunc(list, observe.Status.Live) }
