package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// maxOpLine is the maximum length in bytes of an operation on stdin. An edit that replaces a
// whole file must fit.
const maxOpLine = 16 << 20

// op is one operation of tracesmith env, which reads one per line from stdin.
type op struct {
	Op        string          `json:"op"`        // reset, step, patch, grade or close
	Soft      bool            `json:"soft"`      // reset: keep the sandbox and its files
	Tool      string          `json:"tool"`      // step
	Arguments json.RawMessage `json:"arguments"` // step: an object, or its JSON text as a string, as model servers send it
	ID        json.RawMessage `json:"id"`        // echoed in the answer
}

// parseOp reads one operation. Its errors use the terms of JSON, because the caller may
// not know Go.
func parseOp(text []byte) (op, error) {
	var o op
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")) // some writers begin with a byte order mark
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	err := dec.Decode(&o)
	if err == nil {
		if _, err := dec.Token(); !errors.Is(err, io.EOF) {
			err = errors.New("more follows the object")
			return o, notAnOp(err)
		}
		return o, nil
	}
	return o, notAnOp(jsonError(err, "there are op, soft, tool, arguments and id"))
}

// jsonError restates an error of decoding an object without terms of Go. accepted says
// which fields the object may have.
func jsonError(err error, accepted string) error {
	if typeErr, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		switch typeErr.Field {
		case "":
			return fmt.Errorf("it is %s", withArticle(typeErr.Value))
		case "soft":
			return fmt.Errorf("%q must be true or false, not %s", typeErr.Field, withArticle(typeErr.Value))
		}
		return fmt.Errorf("%q must be a string, not %s", typeErr.Field, withArticle(typeErr.Value))
	}
	if name, unknown := strings.CutPrefix(err.Error(), "json: unknown field "); unknown {
		return fmt.Errorf("unknown field %s, %s", name, accepted)
	}
	return err
}

func notAnOp(err error) error {
	return fmt.Errorf(`not an operation (%w): write one JSON object per line, for example {"op":"reset"}`, err)
}

// withArticle returns the name of a JSON type with its indefinite article.
func withArticle(kind string) string {
	if kind == "array" || kind == "object" {
		return "an " + kind
	}
	return "a " + kind
}

// call returns the tool call of a step. n is part of the call's id if the operation has no id.
func (o op) call(n int) schemas.ToolCall {
	c := schemas.ToolCall{ID: fmt.Sprintf("call_%d", n), Name: o.Tool, Arguments: o.Arguments}
	if len(o.ID) > 0 && string(o.ID) != "null" {
		c.ID = strings.Trim(string(o.ID), `"`)
	}
	var text string
	if json.Unmarshal(c.Arguments, &text) == nil && len(c.Arguments) > 0 && c.Arguments[0] == '"' {
		c.Raw, c.Arguments = text, nil
		var object map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &object); err != nil && strings.TrimSpace(text) != "" {
			if c.Invalid = "arguments must be a JSON object"; !json.Valid([]byte(text)) {
				c.Invalid = "arguments are not valid JSON: " + err.Error()
			}
		} else if err == nil {
			c.Arguments = []byte(text)
		}
	}
	if len(c.Arguments) == 0 {
		c.Arguments = json.RawMessage("{}")
	}
	return c
}

// line is one line of input, or the error of reading it.
type line struct {
	text []byte
	err  error
}

func readLines(ctx context.Context, in io.Reader, out chan<- line) {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		text, err := readLine(r)
		select {
		case out <- line{text, err}:
		case <-ctx.Done():
			return
		}
		if errors.Is(err, io.EOF) {
			return
		}
	}
}

// readLine reads one line of at most maxOpLine bytes; it skips a longer one and returns
// an error.
func readLine(r *bufio.Reader) ([]byte, error) {
	var text []byte
	tooLong := false
	for {
		chunk, err := r.ReadSlice('\n')
		if tooLong = tooLong || len(text)+len(chunk) > maxOpLine; !tooLong {
			text = append(text, chunk...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && len(text) == 0:
			return nil, io.EOF
		case tooLong:
			return nil, fmt.Errorf("an operation must be shorter than %d bytes", maxOpLine)
		}
		return text, nil
	}
}
