package formats

import (
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/parquet-go/parquet-go"

	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

// ReadWhere is like Read, but streams only the rows whose text column has the given value. It
// decodes no other column of other rows, so it is fast if the rows with a value are together.
func ReadWhere[T any](path string, t *arrowrec.Table, column, value string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		f, err := openReader(path, t)
		if err != nil {
			yield(zero, err)
			return
		}
		defer f.close()
		leaf, ok := f.pq.Schema().Lookup(column)
		if !ok {
			yield(zero, &CorruptError{path, fmt.Errorf("it lacks column %s", column)})
			return
		}
		for _, group := range f.pq.RowGroups() {
			matches, err := matchingRows(group.ColumnChunks()[leaf.ColumnIndex], value)
			if err != nil {
				yield(zero, &CorruptError{path, err})
				return
			}
			if len(matches) > 0 && !yieldRows(f, group, matches, yield) {
				return
			}
		}
	}
}

// span is a range of rows of a row group: [from, to).
type span struct{ from, to int64 }

// matchingRows returns the ranges of rows in which a column without repetition has a value. It
// returns a panic inside the library as an error.
func matchingRows(chunk parquet.ColumnChunk, value string) (out []span, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, fmt.Errorf("%v", p)
		}
	}()
	pages := chunk.Pages()
	defer pages.Close()
	row, values := int64(0), make([]parquet.Value, 1024)
	for {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		reader := page.Values()
		for {
			n, err := reader.ReadValues(values)
			for _, v := range values[:n] {
				if !v.IsNull() && v.Kind() == parquet.ByteArray && string(v.ByteArray()) == value {
					if last := len(out) - 1; last >= 0 && out[last].to == row {
						out[last].to++
					} else {
						out = append(out, span{row, row + 1})
					}
				}
				row++
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, err
			}
			if n == 0 {
				return nil, io.ErrNoProgress
			}
		}
		parquet.Release(page)
	}
}

// yieldRows yields the rows in the given ranges of a row group. It returns false after an error,
// or if yield returned false.
func yieldRows[T any](f *reader, group parquet.RowGroup, spans []span, yield func(T, error) bool) bool {
	var zero T
	rows := group.Rows()
	defer rows.Close()
	for _, s := range spans {
		if err := rows.SeekToRow(s.from); err != nil {
			yield(zero, &CorruptError{f.path, err})
			return false
		}
		for left := s.to - s.from; left > 0; {
			batch, err := nextRows[T](f, rows)
			batch = batch[:min(left, int64(len(batch)))]
			for i := range batch {
				if !yield(batch[i], nil) {
					return false
				}
			}
			if left -= int64(len(batch)); err != nil && left > 0 {
				yield(zero, &CorruptError{f.path, err})
				return false
			}
		}
	}
	return true
}
