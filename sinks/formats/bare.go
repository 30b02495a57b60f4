package formats

import (
	"errors"
	"fmt"
	"os"

	"github.com/apache/arrow/go/v17/arrow/memory"
	"github.com/apache/arrow/go/v17/parquet/pqarrow"

	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

// WriteBare writes units of rows to a new file with only the library: it does not hash,
// sync, rename or read back the file. Benchmarks compare ShardWriter with it.
func WriteBare[T any](path string, t *arrowrec.Table, units [][]T) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("creating %s: %w", path, err)
	}
	defer func() { _ = f.Close() }() // the writer closes it first
	b := arrowrec.NewBuilder[T](memory.NewGoAllocator(), t, arrowrec.Meta{})
	defer b.Release()
	w, err := pqarrow.NewFileWriter(b.Schema(), f, writerProperties(t), pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	for i, rows := range units {
		for k := range rows {
			if err := b.Append(&rows[k]); err != nil {
				return fmt.Errorf("writing %s: %w", path, err)
			}
		}
		if i%batchEpisodes < batchEpisodes-1 && i < len(units)-1 {
			continue
		}
		rec := b.Record()
		err := w.WriteBuffered(rec)
		rec.Release()
		if err != nil {
			return fmt.Errorf("writing %s: %w", path, err)
		}
	}
	return nil
}
