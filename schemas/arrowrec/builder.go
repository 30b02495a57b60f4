package arrowrec

import (
	"errors"
	"fmt"
	"reflect"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// maxBatchBytes keeps a batch well below the 2 GiB that 32-bit string offsets can
// address.
const maxBatchBytes = 1 << 30

// Builder collects rows of type T into records. It is not safe for concurrent use.
// The caller must call Release.
type Builder[T any] struct {
	table  *Table
	rb     *array.RecordBuilder
	raw    int64
	schema *arrow.Schema
}

// NewBuilder returns a builder for table t, whose row type must be T.
func NewBuilder[T any](mem memory.Allocator, t *Table, m Meta) *Builder[T] {
	s := t.Schema(m)
	return &Builder[T]{table: t, schema: s, rb: array.NewRecordBuilder(mem, s)}
}

// Schema returns the schema of the records.
func (b *Builder[T]) Schema() *arrow.Schema { return b.schema }

// RawBytes returns the size of the values appended since the last Record, before
// any encoding: four bytes plus its length for a text, the width of other types.
func (b *Builder[T]) RawBytes() int64 { return b.raw }

// Append adds one row. It fails if a text is not valid UTF-8 or the batch exceeds
// 1 GiB; the builder is then unusable.
func (b *Builder[T]) Append(row *T) error {
	rv := reflect.ValueOf(row).Elem()
	for i, c := range b.table.Columns {
		n, err := appendValue(b.rb.Field(i), c.Value(rv))
		if err != nil {
			return fmt.Errorf("table %s, column %s: %w", b.table.Name, c.Name, err)
		}
		b.raw += n
	}
	if b.raw > maxBatchBytes {
		return fmt.Errorf("table %s: a batch of %d bytes exceeds the limit of %d: move long text to blobs", b.table.Name, b.raw, maxBatchBytes)
	}
	return nil
}

// Record returns the appended rows as a record, which the caller releases, and starts a new one.
func (b *Builder[T]) Record() arrow.Record {
	b.raw = 0
	return b.rb.NewRecord()
}

// Release frees the builder.
func (b *Builder[T]) Release() { b.rb.Release() }

func appendValue(fb array.Builder, v any) (int64, error) {
	switch v := v.(type) {
	case nil:
		fb.AppendNull()
		return 1, nil
	case string:
		if !utf8.ValidString(v) {
			return 0, errInvalidUTF8
		}
		fb.(*array.StringBuilder).Append(v)
		return int64(len(v)) + 4, nil
	case bool:
		fb.(*array.BooleanBuilder).Append(v)
		return 1, nil
	case int32:
		fb.(*array.Int32Builder).Append(v)
		return 4, nil
	case int64:
		fb.(*array.Int64Builder).Append(v)
		return 8, nil
	case float64:
		fb.(*array.Float64Builder).Append(v)
		return 8, nil
	case time.Time:
		fb.(*array.TimestampBuilder).Append(arrow.Timestamp(v.UnixMicro()))
		return 8, nil
	case []string:
		lb := fb.(*array.ListBuilder)
		lb.Append(true)
		n := int64(4)
		for _, s := range v {
			m, err := appendValue(lb.ValueBuilder(), s)
			if err != nil {
				return 0, err
			}
			n += m
		}
		return n, nil
	}
	return 0, fmt.Errorf("value of type %T", v)
}

var errInvalidUTF8 = errors.New("text is not valid UTF-8: clean it with schemas.ValidUTF8 before it becomes part of a row")
