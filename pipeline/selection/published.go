package selection

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
	"github.com/tracesmith/tracesmith/sinks/formats"
)

// parquetMagic begins every Parquet file.
const parquetMagic = "PAR1"

// Published returns the selection with which a version of a dataset was published. place is its name in
// error messages.
func Published(place string, m schemas.Manifest, rows []schemas.SelectionRow) *File {
	f := &File{place: place, Rows: rows, Header: Header{
		Schema: FileSchema, Dataset: m.Dataset, Version: m.Version, Episodes: len(rows), Kept: m.Totals.Kept, SelectionInfo: *m.Selection,
	}}
	f.seal()
	return f
}

// loadPublished reads the file selection/NAME.parquet of a dataset.
func loadPublished(path string) (*File, error) {
	var m schemas.Manifest
	raw, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(path)), "manifest.json"))
	if err != nil || json.Unmarshal(raw, &m) != nil || m.Selection == nil {
		return nil, fmt.Errorf("selection %s: a Parquet file is a selection only inside its dataset: name DATASET/selection/NAME.parquet, or a file that tracesmith filter wrote", path)
	}
	var rows []schemas.SelectionRow
	for row, err := range formats.Read[schemas.SelectionRow](path, arrowrec.Selection) {
		if err != nil {
			return nil, fmt.Errorf("selection %s: %w", path, err)
		}
		rows = append(rows, row)
	}
	return Published(path, m, rows), nil
}
