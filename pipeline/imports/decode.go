package imports

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// lenient decodes a JSON value of type T. It stays zero if the JSON value has another type.
type lenient[T any] struct{ value T }

func (l *lenient[T]) UnmarshalJSON(raw []byte) error {
	var v T
	if json.Unmarshal(raw, &v) == nil {
		l.value = v
	}
	return nil
}

// orText decodes a JSON value of type T, or a string that contains one as JSON. Parquet files store
// values whose keys differ from row to row as text.
type orText[T any] struct{ value T }

func (o *orText[T]) UnmarshalJSON(raw []byte) error {
	return json.Unmarshal(unquoted(raw), &o.value)
}

// unquoted returns the JSON in a JSON string, or raw if it is not a string that contains JSON.
func unquoted(raw []byte) []byte {
	var text string
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &text) != nil || !json.Valid([]byte(text)) {
		return raw
	}
	return []byte(text)
}

// decode reads exactly one JSON value. Its errors contain the line number.
func decode(raw []byte, to any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if err := dec.Decode(to); err != nil {
		return withLine(raw, err, dec.InputOffset())
	}
	if dec.More() {
		return fmt.Errorf("line %d: more than one JSON value: if each line is a trajectory, name the file .jsonl", lineOf(raw, dec.InputOffset()))
	}
	return nil
}

// withLine returns a decoding error with the line number of its cause.
func withLine(raw []byte, err error, at int64) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		at = int64(len(raw))
	}
	switch e := err.(type) {
	case *json.UnmarshalTypeError:
		article := "a"
		if strings.HasPrefix(e.Value, "array") || strings.HasPrefix(e.Value, "object") {
			article = "an"
		}
		return fmt.Errorf("line %d: %s is %s %s, which is not allowed there", lineOf(raw, e.Offset), cmp.Or(e.Field, "the file"), article, e.Value)
	case *json.SyntaxError:
		at = e.Offset
	}
	return fmt.Errorf("line %d: not valid JSON: %w", lineOf(raw, at), err)
}

func lineOf(raw []byte, at int64) int {
	return 1 + bytes.Count(raw[:min(max(at, 0), int64(len(raw)))], []byte("\n"))
}

// stem returns the base name of a file without the extensions of trajectories, or "" for a row
// without a name.
func stem(name string) string {
	if name == "" {
		return ""
	}
	name = path.Base(name)
	for _, suffix := range []string{".json", ".traj"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return name
}
