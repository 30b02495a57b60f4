package handover

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// What a step showed of files, read off its text: view and the listing that ends
// an answer of pdb have their range in Observation.Targets, a listing that was
// asked for has its file there, and grep writes each file's name above its lines.
// Whatever else stands in a text, a program's output among it, is no line of a
// file.

// numberedLine are the forms of a numbered line: view, grep, pdb.
var (
	viewLine = regexp.MustCompile(`^[ B] *(\d+)  (.*)$`)
	grepLine = regexp.MustCompile(`^ *(\d+)[:-] (.*)$`)
	pdbLine  = regexp.MustCompile(`^ *(\d+) *B? *(?:->|>>)? *\t(.*)$`)
)

// shown are the lines a step showed, by file and number; numbered is false for
// tools that show none.
func shown(s schemas.Step) (files map[string]map[int]string, numbered bool) {
	if s.ToolCall == nil || s.Observation == nil {
		return nil, false
	}
	o := s.Observation
	lines := strings.Split(strings.TrimSuffix(o.Text, "\n"), "\n")
	switch s.ToolCall.Name {
	case "view":
		return ranged(o, func(first, last int) map[int]string {
			return inOrder(lines[1:], first, last, viewLine, !withNumbers(s.ToolCall))
		}), true
	case "pdb":
		return ranged(o, func(first, last int) map[int]string {
			if onlyLists(s.ToolCall) {
				return numberedLines(lines, pdbLine)
			}
			from := len(lines) - (last - first + 1)
			if from < 0 {
				return nil
			}
			return inOrder(lines[from:], first, last, pdbLine, false)
		}), true
	case "grep":
		return grouped(lines), true
	}
	return nil, false
}

// ranged reads the one target of an observation, path:first[-last].
func ranged(o *schemas.Observation, read func(first, last int) map[int]string) map[string]map[int]string {
	if len(o.Targets) != 1 {
		return nil
	}
	at := strings.LastIndexByte(o.Targets[0], ':')
	if at < 0 {
		return nil
	}
	from, to, isRange := strings.Cut(o.Targets[0][at+1:], "-")
	if !isRange {
		to = from
	}
	first, err1 := strconv.Atoi(from)
	last, err2 := strconv.Atoi(to)
	if err1 != nil || err2 != nil || first < 1 || last < first || last-first > len(o.Text) {
		return nil
	}
	lines := read(first, last)
	if len(lines) == 0 {
		return nil
	}
	return map[string]map[int]string{o.Targets[0][:at]: lines}
}

// inOrder reads lines first to last, one after the other, up to one that is not
// in its place.
func inOrder(lines []string, first, last int, form *regexp.Regexp, bare bool) map[int]string {
	out := map[int]string{}
	for n := first; n <= last && n-first < len(lines); n++ {
		text := lines[n-first]
		if !bare {
			m := form.FindStringSubmatch(text)
			if m == nil || m[1] != strconv.Itoa(n) {
				break
			}
			text = m[2]
		}
		out[n] = text
	}
	return out
}

// numberedLines reads the lines of a form wherever they stand.
func numberedLines(lines []string, form *regexp.Regexp) map[int]string {
	out := map[int]string{}
	for _, line := range lines {
		if m := form.FindStringSubmatch(line); m != nil {
			if n, err := strconv.Atoi(m[1]); err == nil {
				out[n] = m[2]
			}
		}
	}
	return out
}

// onlyLists tells whether a call of pdb did nothing but list source, after moving
// in the stack at most: nothing ran that could have printed something like it.
func onlyLists(call *schemas.ToolCall) bool {
	var args struct {
		Command string `json:"command"`
	}
	if json.Unmarshal(call.Arguments, &args) != nil {
		return false
	}
	commands := strings.FieldsFunc(args.Command, func(r rune) bool { return r == ';' || r == '\n' })
	for i, c := range commands {
		word, _, _ := strings.Cut(strings.TrimSpace(c), " ")
		switch word {
		case "u", "up", "d", "down":
		case "l", "list", "ll", "longlist":
			return i == len(commands)-1
		default:
			return false
		}
	}
	return false
}

// grouped reads the answer of grep: after an empty line the name of a file, then
// its lines.
func grouped(lines []string) map[string]map[int]string {
	out := map[string]map[int]string{}
	file := ""
	for i, line := range lines {
		m := grepLine.FindStringSubmatch(line)
		switch {
		case m == nil && i > 0 && lines[i-1] == "" && line != "":
			file = line
			if name, err := strconv.Unquote(line); err == nil {
				file = name
			}
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

// withNumbers tells whether a call of view asked for line numbers, as it does
// when it says nothing.
func withNumbers(call *schemas.ToolCall) bool {
	var args struct {
		LineNumbers any `json:"line_numbers"`
	}
	if json.Unmarshal(call.Arguments, &args) != nil {
		return true
	}
	switch v := args.LineNumbers.(type) {
	case bool:
		return v
	case string: // tools read "False" as they were meant
		return !strings.EqualFold(strings.TrimSpace(v), "false")
	}
	return true
}
