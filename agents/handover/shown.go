package handover

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// This file extracts the file lines that a step showed to the model. The source depends on the tool:
//   - view, and the listing that pdb appends to an answer: Observation.Targets has the file and the
//     range.
//   - a listing that the model requested from pdb: Observation.Targets has the file, and the text
//     has the line numbers.
//   - grep: the text has the name of each file above its lines.
//
// All other text, such as a program's output, does not count.

// Formats of a numbered line, by tool.
var (
	viewLine = regexp.MustCompile(`^[ B] *(\d+)  (.*)$`)
	grepLine = regexp.MustCompile(`^ *(\d+)[:-] (.*)$`)
	pdbLine  = regexp.MustCompile(`^ *(\d+) *B? *(?:->|>>)? *\t(.*)$`)
)

// shownLines returns the lines that a step showed, by file and number. numbered is false for
// tools that show no numbered lines. aliased means that pdb commands may have been redefined.
func shownLines(s schemas.Step, aliased bool) (files map[string]map[int]string, numbered bool) {
	if s.ToolCall == nil || s.Observation == nil {
		return nil, false
	}
	o := s.Observation
	lines := strings.Split(strings.TrimSuffix(o.Text, "\n"), "\n")
	file, first, last, ok := targetRange(o)
	var shown map[int]string
	switch s.ToolCall.Name {
	case "grep":
		return grepLines(lines, o.Targets), true
	case "view":
		if ok {
			shown, _ = consecutiveLines(lines[1:], first, last, viewLine, !hasLineNumbers(s.ToolCall))
		}
	case "pdb":
		from := len(lines) - (last - first + 1)
		switch {
		case !ok:
		case onlyLists(s.ToolCall) && !aliased:
			shown = pdbListings(lines)
		case from >= 0:
			var whole bool
			if shown, whole = consecutiveLines(lines[from:], first, last, pdbLine, false); !whole { // no listing at the end
				shown = nil
			}
		}
	default:
		return nil, false
	}
	if len(shown) == 0 {
		return nil, true
	}
	return map[string]map[int]string{file: shown}, true
}

// targetRange parses the target of an observation, path:first[-last]. ok is false if the
// observation does not have exactly one target or the target has no line numbers.
func targetRange(o *schemas.Observation) (file string, first, last int, ok bool) {
	if len(o.Targets) != 1 {
		return "", 0, 0, false
	}
	at := strings.LastIndexByte(o.Targets[0], ':')
	if at < 0 {
		return "", 0, 0, false
	}
	from, to, isRange := strings.Cut(o.Targets[0][at+1:], "-")
	if !isRange {
		to = from
	}
	first, err1 := strconv.Atoi(from)
	last, err2 := strconv.Atoi(to)
	if err1 != nil || err2 != nil || first < 1 || last < first || last-first > len(o.Text) {
		return "", 0, 0, false
	}
	return o.Targets[0][:at], first, last, true
}

// consecutiveLines reads the lines numbered first to last from the start of lines. Each must match
// format and have the expected number; if bare, lines have no numbers. It stops at the first
// mismatch, and whole is then false. It skips lines that are partly hidden.
func consecutiveLines(lines []string, first, last int, format *regexp.Regexp, bare bool) (read map[int]string, whole bool) {
	read = map[int]string{}
	for n := first; n <= last; n++ {
		if n-first >= len(lines) {
			return read, false
		}
		text := lines[n-first]
		if strings.ContainsRune(text, hiddenRune) {
			continue
		}
		if !bare {
			m := format.FindStringSubmatch(text)
			if m == nil || m[1] != strconv.Itoa(n) {
				return read, false
			}
			text = m[2]
		}
		read[n] = text
	}
	return read, true
}

// pdbListings reads the numbered lines that directly precede the line "Current frame: " in an
// answer of pdb.
func pdbListings(lines []string) map[int]string {
	out := map[int]string{}
	end := len(lines) - 1
	for end > 0 && !strings.HasPrefix(lines[end], "Current frame: ") {
		end--
	}
	for i := end - 1; i >= 0; i-- {
		line := lines[i]
		m := pdbLine.FindStringSubmatch(line)
		switch {
		case strings.ContainsRune(line, hiddenRune), line == "[EOF]":
			continue
		case m == nil:
			return out
		}
		if n, err := strconv.Atoi(m[1]); err == nil {
			out[n] = m[2]
		}
	}
	return out
}

// listCommand matches commands that show source, and moveCommand commands that select a frame.
// Their arguments must be numbers, because pdb runs "l = 1" as an assignment.
var (
	listCommand = regexp.MustCompile(`^(?:l|list|ll|longlist)(?:[ \t][ \t\d,.]*)?$`)
	moveCommand = regexp.MustCompile(`^(?:u|up|d|down)(?:[ \t][ \t\d]*)?$`)
)

// onlyLists reports whether a call of pdb only listed source, possibly after moving in the stack.
// If so, the program did not run and cannot have printed text that looks like a listing. The caller
// must check for aliases.
func onlyLists(call *schemas.ToolCall) bool {
	hasList := false
	for _, c := range strings.FieldsFunc(commandArgument(call), func(r rune) bool { return r == ';' || r == '\n' }) {
		switch c = strings.TrimSpace(c); {
		case listCommand.MatchString(c):
			hasList = true
		case hasList || c != "" && !moveCommand.MatchString(c):
			return false
		}
	}
	return hasList
}

// grepLines reads an answer of grep, in which an empty line and the name of a file precede the
// lines of that file. It ignores files that are not targets.
func grepLines(lines, targets []string) map[string]map[int]string {
	out := map[string]map[int]string{}
	file := ""
	for i, line := range lines {
		m := grepLine.FindStringSubmatch(line)
		switch {
		case i > 0 && lines[i-1] == "":
			file = line
			if name, err := strconv.Unquote(line); err == nil {
				file = name
			}
			if !slices.Contains(targets, file) {
				file = ""
			}
		case strings.ContainsRune(line, hiddenRune), m == nil && line != "    --":
			file = ""
		case m != nil && file != "":
			if out[file] == nil {
				out[file] = map[int]string{}
			}
			if n, err := strconv.Atoi(m[1]); err == nil {
				out[file][n] = m[2]
			}
		}
	}
	return out
}

// hasLineNumbers reports whether a call of view asked for line numbers, which is the default.
func hasLineNumbers(call *schemas.ToolCall) bool {
	var args struct {
		LineNumbers any `json:"line_numbers"`
	}
	if json.Unmarshal(call.Arguments, &args) != nil {
		return true
	}
	switch v := args.LineNumbers.(type) {
	case bool:
		return v
	case string: // tools accept "False" as false
		return !strings.EqualFold(strings.TrimSpace(v), "false")
	}
	return true
}
