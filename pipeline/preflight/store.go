package preflight

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/tracesmith/tracesmith/pipeline"
	"github.com/tracesmith/tracesmith/pipeline/engine"
	"github.com/tracesmith/tracesmith/sinks"
)

// storeLimit limits the check of a store. A store retries failed requests itself.
const storeLimit = time.Minute

// Store writes, reads, conditionally replaces and deletes an object of a store. setting names the
// setting that holds its location, place.
func Store(setting, place string, s sinks.Store) Check {
	return func(ctx context.Context) []Result {
		ctx, cancel := context.WithTimeout(ctx, storeLimit)
		defer cancel()
		if err := s.Probe(ctx); err != nil {
			return []Result{Fail("store", storeError(setting, s, err))}
		}
		return []Result{ok("store", "%s: writes, reads, conditional writes and deletes work in %s", setting, place)}
	}
}

// Directory is like Store for a store in a directory, which need not exist. It leaves nothing there:
// it works in a new directory below dir, or below the nearest directory above dir that exists.
func Directory(setting, dir string, open func(dir string) (sinks.Store, error)) Check {
	return func(ctx context.Context) []Result {
		existing, err := existing(dir)
		var scratch string
		if err == nil {
			scratch, err = os.MkdirTemp(existing, ".tracesmith-probe-")
		}
		if err != nil {
			return []Result{Fail("store", directoryError(setting, err))}
		}
		defer func() { _ = os.RemoveAll(scratch) }()
		store, err := open(scratch)
		if err != nil {
			return []Result{Fail("store", directoryError(setting, err))}
		}
		return Store(setting, dir, store)(ctx)
	}
}

func directoryError(setting string, err error) error {
	return &pipeline.StopError{Code: 2, Err: fmt.Errorf("%s: %w", setting, err), Remedy: "set " + setting + " to a directory that this user can write"}
}

// storeError adds the exit code and the remedy to the error of a store.
func storeError(setting string, s sinks.Store, err error) error {
	stop := &pipeline.StopError{Code: 8, Err: fmt.Errorf("%s: %w", setting, err), Remedy: "check the address, the bucket and the network, and choose another " + setting + " if it cannot be used"}
	_, local := s.(sinks.Local)
	switch {
	case errors.Is(err, sinks.ErrDenied):
		stop.Code, stop.Remedy = 4, "check the credentials (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_PROFILE) and that they may read, write and delete there"
	case errors.Is(err, sinks.ErrUnsafe):
		stop.Remedy = "choose another " + setting + ": two writers could overwrite each other there"
	case local:
		return directoryError(setting, err)
	}
	return stop
}

// Cluster connects with dial and reads the registry of a NATS cluster.
func Cluster(dial func(ctx context.Context) (*engine.Conn, error)) Check {
	return func(ctx context.Context) []Result {
		conn, err := dial(ctx)
		if err != nil {
			return []Result{Fail("cluster", err)}
		}
		defer func() { _ = conn.Close() }()
		runs, err := conn.BytesByRun(ctx)
		if err != nil {
			return []Result{Fail("cluster", err)}
		}
		workers, err := conn.Workers(ctx)
		if err != nil {
			return []Result{Fail("cluster", err)}
		}
		total := uint64(0)
		for _, bytes := range runs {
			total += bytes
		}
		return []Result{ok("cluster", "%s answers: %s, %s, %s in streams; new streams have %s",
			conn.Place(), count(len(runs), "run"), count(len(workers), "worker"), size(total), count(conn.Replicas(), "replica"))}
	}
}

// count formats a number with its noun.
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
