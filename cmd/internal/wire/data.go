package wire

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/configs"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/tape"
	"github.com/tracesmith/tracesmith/pipeline/publish"
	"github.com/tracesmith/tracesmith/pipeline/redact"
	"github.com/tracesmith/tracesmith/pipeline/rundir"
	"github.com/tracesmith/tracesmith/pipeline/selection"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
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
	skipped map[string]publish.LeftOut // staged episodes by key; nil: damaged ones are errors
}

// SkipDamaged makes all methods leave out damaged files instead of returning an error. An episode whose
// steps cannot be read has none. Call it before reading.
func (d *Data) SkipDamaged() {
	d.skipped = map[string]publish.LeftOut{}
	if d.Dataset != nil {
		d.Dataset.SkipDamaged()
	}
}

// Damaged returns the files that were left out so far.
func (d *Data) Damaged() []publish.LeftOut {
	if d.Dataset != nil {
		return d.Dataset.Damaged()
	}
	var out []publish.LeftOut
	for _, key := range slices.Sorted(maps.Keys(d.skipped)) {
		out = append(out, d.skipped[key])
	}
	return out
}

// Warnings returns the problems of files so far that did not keep their rows from being read.
func (d *Data) Warnings() []string {
	if d.Dataset == nil {
		return nil
	}
	return d.Dataset.Warnings()
}

// damagedError is the error of a staged episode that cannot be decoded.
type damagedError struct {
	path string
	err  error
}

func (e *damagedError) Error() string {
	return fmt.Sprintf("%s is damaged (%v): delete it and repeat the run to make it again", e.path, e.err)
}

func (e *damagedError) Unwrap() error { return e.err }

// skips reports whether a staged episode is left out because of err, and remembers it.
func (d *Data) skips(key string, err error) bool {
	damaged, ok := errors.AsType[*damagedError](err)
	if !ok || d.skipped == nil {
		return false
	}
	d.skipped[key] = publish.LeftOut{Table: arrowrec.Episodes.Name, Rows: 1, Err: damaged}
	return true
}

// checkPlace returns an error if place is local and not a directory.
func checkPlace(place string) error {
	if strings.Contains(place, "://") {
		return nil
	}
	switch st, err := os.Stat(place); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist: name a run directory (run --run-dir) or a dataset (publish --to)", place)
	case err == nil && !st.IsDir():
		return fmt.Errorf("%s is a file: name a run directory (run --run-dir) or a dataset (publish --to)", place)
	default:
		return err
	}
}

// OpenData opens a dataset (its latest version, or the one that place names) or the
// staged episodes of a run directory.
func OpenData(ctx context.Context, place string, cfg configs.S3) (*Data, error) {
	if err := checkPlace(place); err != nil {
		return nil, err
	}
	if isRun(place) {
		store, err := OpenStaging(ctx, place, cfg)
		if err != nil {
			return nil, err
		}
		return &Data{Place: place, store: store}, nil
	}
	root, version := publish.VersionOf(place)
	store, err := OpenStore(ctx, root, cfg)
	if err != nil {
		return nil, err
	}
	d := &Data{Place: place, store: store}
	if version == "" {
		d.Dataset, err = publish.Open(ctx, store)
	} else {
		d.Dataset, err = publish.OpenVersion(ctx, store, version)
	}
	if err != nil {
		if errors.Is(err, sinks.ErrNotFound) {
			return nil, fmt.Errorf("%s is neither a dataset (no latest.json) nor a run directory (no run.json): name the directory given to run --run-dir or publish --to", place)
		}
		return nil, err
	}
	return d, nil
}

