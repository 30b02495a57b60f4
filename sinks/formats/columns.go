package formats

import (
	"strings"

	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/compress"

	"github.com/tracesmith/tracesmith/schemas/arrowrec"
)

// columnClass determines whether files store a text column with a dictionary and statistics.
type columnClass uint8

const (
	classKey   columnClass = iota // enums and repeated ids: dictionary, statistics
	classHash                     // unique per row: no dictionary, statistics
	classProse                    // free text: neither; min and max would copy it into footers
)

// proseColumns and hashColumns name the text columns of all tables that are not keys. In addition,
// columns whose names end in _json are prose, and columns whose names end in sha256 are hashes.
var (
	proseColumns = nameSet("problem_statement", "error_message", "verify_reason", "patch", "patch_files", "test_patch_files",
		"message", "reasoning", "arguments_raw", "observation", "targets", "files_changed", "content",
		"text", "evidence", "invalidation_reason", "minhash_b64")
	hashColumns = nameSet("tool_call_id", "annotation_id", "stage_path")
)

func nameSet(names ...string) map[string]bool {
	m := map[string]bool{}
	for _, n := range names {
		m[n] = true
	}
	return m
}

func classOf(table, column string) columnClass {
	switch {
	case proseColumns[column] || strings.HasSuffix(column, "_json"):
		return classProse
	case hashColumns[column] || strings.HasSuffix(column, "sha256"):
		return classHash
	case column == "episode_id" && table != arrowrec.Steps.Name:
		return classHash // unique there; in steps it repeats
	}
	return classKey
}

// Settings of files. They are a compromise between size and speed, chosen by measurement.
const (
	pageBytes     = 4 << 20
	batchRows     = 8 // rows after which the writer checks the size of a page
	zstdLevel     = 3
	groupRows     = 100_000
	firstGroup    = 16 << 20 // bytes of the first row group, which is small so that viewers load fast
	groupBytes    = 64 << 20 // bytes of the other row groups
	batchEpisodes = 16       // episodes (Append calls) per record batch
)

func writerProperties(t *arrowrec.Table) *parquet.WriterProperties {
	opts := []parquet.WriterProperty{
		parquet.WithVersion(parquet.V2_LATEST),
		parquet.WithCompression(compress.Codecs.Zstd),
		parquet.WithCompressionLevel(zstdLevel),
		parquet.WithDataPageSize(pageBytes),
		parquet.WithBatchSize(batchRows),
		parquet.WithMaxRowGroupLength(groupRows),
		parquet.WithDictionaryDefault(true),
	}
	for _, c := range t.Columns {
		path := c.Name
		switch c.Kind {
		case arrowrec.Timestamp, arrowrec.Int32, arrowrec.Int64:
			if c.Required || c.Kind == arrowrec.Timestamp { // counters and times increase from row to row
				opts = append(opts, parquet.WithDictionaryFor(path, false),
					parquet.WithEncodingFor(path, parquet.Encodings.DeltaBinaryPacked))
			}
			continue
		case arrowrec.TextList:
			path += ".list.element"
		case arrowrec.Text:
		default:
			continue
		}
		switch classOf(t.Name, c.Name) {
		case classProse:
			opts = append(opts, parquet.WithDictionaryFor(path, false), parquet.WithStatsFor(path, false))
		case classHash:
			opts = append(opts, parquet.WithDictionaryFor(path, false))
		}
	}
	return parquet.NewWriterProperties(opts...)
}
