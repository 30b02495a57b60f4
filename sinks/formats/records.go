package formats

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"time"

	"github.com/parquet-go/parquet-go"
)

// Records streams the rows of any Parquet file, for example of another project's
// dataset, as maps of strings, numbers (int64, float64), booleans, lists and maps.
// Null columns are absent. If the file is damaged, or claims more than 2 GiB for a
// column of a row group, the sequence ends with an error that names the file.
func Records(path string) iter.Seq2[map[string]any, error] {
	return func(yield func(map[string]any, error) bool) {
		file, err := os.Open(path)
		if err != nil {
			yield(nil, fmt.Errorf("opening %s: %w", path, err))
			return
		}
		defer file.Close()
		pq, err := openForeign(file)
		if err != nil {
			yield(nil, fmt.Errorf("%s is damaged or not a Parquet file: %w", path, err))
			return
		}
		// Arrow marks the root of a schema as repeated, but a row is not.
		schema := parquet.NewSchema(pq.Schema().Name(), parquet.Required(pq.Schema()))
		for _, group := range pq.RowGroups() {
			rows := group.Rows()
			more, err := records(schema, rows, yield)
			_ = rows.Close()
			if err != nil {
				yield(nil, fmt.Errorf("%s is damaged: %w", path, err))
			}
			if err != nil || !more {
				return
			}
		}
	}
}

func openForeign(file *os.File) (pq *parquet.File, err error) {
	defer func() {
		if p := recover(); p != nil { // the library panics on some damaged footers
			err = fmt.Errorf("%v", p)
		}
	}()
	st, err := file.Stat()
	if err != nil {
		return nil, err
	}
	pq, err = parquet.OpenFile(file, st.Size(), parquet.SkipBloomFilters(true), parquet.SkipPageIndex(true))
	if err != nil {
		return nil, err
	}
	return pq, checkSizes(pq.Metadata(), st.Size())
}

// records yields the rows of one group; more is false if the consumer stopped.
func records(schema *parquet.Schema, rows parquet.Rows, yield func(map[string]any, error) bool) (more bool, err error) {
	for {
		batch, err := nextRecords(schema, rows)
		for _, r := range batch {
			if !yield(r, nil) {
				return false, nil
			}
		}
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
}

func nextRecords(schema *parquet.Schema, rows parquet.Rows) (out []map[string]any, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, fmt.Errorf("%v", p)
		}
	}()
	var buf [64]parquet.Row
	n, err := rows.ReadRows(buf[:])
	for _, row := range buf[:n] {
		values := map[string]any{}
		if rerr := schema.Reconstruct(&values, row); rerr != nil {
			return nil, rerr
		}
		for name, v := range values {
			if v = plainValue(v); v == nil {
				delete(values, name)
			} else {
				values[name] = v
			}
		}
		out = append(out, values)
	}
	if n == 0 && err == nil {
		err = io.ErrNoProgress
	}
	return out, err
}

// plainValue converts a value of the library to the types that Records documents. A list in
// Parquet is a group "list" whose elements have one field, such as "element" or "item".
func plainValue(v any) any {
	switch v := v.(type) {
	case []byte:
		return string(v)
	case int32:
		return int64(v)
	case float32:
		return float64(v)
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = plainValue(v[i])
		}
		return out
	case map[string]any:
		if list, ok := v["list"].([]any); ok && len(v) == 1 {
			return listElements(list)
		}
		out := map[string]any{}
		for name, value := range v {
			if value = plainValue(value); value != nil {
				out[name] = value
			}
		}
		return out
	}
	return v
}

func listElements(list []any) []any {
	out := make([]any, 0, len(list))
	for _, e := range list {
		if m, ok := e.(map[string]any); ok && len(m) == 1 {
			for _, name := range []string{"element", "item", "array"} {
				if inner, named := m[name]; named {
					e = inner
				}
			}
		}
		out = append(out, plainValue(e))
	}
	return out
}
