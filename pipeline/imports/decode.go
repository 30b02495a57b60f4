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

// lenient decodes a value, and ignores values of another type.
type lenient[T any] struct{ is T }

func (l *lenient[T]) UnmarshalJSON(raw []byte) error {
	var v T
	if json.Unmarshal(raw, &v) == nil {
		l.is = v
	}
	return nil
}

// decode reads exactly one JSON value. Errors contain the line.
func decode(raw []byte, to any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if err := dec.Decode(to); err != nil {
		return place(raw, err, dec.InputOffset())
	}
	if dec.More() {
		return fmt.Errorf("line %d: more than one JSON value", lineOf(raw, dec.InputOffset()))
	}
	return nil
}

func place(raw []byte, err error, at int64) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		at = int64(len(raw))
	}
	switch e := err.(type) {
	case *json.UnmarshalTypeError:
		article := "a"
		if strings.HasPrefix(e.Value, "array") || strings.HasPrefix(e.Value, "object") {
			article = "an"
		}
		return fmt.Errorf("line %d: %s is %s %s, which it must not be", lineOf(raw, e.Offset), cmp.Or(e.Field, "the file"), article, e.Value)
	case *json.SyntaxError:
		at = e.Offset
	}
	return fmt.Errorf("line %d: not valid JSON: %w", lineOf(raw, at), err)
}

func lineOf(raw []byte, at int64) int {
	return 1 + bytes.Count(raw[:min(max(at, 0), int64(len(raw)))], []byte("\n"))
}

// stem is a file's name without what says that it is a trajectory.
func stem(name string) string {
	name = path.Base(name)
	for _, suffix := range []string{".json", ".traj"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return name
}
