// Package shown finds out which lines of files the steps of an episode showed to a model. The
// handover tool checks its excerpts with it, and metrics measure with it what an agent looked at.
package shown

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// This file reads the answers of tracesmith's tools. The source of a line's place depends on the tool:
//   - view, and the listing that pdb appends to an answer: Targets has the file and the range.
//   - a listing that the model requested from pdb: Targets has the file, and the text has the line
//     numbers.
//   - grep: the text has the name of each file above its lines.
//
// All other text, such as a program's output, does not count.

// HiddenRune replaces each character of an answer that the model did not see. No tool output
// contains it. Lines with hidden characters are not shown.
const HiddenRune = '\x00'

// Answer is a call of a tool with the text that answered it.
type Answer struct {
	Tool      string
	Arguments json.RawMessage
	Text      string
	Targets   []string // see schemas.Observation
}

// Line is a line of a file that an answer showed.
type Line struct {
	File   string
	Number int // from 1
	Text   string
}

// AnswerOf returns the answer of a step. ok is false if the step has no call or no answer.
func AnswerOf(s schemas.Step) (a Answer, ok bool) {
	if s.ToolCall == nil || s.Observation == nil {
		return Answer{}, false
	}
	return Answer{s.ToolCall.Name, s.ToolCall.Arguments, s.Observation.Text, s.Observation.Targets}, true
}

// Lines returns the lines that an answer of view, grep or pdb showed. numbered is false for tools
// that show no numbered lines. aliased means that pdb commands may have been redefined.
func Lines(a Answer, aliased bool) (shown []Line, numbered bool) {
	lines := strings.Split(strings.TrimSuffix(a.Text, "\n"), "\n")
	file, first, last, ok := a.targetRange()
	switch a.Tool {
	case "grep":
		return grepLines(lines, a.Targets), true
	case "view":
		if ok {
			format := ViewLine
			if !hasLineNumbers(a.Arguments) {
				format = nil
			}
			shown, _ = consecutiveLines(file, lines[1:], first, last, format)
		}
	case "pdb":
		switch {
		case !ok:
		case onlyLists(a.Arguments) && !aliased:
			shown = pdbListings(file, lines)
		default:
			_, shown = a.splitListing(lines)
		}
	default:
		return nil, false
	}
	return shown, true
}

// SplitListing splits an answer of pdb into its output and the source listing that pdb appended. If
// there is no listing, listing is "".
func SplitListing(a Answer) (output, listing string) {
	lines := strings.Split(a.Text, "\n")
	if from, shown := a.splitListing(lines); shown != nil {
		return strings.Join(lines[:from], "\n"), strings.Join(lines[from:], "\n")
	}
	return a.Text, ""
}

// splitListing returns the index of the first line of the listing at the end, and its lines, or nil
// if there is no whole listing.
func (a Answer) splitListing(lines []string) (from int, shown []Line) {
	file, first, last, ok := a.targetRange()
	if from = len(lines) - (last - first + 1); !ok || from < 0 {
		return 0, nil
	}
	shown, whole := consecutiveLines(file, lines[from:], first, last, PDBLine)
	if !whole {
		return 0, nil
	}
	return from, shown
}

// targetRange parses the target of an answer, path:first[-last]. ok is false if the answer does not
// have exactly one target or the target has no line numbers.
func (a Answer) targetRange() (file string, first, last int, ok bool) {
	if len(a.Targets) != 1 {
		return "", 0, 0, false
	}
	at := strings.LastIndexByte(a.Targets[0], ':')
	if at < 0 {
		return "", 0, 0, false
	}
	from, to, isRange := strings.Cut(a.Targets[0][at+1:], "-")
	if !isRange {
		to = from
	}
	first, err1 := strconv.Atoi(from)
	last, err2 := strconv.Atoi(to)
	if err1 != nil || err2 != nil || first < 1 || last < first || last-first > len(a.Text) {
		return "", 0, 0, false
	}
	return a.Targets[0][:at], first, last, true
}

// consecutiveLines reads the lines numbered first to last from the start of lines. Each must match
// format and have the expected number; if format is nil, lines have no numbers. It stops at the first
// mismatch, and whole is then false. It skips lines that are partly hidden.
func consecutiveLines(file string, lines []string, first, last int, format func(string) (int, string, bool)) (read []Line, whole bool) {
	read = make([]Line, 0, min(last-first+1, len(lines)))
	for n := first; n <= last; n++ {
		if n-first >= len(lines) {
			return read, false
		}
		text := lines[n-first]
		if strings.IndexByte(text, HiddenRune) >= 0 {
			continue
		}
		if format != nil {
			got, rest, ok := format(text)
			if !ok || got != n {
				return read, false
			}
			text = rest
		}
		read = append(read, Line{file, n, text})
	}
	return read, true
}

// pdbListings reads the numbered lines that directly precede the line "Current frame: " in an
// answer of pdb.
func pdbListings(file string, lines []string) []Line {
	var out []Line
	end := len(lines) - 1
	for end > 0 && !strings.HasPrefix(lines[end], "Current frame: ") {
		end--
	}
	for i := end - 1; i >= 0; i-- {
		line := lines[i]
		if strings.IndexByte(line, HiddenRune) >= 0 || line == "[EOF]" {
			continue
		}
		n, text, ok := PDBLine(line)
		if !ok {
			return out
		}
		out = append(out, Line{file, n, text})
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
func onlyLists(arguments json.RawMessage) bool {
	hasList := false
	for _, c := range strings.FieldsFunc(Command(arguments), func(r rune) bool { return r == ';' || r == '\n' }) {
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
func grepLines(lines, targets []string) []Line {
	var out []Line
	file := ""
	for i, line := range lines {
		if i > 0 && lines[i-1] == "" {
			file = line
			if name, err := strconv.Unquote(line); err == nil {
				file = name
			}
			if !slices.Contains(targets, file) {
				file = ""
			}
			continue
		}
		n, text, ok := GrepLine(line)
		switch {
		case strings.IndexByte(line, HiddenRune) >= 0, !ok && line != "    --":
			file = ""
		case ok && file != "":
			out = append(out, Line{file, n, text})
		}
	}
	return out
}

// hasLineNumbers reports whether a call of view asked for line numbers, which is the default.
func hasLineNumbers(arguments json.RawMessage) bool {
	var args struct {
		LineNumbers any `json:"line_numbers"`
	}
	if json.Unmarshal(arguments, &args) != nil {
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