// OpenStaging opens the staging store of a run directory. For settings that cfg does not
// set, it uses the values that the run was created with.
func OpenStaging(ctx context.Context, dir string, cfg configs.S3) (sinks.Store, error) {
	info, err := rundir.ReadInfo(strings.TrimPrefix(dir, "file://"))
	if err != nil {
		return nil, err
	}
	if info.Staging == "" {
		return OpenStore(ctx, dir, cfg)
	}
	var recorded struct {
		S3 configs.S3 `json:"s3"`
	}
	if err := json.Unmarshal(info.Config, &recorded); err != nil {
		return nil, fmt.Errorf("reading the configuration in %s: %w", filepath.Join(dir, "run.json"), err)
	}
	cfg.Endpoint = cmp.Or(cfg.Endpoint, recorded.S3.Endpoint)
	cfg.Region = cmp.Or(cfg.Region, recorded.S3.Region)
	cfg.Checksum = cmp.Or(cfg.Checksum, recorded.S3.Checksum)
	cfg.PathStyle = cfg.PathStyle || recorded.S3.PathStyle
	return OpenStore(ctx, info.Staging, cfg)
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
		rows, err := publish.Annotations(ctx, d.store, redact.NewChecker(nil))
		if err != nil {
			yield(sinks.Trajectory{}, err)
			return
		}
		annotations, wrongFactRatios := map[string][]schemas.AnnotationRow{}, publish.WrongFacts(rows)
		for _, row := range rows {
			annotations[row.EpisodeID] = append(annotations[row.EpisodeID], row)
		}
		for o, err := range d.store.List(ctx, "staging/") {
			if err != nil {
				yield(sinks.Trajectory{}, fmt.Errorf("listing staged episodes: %w", err))
				return
			}
			t, err := d.readStaged(ctx, o.Key)
			if d.skips(o.Key, err) {
				continue
			}
			if t.Annotations = annotations[t.Episode.EpisodeID]; t.Annotations != nil {
				if ratio, known := wrongFactRatios[t.Episode.EpisodeID]; known {
					t.Episode.WrongFactRatio = &ratio
				}
			}
			if !yield(t, err) || err != nil {
				return
			}
		}
	}
}

// Episodes streams all episodes for a selection; it is a selection.Source. It reads the
// steps of a dataset only if steps is set.
func (d *Data) Episodes(ctx context.Context, steps bool) iter.Seq2[selection.Episode, error] {
	return func(yield func(selection.Episode, error) bool) {
		if d.Dataset != nil && !steps {
			for row, err := range d.Dataset.Episodes(ctx) {
				if !yield(selection.Episode{Row: row}, err) || err != nil {
					return
				}
			}
			return
		}
		for t, err := range d.Trajectories(ctx) {
			if !yield(selection.Episode{Row: t.Episode, Steps: t.Steps}, err) || err != nil {
				return
			}
		}
	}
}

// EpisodesOf returns a source that streams the same episodes as Episodes and adds their
// run ids to runs.
func (d *Data) EpisodesOf(runs map[string]bool) selection.Source {
	return func(ctx context.Context, steps bool) iter.Seq2[selection.Episode, error] {
		return func(yield func(selection.Episode, error) bool) {
			for e, err := range d.Episodes(ctx, steps) {
				if err == nil {
					runs[e.Row.RunID] = true
				}
				if !yield(e, err) {
					return
				}
			}
		}
	}
}

// Identity returns the name and version of the dataset, or for a run the ids in runs.
func (d *Data) Identity(runs map[string]bool) (dataset, version string, ids []string) {
	if d.Dataset != nil {
		return d.Dataset.Manifest.Dataset, d.Dataset.Manifest.Version, nil
	}
	return "", "", slices.Sorted(maps.Keys(runs))
}

func (d *Data) readStaged(ctx context.Context, key string) (sinks.Trajectory, error) {
	s, err := d.staged(ctx, key)
	if err != nil {
		return sinks.Trajectory{}, err
	}
	return s.Trajectory(), nil
}

func (d *Data) staged(ctx context.Context, key string) (sinks.Staged, error) {
	body, err := d.store.Get(ctx, key)
	if err != nil {
		return sinks.Staged{}, fmt.Errorf("reading %s: %w", key, err)
	}
	s, err := sinks.DecodeStaged(body)
	if err != nil {
		return s, &damagedError{filepath.Join(d.Place, key), err}
	}
	return s, nil
}

// Close removes downloaded files.
func (d *Data) Close() error {
	if d.Dataset == nil {
		return nil
	}
	return d.Dataset.Close()
}

// Call is one attempt at a model call, with the bytes that were sent and received.
type Call struct {
	llms.Exchange
	RequestSHA256 string // of the request as it was sent, before secrets were masked
}

// Calls returns the model calls of an episode whose request hashes match, in order.
// Only run directories have them.
func (d *Data) Calls(episodeID string, match func(requestSHA256 string) bool) ([]Call, error) {
	if d.Dataset != nil {
		return nil, fmt.Errorf("%s is a dataset, which holds only hashes of model calls: name the run directory that it came from", d.Place)
	}
	path := tape.Path(strings.TrimPrefix(d.Place, "file://"), episodeID)
	var hashes []string
	read, err := tape.Read(path, func(sha string) bool {
		if !match(sha) {
			return false
		}
		hashes = append(hashes, sha)
		return true
	})
	var calls []Call
	for i, ex := range read {
		calls = append(calls, Call{ex, hashes[i]})
	}
	return calls, err
}
