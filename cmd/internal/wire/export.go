package wire

import (
	"io"

	"github.com/tracesmith/tracesmith/llms/tokens"
	"github.com/tracesmith/tracesmith/sinks/formats"
)

// RowWriter writes the rows of an export.
type RowWriter = formats.RowWriter

// ErrNoColumns means that rows cannot be written as Parquet.
var ErrNoColumns = formats.ErrNoColumns

// NewRowWriter returns a writer of rows in a container format, such as sinks.Parquet.
func NewRowWriter(w io.Writer, container string) (RowWriter, error) {
	return formats.NewRowWriter(w, container)
}

// Vocabularies returns the names that TokenCounter accepts.
func Vocabularies() []string { return tokens.Vocabularies() }

// TokenCounter returns a function that counts the tokens of a text in a vocabulary.
func TokenCounter(vocabulary string) (func(string) int, error) {
	c, err := tokens.Named(vocabulary)
	if err != nil {
		return nil, err
	}
	return c.Text, nil
}
