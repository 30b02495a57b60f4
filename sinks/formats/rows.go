package formats

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	pqzstd "github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/tracesmith/tracesmith/schemas"
)

// RowWriter writes the rows of a view in one container. Close completes the
// container; it does not close the underlying writer.
type RowWriter interface {
	// Write adds a row: JSON lines use value, Parquet uses columns, a struct with
	// parquet tags.
	Write(value, columns any) error
	Close() error
}

// NewRowWriter returns a writer of rows to w in the given container (see
// sinks.Containers). Equal rows give equal bytes.
func NewRowWriter(w io.Writer, container string) (RowWriter, error) {
	switch container {
	case "jsonl":
		return &lineWriter{w: w, close: func() error { return nil }}, nil
	case "jsonl.gz":
		zip := gzip.NewWriter(w) // writes neither a name nor a time, so equal rows give equal bytes
		return &lineWriter{w: zip, close: zip.Close}, nil
	case "jsonl.zst":
		zip, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return nil, fmt.Errorf("compressing rows: %w", err)
		}
		return &lineWriter{w: zip, close: zip.Close}, nil
	case "parquet":
		return &columnWriter{w: w}, nil
	}
	return nil, fmt.Errorf("unknown container %q", container)
}

// lineWriter writes JSON lines.
type lineWriter struct {
	w     io.Writer
	close func() error
}

func (l *lineWriter) Write(value, _ any) error {
	line, err := schemas.OrderedJSON(value)
	if err != nil {
		return err
	}
	if _, err := l.w.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("writing rows: %w", err)
	}
	return nil
}

func (l *lineWriter) Close() error {
	if err := l.close(); err != nil {
		return fmt.Errorf("writing rows: %w", err)
	}
	return nil
}

// ErrNoColumns means that the rows have no Parquet form.
var ErrNoColumns = errors.New("these rows have no Parquet form")

// exportGroup is the number of rows in a row group.
const exportGroup = 1024

// columnWriter takes its schema from the first row. It uses parquet-go, which can write
// nested rows from struct tags.
type columnWriter struct {
	w      io.Writer
	writer *parquet.GenericWriter[any]
	rows   int
}

func (c *columnWriter) Write(_, columns any) error {
	if columns == nil {
		return ErrNoColumns
	}
	if c.writer == nil {
		c.writer = parquet.NewGenericWriter[any](c.w, parquet.SchemaOf(columns), parquet.Compression(&pqzstd.Codec{Level: pqzstd.SpeedDefault}),
			parquet.CreatedBy("tracesmith", "", ""))
	}
	_, err := c.writer.Write([]any{columns})
	if c.rows++; err == nil && c.rows%exportGroup == 0 {
		err = c.writer.Flush()
	}
	if err != nil {
		return fmt.Errorf("writing rows: %w", err)
	}
	return nil
}

func (c *columnWriter) Close() error {
	if c.writer == nil {
		return nil
	}
	if err := c.writer.Close(); err != nil {
		return fmt.Errorf("writing rows: %w", err)
	}
	return nil
}
