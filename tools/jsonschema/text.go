package jsonschema

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var numberPattern = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?$`)

// Cast converts text, the value of the argument as a model or a person wrote it, to the first of
// the argument's types that can represent it. It returns the text unchanged if no type fits or a is
// nil.
func (a *Argument) Cast(text string) any {
	if a == nil {
		return text
	}
	trimmed := strings.TrimSpace(text)
	for _, t := range a.Types {
		switch t {
		case "string":
			return text
		case "integer", "number":
			if numberPattern.MatchString(trimmed) {
				return json.Number(trimmed)
			}
		case "boolean":
			switch strings.ToLower(trimmed) {
			case "true", "1":
				return true
			case "false", "0":
				return false
			}
		case "array", "object":
			prefix := map[string]string{"array": "[", "object": "{"}[t]
			if strings.HasPrefix(trimmed, prefix) && json.Valid([]byte(trimmed)) {
				return json.RawMessage(trimmed)
			}
		}
	}
	return text
}

// IsText reports whether string is one of the argument's types.
func (a *Argument) IsText() bool { return slices.Contains(a.Types, "string") }

// Choices lists the values of an argument that is an enumeration or a boolean.
func (a *Argument) Choices() (out []string) {
	for _, v := range a.Enum {
		if v != nil {
			out = append(out, fmt.Sprint(v))
		}
	}
	if len(out) == 0 && slices.Equal(a.Types, []string{"boolean"}) {
		return []string{"true", "false"}
	}
	return out
}
