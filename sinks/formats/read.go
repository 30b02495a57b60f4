package formats

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

// CorruptError means that a file is missing, damaged or not a file of a dataset.
type CorruptError struct {
	Path string
	Err  error // nil: the file is missing
}

func (e *CorruptError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("%s is missing: download the dataset again, or publish it again", e.Path)
	}
	return fmt.Sprintf("%s is damaged or not a tracesmith table: %v: delete it and publish or download the dataset again", e.Path, e.Err)
}

func (e *CorruptError) Unwrap() error { return e.Err }

// Read streams the rows of a file of table t, whose row type must be T. It skips columns
// that this version does not know. Columns that the file lacks are null. After an error,
// the sequence ends.
func Read[T any](path string, t *arrowrec.Table) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		f, err := openReader(path, t)
		if err != nil {
			yield(zero, err)
			return
		}
		defer f.close()
		for row, err := range readRows[T](f) {
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

// reader is an open file and the table column of each of its leaf columns.
type reader struct {
	path   string
	file   *os.File
	pq     *parquet.File
	leaves []*arrowrec.Column // by leaf index; nil: unknown column
}

func (r *reader) close() { _ = r.file.Close() }

func openReader(path string, t *arrowrec.Table) (_ *reader, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	r := &reader{path: path, file: file}
	defer func() {
		if p := recover(); p != nil { // the library panics on some damaged footers
			err = &CorruptError{path, fmt.Errorf("%v", p)}
		}
		if err != nil {
			r.close()
		}
	}()
	st, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	r.pq, err = parquet.OpenFile(file, st.Size(), parquet.SkipBloomFilters(true), parquet.SkipPageIndex(true))
	if err != nil {
		return nil, &CorruptError{path, err}
	}
	if err := checkCodecs(r.pq.Metadata()); err != nil {
		return nil, fmt.Errorf("%s was written by another program: %w: use the original file, or publish or download the dataset again", path, err)
	}
	if err := checkSizes(r.pq.Metadata(), st.Size()); err != nil {
		return nil, &CorruptError{path, err}
	}
	if err := r.checkMeta(t); err != nil {
		return nil, err
	}
	for _, leaf := range r.pq.Schema().Columns() {
		c, known := t.Column(leaf[0])
		if !known {
			r.leaves = append(r.leaves, nil)
			continue
		}
		r.leaves = append(r.leaves, &c)
	}
	return r, nil
}

// maxChunkBytes limits the unpacked size of one column of a row group.
const maxChunkBytes = 2 << 30

// checkCodecs accepts only Zstandard and no compression, because pages of other codecs could unpack
// to more than the footer claims.
func checkCodecs(m *format.FileMetaData) error {
	for _, g := range m.RowGroups {
		for _, c := range g.Columns {
			if d := c.MetaData; d.Codec != format.Zstd && d.Codec != format.Uncompressed {
				return fmt.Errorf("column %s is compressed with %s, not with Zstandard", strings.Join(d.PathInSchema, "."), d.Codec)
			}
		}
	}
	return nil
}

// checkSizes returns an error for a footer whose sizes would make the library allocate too much
// memory. size is the size of the file.
func checkSizes(m *format.FileMetaData, size int64) error {
	for _, g := range m.RowGroups {
		for _, c := range g.Columns {
			d := c.MetaData
			name := strings.Join(d.PathInSchema, ".")
			switch {
			case d.TotalCompressedSize < 0 || d.TotalCompressedSize > size || d.TotalUncompressedSize < 0 || d.TotalUncompressedSize > maxChunkBytes:
				return fmt.Errorf("column %s claims %d bytes, %d unpacked", name, d.TotalCompressedSize, d.TotalUncompressedSize)
			case g.NumRows < 0 || d.NumValues < 0 || d.NumValues > maxChunkBytes:
				return fmt.Errorf("column %s claims %d values", name, d.NumValues)
			}
		}
	}
	return nil
}

// checkMeta returns an error for a file of another table or of a newer major version.
func (r *reader) checkMeta(t *arrowrec.Table) error {
	if name, _ := r.pq.Lookup(arrowrec.KeyTable); name != t.Name {
		return &CorruptError{r.path, fmt.Errorf("it holds table %q, want %q", name, t.Name)}
	}
	version, _ := r.pq.Lookup(arrowrec.KeySchemaVersion)
	if major := schemas.Major(version); major < 1 || major > schemas.Major(t.Version) {
		return fmt.Errorf("%s has schema version %q, and this program reads versions up to %s: use a newer tracesmith", r.path, version, t.Version)
	}
	return nil
}

func readRows[T any](r *reader) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		for _, group := range r.pq.RowGroups() {
			rows := group.Rows()
			for {
				batch, err := nextRows[T](r, rows)
				for i := range batch {
					if !yield(batch[i], nil) {
						_ = rows.Close()
						return
					}
				}
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					_ = rows.Close()
					yield(zero, &CorruptError{r.path, err})
					return
				}
			}
			_ = rows.Close()
		}
	}
}

// nextRows decodes up to 64 rows. It returns a panic inside the library as an error.
func nextRows[T any](r *reader, rows parquet.Rows) (out []T, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, fmt.Errorf("%v", p)
		}
	}()
	var buf [64]parquet.Row
	n, err := rows.ReadRows(buf[:])
	out = make([]T, n)
	for i := range n {
		if derr := r.decode(buf[i], reflect.ValueOf(&out[i]).Elem()); derr != nil {
			return nil, derr
		}
	}
	if n == 0 && err == nil {
		err = io.ErrNoProgress
	}
	return out, err
}

// decode sets the fields of dst to the values of a row.
func (r *reader) decode(row parquet.Row, dst reflect.Value) error {
	for leaf, values := range row.Range {
		c := r.leaves[leaf]
		if c == nil || len(values) == 0 {
			continue
		}
		if c.Kind == arrowrec.TextList {
			c.SetValue(dst, textList(values))
			continue
		}
		v, err := decodeScalar(c.Kind, values[0])
		if err != nil {
			return fmt.Errorf("column %s: %w", c.Name, err)
		}
		c.SetValue(dst, v)
	}
	return nil
}

// textList decodes a list of texts. It distinguishes null (definition level 0), an empty list (1)
// and a list with elements (3).
func textList(values []parquet.Value) any {
	if values[0].DefinitionLevel() == 0 {
		return nil
	}
	list := []string{}
	for _, v := range values {
		if !v.IsNull() {
			list = append(list, string(v.ByteArray()))
		}
	}
	return list
}

func decodeScalar(k arrowrec.Kind, v parquet.Value) (any, error) {
	if v.IsNull() {
		return nil, nil
	}
	want := map[arrowrec.Kind]parquet.Kind{
		arrowrec.Text: parquet.ByteArray, arrowrec.Bool: parquet.Boolean, arrowrec.Int32: parquet.Int32,
		arrowrec.Int64: parquet.Int64, arrowrec.Float64: parquet.Double, arrowrec.Timestamp: parquet.Int64,
	}[k]
	if v.Kind() != want {
		return nil, fmt.Errorf("holds %s, want %s", v.Kind(), want)
	}
	switch k {
	case arrowrec.Text:
		return string(v.ByteArray()), nil
	case arrowrec.Bool:
		return v.Boolean(), nil
	case arrowrec.Int32:
		return v.Int32(), nil
	case arrowrec.Int64:
		return v.Int64(), nil
	case arrowrec.Float64:
		return v.Double(), nil
	default:
		return time.UnixMicro(v.Int64()).UTC(), nil
	}
}
