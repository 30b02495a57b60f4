package metrics

import (
	"encoding/json"
	"path"
	"regexp"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// fact is one fact that an observation shows about a file, a place or a name. about is empty for a
// line of output, whose subject is unknown.
type fact struct{ about, text string }

// fileLine returns the fact that a file contains a line, or nil if the line is blank.
func fileLine(file, text string) []fact {
	if text = strings.TrimSpace(text); text == "" {
		return nil
	}
	return []fact{{"line of " + path.Clean(file), text}}
}

// lineFacts returns the fact of a line of output, or nil if the line is blank.
func lineFacts(line string) []fact {
	if text, ok := numbered(line); ok && line[0] == ' ' { // cat -n
		line = text
	}
	for _, mark := range []string{">  ", "E  "} { // of pytest
		line = strings.TrimPrefix(line, mark)
	}
	if line = strings.TrimSpace(line); line == "" {
		return nil
	}
	return []fact{{"", stableText(line)}}
}

// stableText replaces the parts of a line that may differ between runs.
func stableText(line string) string {
	if strings.ContainsAny(line, "0123456789") {
		return withoutAddresses(duration.ReplaceAllString(line, "#"))
	}
	return line
}

// withoutAddresses replaces memory addresses of objects.
func withoutAddresses(text string) string {
	if strings.Contains(text, "0x") {
		text = pointer.ReplaceAllString(text, "0x#")
	}
	return text
}

var pointer = regexp.MustCompile(`\b0x[0-9a-fA-F]{4,}\b`)

// numbered removes a line number from a line, in the formats of view
// ("B  12  x"), grep (" 12: x", " 12- x"), the debugger (" 12 B->\tx") and cat -n.
func numbered(line string) (text string, ok bool) {
	rest := strings.TrimLeft(line, " B")
	indented := len(rest) < len(line)
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	if digits == 0 {
		return line, false
	}
	rest = rest[digits:]
	if mark, text, ok := strings.Cut(rest, "\t"); ok && strings.Trim(mark, " B->") == "" {
		return text, true
	}
	for _, gap := range []string{"  ", ": ", "- "} {
		if text, ok = strings.CutPrefix(rest, gap); ok && indented {
			return text, true
		}
	}
	return line, false
}

// commandOf returns the command of a call of the debugger or a shell.
func commandOf(r *schemas.StepRow) string {
	return strings.TrimSpace(Command(&schemas.ToolCall{Arguments: json.RawMessage(schemas.Value(r.ArgumentsJSON))}))
}

var duration = regexp.MustCompile(`\b(?:in )?\d+(?:\.\d+)?(?:ms|s| seconds)\b`)
