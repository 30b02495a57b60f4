package publish

import (
	"context"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

// Verify checks every file of the manifest.
func (d *Dataset) Verify(ctx context.Context) error {
	for _, f := range d.Manifest.Files {
		if _, err := d.File(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// Kept returns the IDs of the episodes that the version's selection kept.
func (d *Dataset) Kept(ctx context.Context) (map[string]bool, error) {
	kept := map[string]bool{}
	for row, err := range rows[schemas.SelectionRow](ctx, d, arrowrec.Selection) {
		if err != nil {
			return nil, err
		}
		if row.Kept {
			kept[row.EpisodeID] = true
		}
	}
	return kept, nil
}
