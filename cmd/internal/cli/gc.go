package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tracesmith/tracesmith/cmd/internal/wire"
	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/env"
)

type gcItem struct {
	Kind  string     `json:"kind"`
	Name  string     `json:"name"`
	What  string     `json:"what,omitempty"`
	Since *time.Time `json:"since,omitempty"`
	// Status is removed, found (with --dry-run) or failed.
	Status string `json:"status"`
	Error  string `json:"error,omitempty"`
}

// gcReport is the result of tracesmith gc.
type gcReport struct {
	Schema string   `json:"schema"`
	DryRun bool     `json:"dry_run"`
	Items  []gcItem `json:"items"`
	// Absent lists daemons and clusters that do not answer.
	Absent []string `json:"absent,omitempty"`
	// Errors lists the locations that could not be checked, with the reasons.
	Errors []string `json:"errors,omitempty"`
}

func newGC(s *State) *cobra.Command {
	var f dataFlags
	var dry, asJSON bool
	var nats, runID string
	var older time.Duration
	c := &cobra.Command{
		Use: "gc [PLACE...]", Short: "Remove containers, files and uploads that killed runs left", Args: RangeArgs(0, -1),
		Long: `Remove what killed processes of tracesmith left behind: containers and volumes
of the Docker daemon, pods of the cluster, guests, scratch directories, and
cached set-up results that are too many or too old. The configuration (-c,
-p sandbox.kind=... and sandbox.with) names the daemon and the cluster; without
one, the environment does. gc touches nothing of a live process. A run cleans up
after its own kind of sandbox when it starts.

gc also removes parts of unfinished uploads from each PLACE (a dataset, a
directory or s3://bucket/prefix) and from the locations that the configuration
stages and publishes to. Only the age of an upload tells whether it is still
running: gc removes those that are older than a day, or than --older-than.

With --nats, gc removes what complete runs left on the cluster, and nothing from
this machine. With --run, it also removes a run that could be resumed, unless a
process coordinates it.

Exit code 3: some leftovers could not be removed, or a location could not be
checked. gc skips a Docker daemon or cluster that does not answer; this counts
as a failure only if sandbox.kind chooses it.`,
		Example: "  tracesmith gc --dry-run\n  tracesmith gc --older-than 24h --json",
		RunE: func(c *cobra.Command, places []string) error {
			cfg, err := f.config(s)
			if err != nil {
				return err
			}
			if older < 0 {
				return Usage(fmt.Errorf("--older-than must be positive, got %s", older))
			}
			if nats != "" {
				cfg.NATS.URL = nats
			} else if runID != "" {
				return Usage(errors.New("--run needs --nats: it names a run of a cluster"))
			}
			report := gcReport{Schema: "tracesmith.gc/1", DryRun: dry, Items: []gcItem{}}
			if nats != "" {
				err = report.cleanCluster(c.Context(), s, cfg.NATS, runID, older)
			} else {
				report.cleanMachine(c.Context(), s, cfg, older)
				report.cleanUploads(c.Context(), s, places, cfg, older)
			}
			if err != nil {
				return err
			}
			if asJSON {
				return errors.Join(PrintJSON(s, report), report.failure())
			}
			return errors.Join(report.print(s), report.failure())
		},
	}
	f.Add(c)
	c.Flags().BoolVar(&dry, "dry-run", false, "list the leftovers, and remove nothing")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().StringVar(&nats, "nats", "", "clean the NATS cluster at these URLs instead of this machine")
	c.Flags().StringVar(&runID, "run", "", "with --nats: remove this run, complete or not")
	c.Flags().DurationVar(&older, "older-than", 0, "only leftovers of at least this age, such as 24h")
	return c
}

// cleanMachine removes leftovers from this machine and from the daemons of its sandboxes.
func (r *gcReport) cleanMachine(ctx context.Context, s *State, cfg configs.Config, older time.Duration) {
	found, absent, err := wire.Leftovers(ctx, cfg)
	r.Absent = absent
	if err != nil {
		r.Errors = append(r.Errors, err.Error())
	}
	r.collect(ctx, s, found, older)
}

// cleanUploads removes unfinished uploads, by default those that began at least a day ago.
func (r *gcReport) cleanUploads(ctx context.Context, s *State, places []string, cfg configs.Config, older time.Duration) {
	older = cmp.Or(older, 24*time.Hour)
	found, err := wire.UnfinishedUploads(ctx, places, cfg)
	if err != nil {
		r.Errors = append(r.Errors, err.Error())
	}
	r.collect(ctx, s, found, older)
}

// cleanCluster removes leftovers from a NATS cluster.
func (r *gcReport) cleanCluster(ctx context.Context, s *State, cfg configs.NATS, runID string, older time.Duration) error {
	conn, err := wire.Dial(ctx, cfg, 30*time.Second)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	found, kept, err := wire.ClusterLeftovers(ctx, conn, runID)
	if err != nil {
		return Usage(err)
	}
	for _, why := range kept {
		fmt.Fprintf(s.Stderr, "kept: %s\n", why)
	}
	r.collect(ctx, s, found, older)
	return nil
}

// collect removes the leftovers that are at least as old as older, or with --dry-run only
// lists them. If older is not 0, it skips leftovers of unknown age.
func (r *gcReport) collect(ctx context.Context, s *State, found []env.Leftover, older time.Duration) {
	for _, l := range found {
		if older > 0 && (l.Since.IsZero() || s.Now().Sub(l.Since) < older) {
			continue
		}
		item := gcItem{Kind: l.Kind, Name: l.Name, What: l.What, Status: "found"}
		if !l.Since.IsZero() {
			item.Since = &l.Since
		}
		if !r.DryRun {
			item.Status = "removed"
			if err := l.Remove(ctx); err != nil {
				item.Status, item.Error = "failed", err.Error()
			}
		}
		r.Items = append(r.Items, item)
	}
}

func (r gcReport) print(s *State) error {
	for _, where := range r.Absent {
		fmt.Fprintf(s.Stderr, "skipped: %s\n", firstLine(where))
	}
	if len(r.Items) == 0 {
		fmt.Fprintln(s.Stdout, "nothing to clean up")
		return nil
	}
	w := newTable(s.Stdout, "STATUS\tKIND\tAGE\tNAME\tPURPOSE")
	for _, i := range r.Items {
		age, what := "-", i.What
		if i.Since != nil {
			age = s.Now().Sub(*i.Since).Round(time.Second).String()
		}
		if i.Error != "" {
			what = firstLine(i.Error)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", i.Status, i.Kind, age, i.Name, clip(what, 70))
	}
	return w.Flush()
}

// failure returns an error if a leftover could not be removed or a location could not be
// checked.
func (r gcReport) failure() error {
	failed := 0
	for _, i := range r.Items {
		if i.Status == "failed" {
			failed++
		}
	}
	switch {
	case failed > 0:
		return &Error{Code: ExitIncomplete, Err: fmt.Errorf("could not remove %d of %s", failed, count(len(r.Items), "leftover"))}
	case len(r.Errors) > 0:
		return &Error{Code: ExitIncomplete, Err: fmt.Errorf("could not check every location: %s", r.Errors[0])}
	}
	return nil
}
