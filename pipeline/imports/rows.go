package imports

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/tracesmith/tracesmith/pipeline/normalise"
	"github.com/tracesmith/tracesmith/schemas"
	"github.com/tracesmith/tracesmith/sinks"
	"github.com/tracesmith/tracesmith/sinks/formats"
)

// RowError is the error of one row, or of a file that is one trajectory. Unless Last is set, the other
// rows of the file follow.
type RowError struct {
	File string
	Row  string // "row 3" or "line 3"; empty if the file is one trajectory
	Last bool
	Err  error
}

func (e *RowError) Error() string {
	place := e.File
	if e.Row != "" {
		place += ", " + e.Row
	}
	return place + ": " + strings.TrimPrefix(e.Err.Error(), "line 1: ")
}

func (e *RowError) Unwrap() error { return e.Err }

// row is a trajectory of a file with many. Its name is "row 3" or "line 3", counted from 1.
type row struct {
	name string
	raw  []byte // JSON; valid until the next row
}

// Episodes streams the episodes of a file. JSON lines (.jsonl, .ndjson) and Parquet (.parquet)
// contain one trajectory per row, and so may a JSON list of the formats openhands and messages. Any
// other file is one trajectory. Each may be compressed (.gz, .zst). A *RowError is the error of a
// row. Any other error means that the whole file is unusable. Episodes keeps one row in memory, or
// 64 of a Parquet file.
func Episodes(format string, file File, cfg normalise.Config) iter.Seq2[sinks.Staged, error] {
	return func(yield func(sinks.Staged, error) bool) {
		path := file.Path
		st, err := os.Stat(path)
		switch {
		case err == nil && isParquet(path):
			rowEpisodes(format, file, parquetRows(path), st, cfg)(yield)
			return
		case err == nil && isLines(path):
			rowEpisodes(format, file, lineRows(path), st, cfg)(yield)
			return
		}
		var raw []byte
		if err == nil {
			raw, err = readDocument(path)
		}
		if err != nil {
			yield(sinks.Staged{}, fmt.Errorf("%s cannot be read: %w", path, err))
			return
		}
		if isListOfRows(format, raw) {
			rowEpisodes(format, file, listRows(raw), st, cfg)(yield)
			return
		}
		staged, err := Read(format, uncompressed(file.Name), raw, st.ModTime(), cfg)
		if err != nil {
			err = &RowError{File: path, Err: errors.Unwrap(err)}
		}
		yield(staged, err)
	}
}

// rowEpisodes converts rows into episodes.
func rowEpisodes(format string, file File, rows iter.Seq2[row, error], st os.FileInfo, cfg normalise.Config) iter.Seq2[sinks.Staged, error] {
	return func(yield func(sinks.Staged, error) bool) {
		first := true
		for r, err := range rows {
			var staged sinks.Staged
			last := err != nil && !errors.Is(err, errLongRow)
			switch {
			case last && first:
				yield(staged, fmt.Errorf("%s cannot be read: %w", file.Path, err))
				return
			case err == nil:
				staged, err = rowEpisode(format, r, origin{file: file.Name, row: r.name, modified: st.ModTime()}, cfg)
			}
			if err != nil {
				err = &RowError{File: file.Path, Row: r.name, Last: last, Err: err}
			}
			if !yield(staged, err) || last {
				return
			}
			first = false
		}
		if first {
			yield(sinks.Staged{}, fmt.Errorf("%s contains no rows", file.Path))
		}
	}
}

func rowEpisode(format string, r row, from origin, cfg normalise.Config) (sinks.Staged, error) {
	var named struct {
		ID lenient[string] `json:"instance_id"`
	}
	if err := decode(r.raw, &named); err != nil {
		return sinks.Staged{}, err
	}
	return convert(format, named.ID.value, r.raw, from, cfg)
}

func isParquet(path string) bool { return strings.EqualFold(filepath.Ext(path), ".parquet") }

func isLines(path string) bool {
	switch strings.ToLower(filepath.Ext(uncompressed(path))) {
	case ".jsonl", ".ndjson":
		return true
	}
	return false
}

// open opens a file, which it decompresses.
func open(path string) (io.ReadCloser, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	var text io.Reader = file
	switch filepath.Ext(path) {
	case ".gz":
		text, err = gzip.NewReader(file)
	case ".zst":
		var z *zstd.Decoder
		if z, err = zstd.NewReader(file, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true)); err == nil {
			text = z.IOReadCloser()
		}
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{text, file}, nil
}

// readDocument reads a file of at most MaxBytes.
func readDocument(path string) ([]byte, error) {
	file, err := open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, MaxBytes+1))
	if err == nil && len(raw) > MaxBytes {
		err = fmt.Errorf("it is larger than %d MiB: only .jsonl and .parquet files may be", MaxBytes>>20)
	}
	return raw, err
}

// errLongRow means that a line is skipped because it is too long.
var errLongRow = fmt.Errorf("it is longer than %d MiB", MaxBytes>>20)

// lineRows streams the lines of a file that are not blank.
func lineRows(path string) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		file, err := open(path)
		if err != nil {
			yield(row{}, err)
			return
		}
		defer file.Close()
		in := bufio.NewReaderSize(file, 1<<20)
		var line []byte
		for n := 1; ; n++ {
			var err error
			line, err = nextLine(in, line[:0])
			failed := err != nil && !errors.Is(err, io.EOF)
			if text := bytes.TrimSpace(line); len(text) > 0 || failed {
				var rowErr error
				if failed {
					rowErr = err
				}
				if !yield(row{fmt.Sprintf("line %d", n), text}, rowErr) {
					return
				}
			}
			if err != nil && !errors.Is(err, errLongRow) {
				return
			}
		}
	}
}

// nextLine appends the next line to line. It skips a line that is too long.
func nextLine(in *bufio.Reader, line []byte) ([]byte, error) {
	long := false
	for {
		part, err := in.ReadSlice('\n')
		if long = long || len(line)+len(part) > MaxBytes; !long {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case long && (err == nil || errors.Is(err, io.EOF)):
			return nil, errLongRow // at the end of the file, the next call returns io.EOF
		default:
			return line, err
		}
	}
}

// parquetRows streams the rows of a Parquet file as JSON.
func parquetRows(path string) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		n := 0
		for values, err := range formats.Records(path) {
			n++
			r := row{name: fmt.Sprintf("row %d", n)}
			if err == nil {
				r.raw, err = schemas.CanonicalJSON(withoutNulls(values))
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// isListOfRows reports whether a document is a list of trajectories, instead of the messages or
// events of one.
func isListOfRows(format string, raw []byte) bool {
	if format != "openhands" && format != "messages" {
		return false
	}
	for r, err := range listRows(raw) {
		return err == nil && hasKey(r.raw, conversationKeys...) && !hasKey(r.raw, "role")
	}
	return false
}

// listRows streams the elements of a JSON list.
func listRows(raw []byte) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		dec := json.NewDecoder(bytes.NewReader(raw))
		if start, err := dec.Token(); err != nil || start != json.Delim('[') {
			return
		}
		for n := 1; dec.More(); n++ {
			var element json.RawMessage
			err := dec.Decode(&element)
			if err != nil {
				err = withLine(raw, err, dec.InputOffset())
			}
			if !yield(row{fmt.Sprintf("row %d", n), element}, err) || err != nil {
				return
			}
		}
	}
}
