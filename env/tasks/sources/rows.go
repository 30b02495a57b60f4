package sources

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tracesmith/tracesmith/sinks/formats"
)

// row is one row of a public dataset.
type row struct {
	where    string // file and row or line number, for messages
	index    int    // index in the file, from 0
	fields   map[string]any
	problems []error // each names the place, the column and the expected value
}

// Limits on reading a dataset.
const (
	maxRow      = 256 << 20 // bytes of one JSONL line
	maxJSON     = 1 << 30   // bytes of one JSON list
	maxProblems = 20        // problems reported at once
)

// readRows reads all rows of the files that dataFiles returns: Parquet, a JSON list or JSONL.
// It fails if there are no rows.
func readRows(ctx context.Context, name, split string) ([]row, error) {
	files, err := dataFiles(name, split)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, file := range files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var more []row
		switch filepath.Ext(file) {
		case ".parquet":
			more, err = parquetRows(ctx, file)
		case ".json":
			more, err = jsonRows(file)
		default:
			more, err = jsonlRows(file)
		}
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%s contains no rows", name)
	}
	return rows, nil
}

// dataFiles returns name if it is a file. If name is a directory, dataFiles returns the .parquet and .jsonl
// files in it and in its data/ whose names begin with split, or all of them if split is "". It fails if there
// are none. Within each directory, the files are in name order.
func dataFiles(name, split string) ([]string, error) {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s does not exist: name the dataset's file (.parquet, .json, .jsonl) or its directory", name)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the dataset: %w", err)
	}
	if !info.IsDir() {
		if !slices.Contains([]string{".parquet", ".json", ".jsonl"}, filepath.Ext(name)) {
			return nil, fmt.Errorf("%s: want .parquet, .json or .jsonl", name)
		}
		return []string{name}, nil
	}
	var found, ofSplit []string
	for _, dir := range []string{name, filepath.Join(name, "data")} {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("opening the dataset: %w", err)
		}
		for _, e := range entries {
			full := filepath.Join(dir, e.Name())
			switch filepath.Ext(full) {
			case ".arrow":
				return nil, fmt.Errorf("%s is an Arrow directory of the datasets library: write it as Parquet first (to_parquet)", name)
			case ".parquet", ".jsonl":
				found = append(found, full)
				if split != "" && strings.HasPrefix(e.Name(), split) {
					ofSplit = append(ofSplit, full)
				}
			}
		}
	}
	switch {
	case len(found) == 0:
		return nil, fmt.Errorf("%s contains no .parquet or .jsonl file", name)
	case split == "":
		return found, nil
	case len(ofSplit) == 0:
		return nil, fmt.Errorf("%s has no file of the split %q: there are %s", name, split, strings.Join(found, ", "))
	}
	return ofSplit, nil
}

func parquetRows(ctx context.Context, file string) (rows []row, err error) {
	for fields, err := range formats.Records(file) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		rows = append(rows, row{where: fmt.Sprintf("%s: row %d", file, len(rows)+1), index: len(rows), fields: fields})
	}
	return rows, nil
}

func jsonlRows(file string) ([]row, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	in.Buffer(make([]byte, 64<<10), maxRow)
	var rows []row
	for n := 1; in.Scan(); n++ {
		text := bytes.TrimSpace(in.Bytes())
		if len(text) == 0 {
			continue
		}
		r := row{where: fmt.Sprintf("%s:%d", file, n), index: len(rows)}
		if err := r.parse(text); err != nil {
			return nil, fmt.Errorf("%s: want a JSON object per line: %w", r.where, err)
		}
		rows = append(rows, r)
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return rows, nil
}

// jsonRows reads a JSON list of objects, or JSONL if the file begins with an object, because some
// datasets name such files .json.
func jsonRows(file string) ([]row, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := bufio.NewReader(io.LimitReader(f, maxJSON))
	if first, err := in.Peek(1); err == nil && first[0] == '{' {
		return jsonlRows(file)
	}
	var list []json.RawMessage
	if err := json.NewDecoder(in).Decode(&list); err != nil {
		return nil, fmt.Errorf("%s: want a list of objects: %w", file, err)
	}
	rows := make([]row, len(list))
	for i, text := range list {
		rows[i] = row{where: fmt.Sprintf("%s: row %d", file, i+1), index: i}
		if err := rows[i].parse(text); err != nil {
			return nil, fmt.Errorf("%s: want a list of objects: %w", rows[i].where, err)
		}
		list[i] = nil
	}
	return rows, nil
}

// parse decodes the columns. It refuses text that is not UTF-8, because the decoder would silently replace
// the invalid bytes and a patch would no longer apply.
func (r *row) parse(text []byte) error {
	if !utf8.Valid(text) {
		return errors.New("not UTF-8: convert the file")
	}
	return json.Unmarshal(text, &r.fields)
}

func (r *row) problem(format string, args ...any) {
	r.problems = append(r.problems, fmt.Errorf("%s: %s", r.where, fmt.Sprintf(format, args...)))
}

// text returns a required text column. If the column is missing or empty, text records a problem,
// unless the row already has one.
func (r *row) text(column string) string {
	s := r.optionalText(column)
	if strings.TrimSpace(s) == "" && len(r.problems) == 0 {
		r.problem("column %q is missing or empty", column)
	}
	return s
}

// optionalText returns an optional text column, or "" if it is missing. A number becomes its text.
func (r *row) optionalText(column string) string {
	switch v := r.fields[column].(type) {
	case nil:
		return ""
	case string:
		return v
	case float64, int64:
		return fmt.Sprint(v)
	}
	r.problem("column %q: want text", column)
	return ""
}

// list returns a column of non-empty strings, which is a list in some datasets and the JSON text of a
// list in others. For anything else it records a problem and returns nil.
func (r *row) list(column string) []string {
	v := r.fields[column]
	if s, ok := v.(string); ok {
		v = nil
		if err := json.Unmarshal([]byte(s), &v); err != nil {
			r.problem("column %q: want a list of texts, or its JSON: %v", column, err)
			return nil
		}
	}
	items, ok := v.([]any)
	if !ok {
		r.problem("column %q: want a list of texts, or its JSON", column)
		return nil
	}
	out := make([]string, 0, len(items))
	for _, item := range items {
		s, ok := item.(string)
		if !ok || s == "" {
			r.problem("column %q: want texts, there is %v", column, item)
			return nil
		}
		out = append(out, s)
	}
	return out
}

// object decodes a required column that holds the JSON text of an object. It reports whether into is
// filled, and records a problem if not.
func (r *row) object(column string, into any) bool {
	s := r.text(column)
	if s == "" {
		return false
	}
	if err := json.Unmarshal([]byte(s), into); err != nil {
		r.problem("column %q: want the JSON of an object: %v", column, err)
		return false
	}
	return true
}
