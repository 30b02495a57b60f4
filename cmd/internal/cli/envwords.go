package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// parseWords parses a line that a person types with --text. The line names an operation or
// a tool. A tool name may be followed by the value of one argument (see firstArgument) or
// by a JSON object with all arguments.
//
//	reset
//	pdb b app.py:10
//	view {"path": "app.py", "start": 3}
//
// A line that begins with { is parsed as a JSON operation.
func parseWords(line []byte, tools []schemas.ToolSchema) (op, error) {
	line = bytes.TrimSpace(line)
	if bytes.HasPrefix(line, []byte("{")) {
		return parseOp(line)
	}
	word, rest, _ := strings.Cut(string(line), " ")
	rest = strings.TrimSpace(rest)
	switch {
	case word == "reset" && rest == "soft":
		return op{Op: "reset", Soft: true}, nil
	case slices.Contains([]string{"reset", "patch", "grade", "close"}, word):
		if rest != "" {
			return op{}, fmt.Errorf("%s takes no argument, got %q", word, rest)
		}
		return op{Op: word}, nil
	}
	names := []string{}
	for _, t := range tools {
		if t.Name == word {
			arguments, err := argumentsOf(t, rest)
			return op{Op: "step", Tool: word, Arguments: arguments}, err
		}
		names = append(names, t.Name)
	}
	return op{}, fmt.Errorf("%q is neither an operation (reset, reset soft, patch, grade, close) nor a tool (%s): type one, a tool with its argument, such as: pdb b app.py:10",
		word, strings.Join(names, ", "))
}

// argumentsOf returns the arguments of a call as JSON. words is the text after the tool name.
func argumentsOf(t schemas.ToolSchema, words string) (json.RawMessage, error) {
	switch name := firstArgument(t); {
	case words == "":
		return nil, nil
	case strings.HasPrefix(words, "{"):
		if !json.Valid([]byte(words)) {
			return nil, fmt.Errorf("the text after %s is not a JSON object: close it, or begin with another character than {", t.Name)
		}
		return json.RawMessage(words), nil
	case name == "":
		return nil, fmt.Errorf("%s takes no argument, got %q", t.Name, words)
	default:
		return json.Marshal(map[string]string{name: words})
	}
}

// firstArgument returns the name of the argument that gets the text after the tool name:
// the first required one, or the first one if none is required. It returns "" if the tool
// takes no arguments.
func firstArgument(t schemas.ToolSchema) string {
	var schema struct {
		Required   []string        `json:"required"`
		Properties json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(t.Parameters, &schema); err != nil {
		return ""
	}
	if len(schema.Required) > 0 {
		return schema.Required[0]
	}
	dec := json.NewDecoder(bytes.NewReader(schema.Properties))
	_, _ = dec.Token() // skip the opening brace; if it is missing, reading the first key fails
	first, _ := dec.Token()
	name, _ := first.(string)
	return name
}
