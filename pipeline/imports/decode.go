package imports

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"reflect"
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
		return fmt.Errorf("line %d: %s is %s: it must be %s", lineOf(raw, e.Offset), cmp.Or(placeAt(raw, e.Offset, e.Field), "the file"), withArticle(e.Value), wanted(e.Type))
	case *json.SyntaxError:
		at = e.Offset
	}
	return fmt.Errorf("line %d: not valid JSON: %w", lineOf(raw, at), err)
}

// placeAt returns the name of the value at an offset with the indexes of lists, such as log[3].obs. field is the name
// without indexes, which placeAt returns if the offset is another one.
func placeAt(raw []byte, offset int64, field string) string {
	type level struct {
		key     string
		atValue bool // the value of key follows
		list    bool
		index   int
	}
	var levels []level
	for dec := json.NewDecoder(bytes.NewReader(raw)); dec.InputOffset() < offset; {
		token, err := dec.Token()
		if err != nil {
			return field
		}
		if token == json.Delim('}') || token == json.Delim(']') {
			levels = levels[:len(levels)-1]
			continue
		}
		if n := len(levels); n > 0 {
			top := &levels[n-1]
			if !top.list && !top.atValue {
				top.key, _ = token.(string) // keys are strings
				top.atValue = true
				continue
			}
			top.index, top.atValue = top.index+1, false
		}
		if delim, ok := token.(json.Delim); ok && dec.InputOffset() < offset {
			levels = append(levels, level{list: delim == '[', index: -1})
		}
	}
	place, plain := "", ""
	for _, l := range levels {
		if l.list {
			place += fmt.Sprintf("[%d]", l.index)
		} else {
			place, plain = place+"."+l.key, plain+"."+l.key
		}
	}
	if strings.TrimPrefix(plain, ".") != field {
		return field
	}
	return strings.TrimPrefix(place, ".")
}

// withArticle returns a JSON type with its article, such as "an object".
func withArticle(value string) string {
	switch {
	case value == "array":
		return "a list"
	case value == "bool":
		return "true or false"
	case strings.HasPrefix(value, "object"):
		return "an object"
	}
	return "a " + value
}

// wanted says which JSON values a type can hold.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Bool:
		return "true or false"
	}
	return "a number"
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
