package wire

import (
	"io"

	"github.com/tracesmith/tracesmith/llms/tokens"
	"github.com/tracesmith/tracesmith/sinks/formats"
)

// RowWriter writes the rows of an export.
type RowWriter = formats.RowWriter

// ErrNoColumns: rows have no Parquet form.
var ErrNoColumns = formats.ErrNoColumns

// NewRowWriter writes rows in a container of package sinks.
func NewRowWriter(w io.Writer, container string) (RowWriter, error) {
	return formats.NewRowWriter(w, container)
}

// Vocabularies are the names that TokenCounter takes.
func Vocabularies() []string { return tokens.Vocabularies() }

// TokenCounter counts the tokens of texts by a vocabulary.
func TokenCounter(vocabulary string) (func(string) int, error) {
	c, err := tokens.Named(vocabulary)
	if err != nil {
		return nil, err
	}
	return c.Text, nil
}
