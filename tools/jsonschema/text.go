package jsonschema

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var numeral = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?$`)

// Cast converts a text that a model or a person wrote as an argument to the first of
// the argument's types that it can represent. It returns the text itself if it
// represents none of them or a is nil.
func (a *Argument) Cast(text string) any {
	if a == nil {
		return text
	}
	bare := strings.TrimSpace(text)
	for _, t := range a.Types {
		switch t {
		case "string":
			return text
		case "integer", "number":
			if numeral.MatchString(bare) {
				return json.Number(bare)
			}
		case "boolean":
			switch strings.ToLower(bare) {
			case "true", "1":
				return true
			case "false", "0":
				return false
			}
		case "array", "object":
			want := map[string]string{"array": "[", "object": "{"}[t]
			if strings.HasPrefix(bare, want) && json.Valid([]byte(bare)) {
				return json.RawMessage(bare)
			}
		}
	}
	return text
}

// IsText reports whether the argument may be a string.
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
