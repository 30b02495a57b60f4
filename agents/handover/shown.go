package handover

import (
	"encoding/json"
	"regexp"
	"slices"
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

// shownLines are the lines a step showed, by file and number; numbered is false for
// tools that show none. aliased: commands of pdb may not mean what they say.
func shownLines(s schemas.Step, aliased bool) (files map[string]map[int]string, numbered bool) {
	if s.ToolCall == nil || s.Observation == nil {
		return nil, false
	}
	o := s.Observation
	lines := strings.Split(strings.TrimSuffix(o.Text, "\n"), "\n")
	file, first, last, ok := targetRange(o)
	var of map[int]string
	switch s.ToolCall.Name {
	case "grep":
		return grepLines(lines, o.Targets), true
	case "view":
		if ok {
			of, _ = consecutiveLines(lines[1:], first, last, viewLine, !hasLineNumbers(s.ToolCall))
		}
	case "pdb":
		from := len(lines) - (last - first + 1)
		switch {
		case !ok:
		case onlyLists(s.ToolCall) && !aliased:
			of = pdbListings(lines)
		case from >= 0:
			var whole bool
			if of, whole = consecutiveLines(lines[from:], first, last, pdbLine, false); !whole { // there is no listing
				of = nil
			}
		}
	default:
		return nil, false
	}
	if len(of) == 0 {
		return nil, true
	}
	return map[string]map[int]string{file: of}, true
}

// targetRange reads the one target of an observation, path:first[-last].
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

// consecutiveLines reads lines first to last, one after the other, up to one that is not
// in its place; whole tells that there was none. Lines of which a part is hidden
// are in their place, and not read.
func consecutiveLines(lines []string, first, last int, form *regexp.Regexp, bare bool) (read map[int]string, whole bool) {
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
			m := form.FindStringSubmatch(text)
			if m == nil || m[1] != strconv.Itoa(n) {
				return read, false
			}
			text = m[2]
		}
		read[n] = text
	}
	return read, true
}

// pdbListings reads the listings that end an answer of pdb, before it names the frame.
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

// lists and moves are commands that show source, and that choose the frame, with
// arguments that are numbers: an assignment to a name like theirs is neither.
var (
	listCommand = regexp.MustCompile(`^(?:l|list|ll|longlist)(?:[ \t][ \t\d,.]*)?$`)
	moveCommand = regexp.MustCompile(`^(?:u|up|d|down)(?:[ \t][ \t\d]*)?$`)
)

// onlyLists tells whether a call of pdb did nothing but list source, after moving
// in the stack at most: nothing ran that could have printed something like it.
// Aliases are looked for elsewhere.
func onlyLists(call *schemas.ToolCall) bool {
	list := false
	for _, c := range strings.FieldsFunc(commandArgument(call), func(r rune) bool { return r == ';' || r == '\n' }) {
		switch c = strings.TrimSpace(c); {
		case listCommand.MatchString(c):
			list = true
		case list || c != "" && !moveCommand.MatchString(c):
			return false
		}
	}
	return list
}

// grepLines reads the answer of grep: after an empty line the name of a file, one of
// its targets, then lines of that file up to something else.
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

// hasLineNumbers tells whether a call of view asked for line numbers, as it does
// when it says nothing.
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
	case string: // tools read "False" as they were meant
		return !strings.EqualFold(strings.TrimSpace(v), "false")
	}
	return true
}
