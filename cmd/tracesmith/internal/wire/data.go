package wire

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/tape"
	"github.com/tracesmith/tracesmith/pipeline/publish"
	"github.com/tracesmith/tracesmith/sinks"
	"github.com/tracesmith/tracesmith/sinks/stores"
)

// OpenStore opens a directory or an S3 location.
func OpenStore(ctx context.Context, uri string, cfg configs.S3) (sinks.Store, error) {
	return stores.Open(ctx, uri, stores.S3Config{
		Endpoint: cfg.Endpoint, Region: cfg.Region, PathStyle: cfg.PathStyle, Checksum: cfg.Checksum,
	})
}

// Data is what show, stats and export read: a published dataset or a run.
type Data struct {
	Place   string
	Dataset *publish.Dataset // nil for a run
	store   sinks.Store
}

// OpenData opens a dataset (a root with latest.json, or one version) or the
// staged episodes of a run directory.
func OpenData(ctx context.Context, place string, cfg configs.S3) (*Data, error) {
	if !strings.Contains(place, "://") {
		if _, err := os.Stat(place); err != nil {
			return nil, fmt.Errorf("%s does not exist: name a run directory (run --run-dir) or a dataset (publish --to)", place)
		}
	}
	store, err := OpenStore(ctx, place, cfg)
	if err != nil {
		return nil, err
	}
	d := &Data{Place: place, store: store}
	if isRun(place) {
		return d, nil
	}
	if d.Dataset, err = publish.Open(ctx, store); err != nil {
		if errors.Is(err, sinks.ErrNotFound) {
			return nil, fmt.Errorf("%s is neither a dataset (no latest.json) nor a run directory (no run.json): name the directory given to run --run-dir or publish --to", place)
		}
		return nil, err
	}
	return d, nil
}

func isRun(place string) bool {
	_, err := os.Stat(filepath.Join(strings.TrimPrefix(place, "file://"), "run.json"))
	return err == nil
}

// Trajectories streams all episodes: in sort order for a dataset, in key order
// for a run.
func (d *Data) Trajectories(ctx context.Context) iter.Seq2[sinks.Trajectory, error] {
	if d.Dataset != nil {
		return d.Dataset.Trajectories(ctx)
	}
	return func(yield func(sinks.Trajectory, error) bool) {
		for o, err := range d.store.List(ctx, "staging/") {
			if err != nil {
				yield(sinks.Trajectory{}, fmt.Errorf("listing staged episodes: %w", err))
				return
			}
			t, err := d.staged(ctx, o.Key)
			if !yield(t, err) || err != nil {
				return
			}
		}
	}
}

func (d *Data) staged(ctx context.Context, key string) (sinks.Trajectory, error) {
	body, err := d.store.Get(ctx, key)
	if err != nil {
		return sinks.Trajectory{}, fmt.Errorf("reading %s: %w", key, err)
	}
	s, err := sinks.DecodeStaged(body)
	if err != nil {
		return sinks.Trajectory{}, fmt.Errorf("%s is damaged (%w): delete it and repeat the run to make it again", filepath.Join(d.Place, key), err)
	}
	return s.Trajectory(), nil
}

// Close removes what was downloaded.
func (d *Data) Close() error {
	if d.Dataset == nil {
		return nil
	}
	return d.Dataset.Close()
}

// Calls are the tries of one request of an episode, as bytes. Only run
// directories have them.
func (d *Data) Calls(episodeID, requestSHA256 string) ([]llms.Exchange, error) {
	if d.Dataset != nil {
		return nil, fmt.Errorf("%s is a dataset, which holds the hashes of model calls alone: name the run directory that it came from", d.Place)
	}
	path := tape.Path(strings.TrimPrefix(d.Place, "file://"), episodeID)
	calls, err := tape.Read(path, func(sha string) bool { return sha == requestSHA256 })
	if err == nil && len(calls) == 0 {
		err = fmt.Errorf("%s does not hold this call", path)
	}
	return calls, err
}
