package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
)

type workerFlags struct {
	ConfigFlags
	nats     string
	runID    string
	name     string
	slots    int
	patience time.Duration
}

// NewWorker returns the command worker.
func NewWorker(s *State) *cobra.Command {
	var f workerFlags
	c := &cobra.Command{
		Use: "worker", Args: RangeArgs(0, 0),
		Short: "Execute episodes of runs that another process coordinates",
		Long: `Join a NATS cluster and execute episodes of the runs that tracesmith run --nats
coordinates there, one run after another. The run says how to execute an
episode. This process's configuration and environment say how to reach the
cluster, and hold the keys of model servers and stores.

The first interrupt lets running episodes finish, the second returns them to the
queue.`,
		Example: "  tracesmith worker --nats nats://n1:4222,nats://n2:4222,nats://n3:4222 -n 8\n  tracesmith worker -c cluster.yaml --run mine-0a1b2c3d --patience 30m",
		RunE:    func(c *cobra.Command, _ []string) error { return f.run(c.Context(), s) },
	}
	f.Add(c)
	fl := c.Flags()
	fl.StringVar(&f.nats, "nats", "", "URLs of the NATS cluster, separated by commas")
	fl.StringVar(&f.runID, "run", "", "execute only this run, and exit when it ends")
	fl.StringVar(&f.name, "name", "", "name of this worker in status (default: generated)")
	fl.IntVarP(&f.slots, "workers", "n", 2, "episodes to run at once")
	fl.DurationVar(&f.patience, "patience", 5*time.Minute, "how long to wait for a lost cluster, a silent coordinator or the next run")
	return c
}

func (f *workerFlags) run(ctx context.Context, s *State) error {
	cfg, err := f.Load(s)
	if err != nil {
		return err
	}
	cfg.NATS.URL = cmp.Or(f.nats, cfg.NATS.URL)
	switch {
	case cfg.NATS.URL == "":
		return Usage(errors.New("a worker needs a cluster: give --nats URL or set nats.url"))
	case f.slots < 1 || f.slots > 4096:
		return Usage(fmt.Errorf("--workers must be between 1 and 4096, got %d", f.slots))
	case f.patience <= 0:
		return Usage(fmt.Errorf("--patience must be positive, got %s", f.patience))
	}
	if err := cfg.Validate(); err != nil {
		return Usage(err)
	}
	conn, err := wire.Dial(ctx, cfg.NATS, f.patience)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	err = wire.NewWorker(conn, wire.WorkerOptions{
		RunID: f.runID, Name: f.name, Slots: f.slots, Patience: f.patience, Version: Version, Commit: commit(), Host: s.Host(),
		Progress: s.Stderr, Drain: s.drain("running episodes finish, no new ones start"), Hooks: s.Hooks,
	}).Serve(ctx)
	return Resumable(ctx, err)
}
