package wire

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/pipeline"
	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/pipeline/fleet"
	"github.com/tracesmith/tracesmith/pipeline/observe"
	"github.com/tracesmith/tracesmith/pipeline/rundir"
)

// Statuses returns the status of one run or, if runID is "", of all runs of a cluster.
func Statuses(ctx context.Context, conn *engine.Conn, runID string, now func() time.Time) ([]observe.Status, error) {
	ids := []string{runID}
	if runID == "" {
		runs, err := conn.Runs(ctx)
		if err != nil {
			return nil, err
		}
		ids = nil
		for _, r := range runs {
			if !slices.Contains(ids, r.RunID) {
				ids = append(ids, r.RunID)
			}
		}
		slices.Sort(ids)
	}
	var out []observe.Status
	for _, id := range ids {
		s, ok, err := fleet.ReadStatus(ctx, conn, id, now())
		switch {
		case err != nil:
			return out, err
		case !ok && runID != "":
			return out, fmt.Errorf("no run %s on %s: tracesmith status --nats lists the runs", runID, conn.Place())
		case ok:
			out = append(out, s)
		}
	}
	return out, nil
}

// LocalStatus returns the status of a run without a cluster, from its directory.
func LocalStatus(ctx context.Context, dir string) (observe.Status, error) {
	if !isRun(dir) {
		return observe.Status{}, &pipeline.StopError{Code: 2, Err: fmt.Errorf("%s is not a run directory: it has no run.json", dir), Remedy: "name the directory given to run --run-dir"}
	}
	staging, err := OpenStaging(ctx, dir, configs.S3{})
	if err != nil {
		return observe.Status{}, err
	}
	s, err := rundir.ReadStatus(ctx, dir, staging)
	if s.Staging = staging.URI(); errors.Is(err, fs.ErrNotExist) {
		return s, &pipeline.StopError{Code: 2, Err: fmt.Errorf("%s has no status: it has not run without a cluster", dir), Remedy: "name its cluster with --nats URL"}
	}
	return s, err
}

// ClusterLeftovers returns the runs whose data can be removed from a cluster: complete runs
// and runs that the registry does not list. kept explains why the other runs stay. If runID
// is set, it returns only that run, or an error if the run has a coordinator.
func ClusterLeftovers(ctx context.Context, conn *engine.Conn, runID string) (all []env.Leftover, kept []string, err error) {
	bytesByRun, err := conn.BytesByRun(ctx)
	if err != nil {
		return nil, nil, err
	}
	runs, err := conn.Runs(ctx)
	if err != nil {
		return nil, nil, err
	}
	known := map[string]engine.RunEntry{}
	for _, r := range runs {
		known[r.RunID] = r
	}
	if runID != "" {
		r, listed := known[runID]
		bytes, hasData := bytesByRun[runID]
		if !listed && !hasData {
			return nil, nil, fmt.Errorf("no run %s on %s", runID, conn.Place())
		}
		coordinated, err := conn.HasCoordinator(ctx, r)
		switch {
		case err != nil:
			return nil, nil, err
		case listed && coordinated:
			return nil, nil, &engine.LockedError{What: "run", Dir: runID, Holder: fmt.Sprintf("pid %d on %s", r.PID, r.Host)}
		}
		return []env.Leftover{runLeftover(conn, runID, bytes, r)}, nil, nil
	}
	for id, bytes := range bytesByRun {
		r, listed := known[id]
		switch {
		case listed && r.Phase != engine.Completed:
			kept = append(kept, id+": it is not complete; unless you want to resume it, remove it with --run "+id)
		default:
			all = append(all, runLeftover(conn, id, bytes, r))
		}
	}
	slices.SortFunc(all, func(a, b env.Leftover) int { return a.Since.Compare(b.Since) })
	slices.Sort(kept)
	return all, kept, nil
}

func runLeftover(conn *engine.Conn, id string, bytes uint64, r engine.RunEntry) env.Leftover {
	return env.Leftover{Kind: "run", Name: id, What: fmt.Sprintf("%d bytes on %s", bytes, conn.Place()), Since: r.Seen, Remove: func(ctx context.Context) error {
		return conn.DeleteRun(ctx, id)
	}}
}
