package wire

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/pipeline/publish"
	"github.com/tracesmith/tracesmith/pipeline/redact"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
)

// Rows streams the rows of all episodes. Of a run, it skips those that known returns true for,
// without reading their objects: staged episodes never change.
func (d *Data) Rows(ctx context.Context, known func(episodeID string) bool) iter.Seq2[schemas.EpisodeRow, error] {
	if d.Dataset != nil {
		return d.Dataset.Episodes(ctx)
	}
	return func(yield func(schemas.EpisodeRow, error) bool) {
		for o, err := range d.store.List(ctx, "staging/") {
			if err != nil {
				yield(schemas.EpisodeRow{}, fmt.Errorf("listing staged episodes: %w", err))
				return
			}
			if known(stagedID(o.Key)) {
				continue
			}
			t, err := d.readStaged(ctx, o.Key)
			if d.skips(o.Key, err) {
				continue
			}
			if !yield(t.Episode, err) || err != nil {
				return
			}
		}
	}
}

// stagedID returns the id of the episode in a staged object.
func stagedID(key string) string {
	id, _, _ := strings.Cut(path.Base(key), ".")
	return id
}

// Trajectory returns the whole episode of a row that Rows returned.
func (d *Data) Trajectory(ctx context.Context, row schemas.EpisodeRow) (sinks.Trajectory, error) {
	if d.Dataset != nil {
		return d.Dataset.Trajectory(ctx, row)
	}
	t, err := d.readStaged(ctx, sinks.StagedKey(row.RunID, row.EpisodeID))
	if err != nil {
		return t, err
	}
	notes, err := publish.Annotations(ctx, d.store, redact.NewChecker(nil))
	if err != nil {
		return t, err
	}
	for _, note := range notes {
		if note.EpisodeID == row.EpisodeID {
			t.Annotations = append(t.Annotations, note)
		}
	}
	if ratio, known := publish.WrongFacts(t.Annotations)[row.EpisodeID]; known {
		t.Episode.WrongFactRatio = &ratio
	}
	return t, nil
}

// Observation returns the observation of a step as the model saw it, also if the step's row has only its beginning.
// The error wraps sinks.ErrNotFound if the rest cannot be read because SkipDamaged leaves it out.
func (d *Data) Observation(ctx context.Context, e schemas.EpisodeRow, step *schemas.StepRow) (string, error) {
	if !step.ObservationCut() {
		return schemas.Value(step.Observation), nil
	}
	sha := schemas.Value(step.ObservationSHA256)
	if d.Dataset != nil {
		return d.Dataset.Blob(ctx, sha)
	}
	s, err := d.staged(ctx, sinks.StagedKey(e.RunID, e.EpisodeID))
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(s.Blobs, func(b sinks.Blob) bool { return b.SHA256 == sha })
	if i < 0 {
		return "", fmt.Errorf("text %s of episode %s: %w", sha, e.EpisodeID, sinks.ErrNotFound)
	}
	return s.Blobs[i].Content, nil
}

// TrajectoriesOf streams the whole episodes of rows that Rows returned, without the annotations of a
// run. It reads them faster than Trajectory does one by one.
func (d *Data) TrajectoriesOf(ctx context.Context, rows []schemas.EpisodeRow) iter.Seq2[sinks.Trajectory, error] {
	return func(yield func(sinks.Trajectory, error) bool) {
		if d.Dataset == nil {
			for _, row := range rows {
				t, err := d.readStaged(ctx, sinks.StagedKey(row.RunID, row.EpisodeID))
				if !yield(t, err) || err != nil {
					return
				}
			}
			return
		}
		wanted := map[string]bool{}
		for _, row := range rows {
			wanted[row.EpisodeID] = true
		}
		for t, err := range d.Dataset.Trajectories(ctx) {
			if (err != nil || wanted[t.Episode.EpisodeID]) && !yield(t, err) {
				return
			}
		}
	}
}

// Revision returns a text that changes whenever an episode is staged, a job fails, or another
// version of the dataset becomes the latest one.
func (d *Data) Revision(ctx context.Context) (string, error) {
	if d.Dataset != nil {
		return d.datasetRevision(ctx)
	}
	staged := 0
	for _, err := range d.store.List(ctx, "staging/") {
		if err != nil {
			return "", fmt.Errorf("listing staged episodes: %w", err)
		}
		staged++
	}
	dead, err := d.DeadLetters(ctx)
	return fmt.Sprintf("%d staged, %d dead", staged, len(dead)), err
}

func (d *Data) datasetRevision(ctx context.Context) (string, error) {
	if _, version := publish.VersionOf(d.Place); version != "" {
		return version, nil
	}
	raw, err := d.store.Get(ctx, "latest.json")
	if errors.Is(err, sinks.ErrNotFound) {
		return d.Dataset.Manifest.Version, nil
	}
	var latest schemas.Pointer
	if err == nil {
		err = json.Unmarshal(raw, &latest)
	}
	if err != nil {
		return "", fmt.Errorf("reading latest.json of %s: %w", d.Place, err)
	}
	return cmp.Or(latest.Version, d.Dataset.Manifest.Version), nil
}
