package metrics

import (
	"path"
	"regexp"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// News fills is_new_information: an observation brings new information if it shows
// a fact that no earlier observation of the episode has shown. Facts are lines of
// files, matches, entries of directories, stack frames, values of names, and lines
// of output. How an answer presents them (line numbers, the listing around the
// current line, headings, addresses of objects, durations) does not count.
func News(rows []schemas.StepRow) {
	known := memory{facts: map[fact]bool{}, lines: map[string]bool{}, unplaced: map[string]bool{}}
	for i := range rows {
		r := &rows[i]
		if r.ObservationSHA256 == nil {
			continue
		}
		isNew := false
		shown, own := facts(r)
		for _, f := range own {
			known.add(f)
		}
		for _, f := range shown {
			isNew = known.add(f) || isNew
		}
		r.IsNewInformation = &isNew
	}
}

// fact is one thing that an observation shows: what, about a file, a place, a name
// or, if about is empty, nothing that the observation tells.
type fact struct{ about, what string }

// ofFile is the about of a line of a file.
func ofFile(file string) string { return "line of " + path.Clean(file) }

// memory is what an episode has shown so far.
type memory struct {
	facts    map[fact]bool
	lines    map[string]bool // texts of all lines, of files and of output
	unplaced map[string]bool // those of output, which does not tell whose line it is
}

// add remembers a fact and tells whether it is new. A line of a file that a command
// or a report of tests has printed is known, and so is output that repeats a line
// of a file.
func (m memory) add(f fact) bool {
	if f.about == "" {
		seen := m.lines[f.what]
		m.lines[f.what], m.unplaced[f.what] = true, true
		return !seen
	}
	seen := m.facts[f]
	m.facts[f] = true
	if strings.HasPrefix(f.about, "line of ") {
		text := printedText(f.what)
		seen = seen || m.unplaced[text]
		m.lines[text] = true
	}
	return !seen
}

// facts reads an observation. own are lines that the agent itself wrote: it is shown
// them, and they are no news.
func facts(r *schemas.StepRow) (shown, own []fact) {
	text := strings.TrimSpace(value(r.Observation))
	if text == "" { // silence is the answer to this one question
		return []fact{{"silence after " + value(r.ToolName), value(r.ArgumentsJSON)}}, nil
	}
	lines := strings.Split(strings.TrimRight(*r.Observation, "\n"), "\n")
	switch Category(value(r.ToolName)) {
	case "view":
		return viewed(lines), nil
	case "grep":
		return matched(lines), nil
	case "listdir":
		return entries(lines), nil
	case "pdb":
		return debugged(r, lines), nil
	case "edit":
		return edited(lines)
	case "bash":
		numbers := numbersLines.MatchString(commandOf(r))
		for _, line := range lines {
			if m := matchOfOne.FindStringSubmatch(line); numbers && m != nil {
				line = m[1]
			}
			if m := located.FindStringSubmatch(line); m != nil {
				shown = append(shown, lineOf(m[1], m[2])...)
				continue
			}
			shown = append(shown, printedLine(line)...)
		}
		return shown, nil
	}
	return output(lines), nil
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// lineOf is a line of a file; blank ones say nothing.
func lineOf(file, text string) []fact {
	if text = strings.TrimSpace(text); text == "" {
		return nil
	}
	return []fact{{ofFile(file), text}}
}

// viewed reads a heading ("FILE, lines 3-9 of 20") and the lines of that file.
func viewed(lines []string) []fact {
	file, _, found := strings.Cut(lines[0], ", lines ")
	if !found {
		return output(lines)
	}
	var out []fact
	for _, line := range lines[1:] {
		if strings.HasPrefix(line, "[") && strings.Contains(line, "view them with start=") {
			continue
		}
		text, _ := numbered(line)
		out = append(out, lineOf(file, text)...)
	}
	return out
}

// matched reads the answer of grep: names of files, each with its lines below it.
func matched(lines []string) []fact {
	if len(lines) < 3 || lines[1] != "" { // nothing was found, or the search was refused
		return output(lines)
	}
	var out []fact
	file := ""
	for i, line := range lines[2:] {
		text, isLine := numbered(line)
		switch {
		case isLine:
			out = append(out, lineOf(file, text)...)
		case lines[i+1] == "": // the line before: i counts from the third
			file = line
		case strings.TrimSpace(line) != "--":
			out = append(out, printedLine(line)...)
		}
	}
	return out
}

// entries reads an indented tree below its root.
func entries(lines []string) []fact {
	if !strings.HasSuffix(lines[0], "/") {
		return output(lines)
	}
	at := []string{strings.TrimSuffix(lines[0], "/")}
	var out []fact
	for _, line := range lines[1:] {
		name := strings.TrimLeft(line, " ")
		depth := (len(line) - len(name)) / 2
		if depth < 1 || depth > len(at) || name == "" {
			out = append(out, printedLine(line)...)
			continue
		}
		at = append(at[:depth], strings.TrimSuffix(name, "/"))
		out = append(out, fact{"entry", strings.Join(at, "/")})
	}
	return out
}

// edited reads a heading, which repeats the call, and the difference that an edit made.
func edited(lines []string) (shown, own []fact) {
	if len(lines) < 2 || !strings.HasPrefix(lines[1], "--- ") {
		return output(lines), nil
	}
	file, inside := "", false
	for _, line := range lines[1:] {
		switch {
		case strings.HasPrefix(line, "--- "):
			inside = false
		case strings.HasPrefix(line, "+++ "):
			file = strings.TrimPrefix(strings.TrimPrefix(line, "+++ "), "b/")
		case strings.HasPrefix(line, "@@ "):
			inside = true
		case inside && strings.HasPrefix(line, "+"):
			own = append(own, lineOf(file, line[1:])...)
		case inside && (strings.HasPrefix(line, "-") || strings.HasPrefix(line, " ")):
			shown = append(shown, lineOf(file, line[1:])...)
		default:
			shown = append(shown, printedLine(line)...)
		}
	}
	return shown, own
}

func output(lines []string) (out []fact) {
	for _, line := range lines {
		out = append(out, printedLine(line)...)
	}
	return out
}

var (
	pointer  = regexp.MustCompile(`\b0x[0-9a-fA-F]{4,}\b`)
	duration = regexp.MustCompile(`\b(?:in )?\d+(?:\.\d+)?(?:ms|s| seconds)\b`)
	located  = regexp.MustCompile(`^(\.{0,2}[\w./+-]*[\w+-]):\d+:(.*)$`) // what grep -n prints

	// A search of one file or of standard input prints numbers alone, and -- between matches.
	numbersLines = regexp.MustCompile(`\b(?:e?grep|rg)\s(?:[^|;&]*\s)?(?:-[A-Za-z]*n|--line-number\b)`)
	matchOfOne   = regexp.MustCompile(`^(?:\d+[:-]|--$)(.*)$`)
)

// printedLine is a line that a program, a command or a report printed.
func printedLine(line string) []fact {
	if text, ok := numbered(line); ok && line[0] == ' ' { // cat -n
		line = text
	}
	for _, mark := range []string{">  ", "E  "} { // pytest's
		line = strings.TrimPrefix(line, mark)
	}
	if line = strings.TrimSpace(line); line == "" {
		return nil
	}
	return []fact{{"", printedText(line)}}
}

// printedText is the text of a line without what each printing may change.
func printedText(line string) string {
	if strings.ContainsAny(line, "0123456789") {
		return steady(duration.ReplaceAllString(line, "#"))
	}
	return line
}

// steady takes out what is different each time.
func steady(text string) string {
	if strings.Contains(text, "0x") {
		text = pointer.ReplaceAllString(text, "0x#")
	}
	return text
}

// numbered takes a line number off the text of a line, in the forms of view
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
