package publish

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
	"github.com/tracesmith/tracesmith/sinks/formats"
)

// SkipDamaged makes Episodes, Steps, Trajectories and the other methods that read rows leave out
// damaged and missing files instead of returning an error. Trajectories then also returns episodes
// whose steps cannot be read, without steps. Call it before reading.
func (d *Dataset) SkipDamaged() { d.skipped = map[string]LeftOut{} }

// Damaged returns the files that were left out so far, sorted by path.
func (d *Dataset) Damaged() []LeftOut {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []LeftOut
	for _, path := range slices.Sorted(maps.Keys(d.skipped)) {
		out = append(out, d.skipped[path])
	}
	return out
}

// skips reports whether the rows of f are left out because of err, and remembers them.
func (d *Dataset) skips(f schemas.ManifestFile, err error) bool {
	if _, corrupt := errors.AsType[*formats.CorruptError](err); !corrupt || d.skipped == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.skipped[f.Path] = LeftOut{f.Table, f.Rows, err}
	return true
}

// readableEpisodes returns the ids of the episodes whose rows can be read; nil if no file of table
// episodes is left out.
func (d *Dataset) readableEpisodes(ctx context.Context) (map[string]bool, error) {
	whole := true
	for _, f := range d.Manifest.Files {
		if f.Table != arrowrec.Episodes.Name || d.skipped == nil {
			continue
		}
		if _, err := d.File(ctx, f); d.skips(f, err) {
			whole = false
		} else if err != nil {
			return nil, err
		}
	}
	if whole {
		return nil, nil
	}
	ids := map[string]bool{}
	for e, err := range d.Episodes(ctx) {
		if err != nil {
			return nil, err
		}
		ids[e.EpisodeID] = true
	}
	return ids, nil
}
