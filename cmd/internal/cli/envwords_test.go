package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/schemas"
)

// A line of words is one operation, or an error that says what to type instead.
func TestParseWords(t *testing.T) {
	tools := []schemas.ToolSchema{
		{Name: "pdb", Parameters: []byte(`{"properties":{"entrypoint":{},"command":{}},"required":["command"]}`)},
		{Name: "listdir", Parameters: []byte(`{"properties":{"path":{},"depth":{}}}`)},
		{Name: "eval", Parameters: []byte(`{"properties":{}}`)},
	}
	for line, want := range map[string]op{
		"reset":               {Op: "reset"},
		" reset  soft\r\n":    {Op: "reset", Soft: true},
		"patch":               {Op: "patch"},
		`{"op":"grade"}`:      {Op: "grade"},
		`pdb p "a  b"`:        {Op: "step", Tool: "pdb", Arguments: []byte(`{"command":"p \"a  b\""}`)},
		`pdb {"command":"w"}`: {Op: "step", Tool: "pdb", Arguments: []byte(`{"command":"w"}`)},
		"listdir src":         {Op: "step", Tool: "listdir", Arguments: []byte(`{"path":"src"}`)},
		"listdir":             {Op: "step", Tool: "listdir"},
		"eval":                {Op: "step", Tool: "eval"},
	} {
		got, err := parseWords([]byte(line), tools)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v\n%s", line, err, diff)
		}
	}
	for line, want := range map[string]string{
		"help":       `"help" is neither an operation (reset, reset soft, patch, grade, close) nor a tool (pdb, listdir, eval)`,
		"eval x":     `eval takes no argument, got "x"`,
		"patch x":    `patch takes no argument, got "x"`,
		"pdb {x":     "the text after pdb is not a JSON object",
		`{"op":"re`:  "not an operation",
		"\xff\x00 x": "is neither",
	} {
		if _, err := parseWords([]byte(line), tools); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", line, err)
		}
	}
}
