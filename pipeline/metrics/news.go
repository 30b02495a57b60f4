package metrics

import (
	"regexp"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// MarkNewInformation fills is_new_information: an observation has new information if it shows a fact
// that no earlier observation of the episode has shown. Facts are lines of files,
// matches, directory entries, stack frames, values of names, and lines of output.
// Presentation (line numbers, the listing around the current line, headings, addresses
// of objects, durations) does not count.
func MarkNewInformation(rows []schemas.StepRow) {
	known := shownFacts{facts: map[fact]bool{}, lines: map[string]bool{}, outputLines: map[string]bool{}}
	for i := range rows {
		r := &rows[i]
		if r.ObservationSHA256 == nil {
			continue
		}
		isNew := false
		shown, written := factsOf(r)
		for _, f := range written {
			known.add(f)
		}
		for _, f := range shown {
			isNew = known.add(f) || isNew
		}
		r.IsNewInformation = &isNew
	}
}

// shownFacts is the set of facts that an episode has shown so far.
type shownFacts struct {
	facts       map[fact]bool
	lines       map[string]bool // all lines, of files and of output
	outputLines map[string]bool // lines of output, which may be lines of any file
}

// add remembers a fact and reports whether it is new. A line of a file is not new if a command or
// a test report has printed it, and a line of output is not new if it repeats a line of a file.
func (m shownFacts) add(f fact) bool {
	if f.about == "" {
		seen := m.lines[f.text]
		m.lines[f.text], m.outputLines[f.text] = true, true
		return !seen
	}
	seen := m.facts[f]
	m.facts[f] = true
	if strings.HasPrefix(f.about, "line of ") {
		text := stableText(f.text)
		seen = seen || m.outputLines[text]
		m.lines[text] = true
	}
	return !seen
}

// factsOf returns the facts of an observation. written holds the lines that the agent wrote
// itself, which are not new to it.
func factsOf(r *schemas.StepRow) (shown, written []fact) {
	text := strings.TrimSpace(schemas.Value(r.Observation))
	if text == "" { // the fact is that this call prints nothing
		return []fact{{"silence after " + schemas.Value(r.ToolName), schemas.Value(r.ArgumentsJSON)}}, nil
	}
	lines := strings.Split(strings.TrimRight(*r.Observation, "\n"), "\n")
	switch Category(schemas.Value(r.ToolName)) {
	case "view":
		return viewFacts(lines), nil
	case "grep":
		return grepFacts(lines), nil
	case "listdir":
		return listingFacts(lines), nil
	case "pdb":
		return debuggerFacts(r, lines), nil
	case "edit":
		return editFacts(lines)
	case "bash":
		numbers := numbersLines.MatchString(commandOf(r))
		for _, line := range lines {
			if m := numberedMatch.FindStringSubmatch(line); numbers && m != nil {
				line = m[1]
			}
			if m := grepLocation.FindStringSubmatch(line); m != nil {
				shown = append(shown, fileLine(m[1], m[2])...)
				continue
			}
			shown = append(shown, lineFacts(line)...)
		}
		return shown, nil
	}
	return outputFacts(lines), nil
}

// viewFacts reads the observation of view: a heading ("FILE, lines 3-9 of 20") and lines of that file.
func viewFacts(lines []string) []fact {
	file, _, found := strings.Cut(lines[0], ", lines ")
	if !found {
		return outputFacts(lines)
	}
	var out []fact
	for _, line := range lines[1:] {
		if strings.HasPrefix(line, "[") && strings.Contains(line, "view them with start=") {
			continue
		}
		text, _ := numbered(line)
		out = append(out, fileLine(file, text)...)
	}
	return out
}

// grepFacts reads the observation of grep: file names, each followed by its lines.
func grepFacts(lines []string) []fact {
	if len(lines) < 3 || lines[1] != "" { // no match, or an error
		return outputFacts(lines)
	}
	var out []fact
	file := ""
	for i, line := range lines[2:] {
		text, isLine := numbered(line)
		switch {
		case isLine:
			out = append(out, fileLine(file, text)...)
		case lines[i+1] == "": // the line before this one, because i counts from the third line
			file = line
		case strings.TrimSpace(line) != "--":
			out = append(out, lineFacts(line)...)
		}
	}
	return out
}

// listingFacts reads the observation of listdir: an indented tree below its root.
func listingFacts(lines []string) []fact {
	if !strings.HasSuffix(lines[0], "/") {
		return outputFacts(lines)
	}
	dirs := []string{strings.TrimSuffix(lines[0], "/")} // path of the current entry
	var out []fact
	for _, line := range lines[1:] {
		name := strings.TrimLeft(line, " ")
		depth := (len(line) - len(name)) / 2
		if depth < 1 || depth > len(dirs) || name == "" {
			out = append(out, lineFacts(line)...)
			continue
		}
		dirs = append(dirs[:depth], strings.TrimSuffix(name, "/"))
		out = append(out, fact{"entry", strings.Join(dirs, "/")})
	}
	return out
}

// editFacts reads the observation of an edit: a heading, which repeats the call, and a diff.
func editFacts(lines []string) (shown, written []fact) {
	if len(lines) < 2 || !strings.HasPrefix(lines[1], "--- ") {
		return outputFacts(lines), nil
	}
	file, inHunk := "", false
	for _, line := range lines[1:] {
		switch {
		case strings.HasPrefix(line, "--- "):
			inHunk = false
		case strings.HasPrefix(line, "+++ "):
			file = strings.TrimPrefix(strings.TrimPrefix(line, "+++ "), "b/")
		case strings.HasPrefix(line, "@@ "):
			inHunk = true
		case inHunk && strings.HasPrefix(line, "+"):
			written = append(written, fileLine(file, line[1:])...)
		case inHunk && (strings.HasPrefix(line, "-") || strings.HasPrefix(line, " ")):
			shown = append(shown, fileLine(file, line[1:])...)
		default:
			shown = append(shown, lineFacts(line)...)
		}
	}
	return shown, written
}

func outputFacts(lines []string) (out []fact) {
	for _, line := range lines {
		out = append(out, lineFacts(line)...)
	}
	return out
}

var (
	grepLocation = regexp.MustCompile(`^(\.{0,2}[\w./+-]*[\w+-]):\d+:(.*)$`) // output of grep -n

	// A search in one file or in standard input prints line numbers without file names, and "--"
	// between matches.
	numbersLines  = regexp.MustCompile(`\b(?:e?grep|rg)\s(?:[^|;&]*\s)?(?:-[A-Za-z]*n|--line-number\b)`)
	numberedMatch = regexp.MustCompile(`^(?:\d+[:-]|--$)(.*)$`)
)
