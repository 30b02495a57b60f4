package metrics

import (
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// MarkNewInformation fills is_new_information: an observation has new information if it shows a fact
// that no earlier observation of the episode has shown. Facts are lines of files,
// matches, directory entries, stack frames, values of names, and lines of output.
// Presentation (line numbers, the listing around the current line, headings, addresses
// of objects, durations) does not count.
func MarkNewInformation(e *Episode) {
	n := news{facts: make(map[fact]bool, 8*len(e.Rows)), lines: make(map[string]bool, 8*len(e.Rows))}
	for i := range e.Rows {
		r := &e.Rows[i]
		if r.ObservationSHA256 == nil {
			continue
		}
		n.isNew = false
		n.read(r, &e.Readings[i])
		r.IsNewInformation = new(n.isNew)
	}
}

// fact is one fact that an observation shows about a file, a place or a name.
type fact struct{ kind, about, text string }

// news holds the facts that an episode has shown so far.
type news struct {
	facts map[fact]bool
	lines map[string]bool // all lines, of files and of output; true for lines of output, which may be lines of any file
	isNew bool            // the current observation has shown a new fact

	file, clean string // the file of the last line, and its clean path
}

func (n *news) add(f fact) bool {
	known := n.facts[f]
	n.facts[f] = true
	return !known
}

func (n *news) show(f fact) { n.isNew = n.add(f) || n.isNew }

// fileLine adds a line of a file, unless it is blank. It is not new if a command or a test report has printed it.
func (n *news) fileLine(file, text string) {
	if text = strings.TrimSpace(text); text == "" {
		return
	}
	if file != n.file || n.clean == "" {
		n.file, n.clean = file, path.Clean(file)
	}
	isNew := n.add(fact{"line", n.clean, text})
	text = stableText(text)
	isOutput, isKnown := n.lines[text]
	if !isKnown {
		n.lines[text] = false
	}
	n.isNew = n.isNew || isNew && !isOutput
}

// output adds a line of output, unless it is blank. It is not new if it repeats a line of a file.
func (n *news) output(line string) {
	if line == "" {
		return
	}
	if text, ok := numbered(line); ok && line[0] == ' ' { // cat -n
		line = text
	}
	for _, mark := range []string{">  ", "E  "} { // of pytest
		line = strings.TrimPrefix(line, mark)
	}
	if line = strings.TrimSpace(line); line == "" {
		return
	}
	line = stableText(line)
	isOutput, isKnown := n.lines[line]
	if !isOutput {
		n.lines[line] = true
	}
	n.isNew = n.isNew || !isKnown
}

func (n *news) outputs(lines []string) {
	for _, line := range lines {
		n.output(line)
	}
}

// value adds the value of a name. It removes quotes and line breaks, so that p, pp and print give the same fact.
func (n *news) value(scope, name, text string) {
	n.show(fact{"value", scope, strings.TrimSpace(name) + " = " + ValueText(text)})
}

// read adds the facts of an observation.
func (n *news) read(r *schemas.StepRow, read *Reading) {
	text := schemas.Value(r.Observation)
	if strings.TrimSpace(text) == "" { // the fact is that this call prints nothing
		n.show(fact{"silence", schemas.Value(r.ToolName), schemas.Value(r.ArgumentsJSON)})
		return
	}
	category := Category(schemas.Value(r.ToolName))
	if len(read.Answer) > 0 {
		n.answer(read)
		return
	}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	switch category {
	case "view":
		n.view(lines)
	case "grep":
		n.grep(lines)
	case "listdir":
		n.listing(lines)
	case "edit":
		n.edit(lines)
	case "bash":
		numbers := strings.Contains(read.Call.Command, "-") && numbersLines.MatchString(read.Call.Command)
		for _, line := range lines {
			if numbers {
				if m := numberedMatch.FindStringSubmatch(line); m != nil {
					line = m[1]
				}
			}
			if m := grepLocation.FindStringSubmatch(line); m != nil {
				n.fileLine(m[1], m[2])
				continue
			}
			n.output(line)
		}
	default:
		n.outputs(lines)
	}
}

// view reads the observation of view: a heading ("FILE, lines 3-9 of 20") and lines of that file.
func (n *news) view(lines []string) {
	file, _, found := strings.Cut(lines[0], ", lines ")
	if !found {
		n.outputs(lines)
		return
	}
	for _, line := range lines[1:] {
		if strings.HasPrefix(line, "[") && strings.Contains(line, "view them with start=") {
			continue
		}
		text, _ := numbered(line)
		n.fileLine(file, text)
	}
}

// grep reads the observation of grep: file names, each followed by its lines.
func (n *news) grep(lines []string) {
	if len(lines) < 3 || lines[1] != "" { // no match, or an error
		n.outputs(lines)
		return
	}
	file := ""
	for i, line := range lines[2:] {
		text, isLine := numbered(line)
		switch {
		case isLine:
			n.fileLine(file, text)
		case lines[i+1] == "": // the line before this one, because i counts from the third line
			file = line
		case strings.TrimSpace(line) != "--":
			n.output(line)
		}
	}
}

// listing reads the observation of listdir: an indented tree below its root.
func (n *news) listing(lines []string) {
	if !strings.HasSuffix(lines[0], "/") {
		n.outputs(lines)
		return
	}
	dirs := []string{strings.TrimSuffix(lines[0], "/")} // path of the current entry
	for _, line := range lines[1:] {
		name := strings.TrimLeft(line, " ")
		depth := (len(line) - len(name)) / 2
		if depth < 1 || depth > len(dirs) || name == "" {
			n.output(line)
			continue
		}
		dirs = append(dirs[:depth], strings.TrimSuffix(name, "/"))
		n.show(fact{"entry", "", strings.Join(dirs, "/")})
	}
}

// edit reads the observation of an edit: a heading, which repeats the call, and a diff. Lines that the agent wrote are
// not new to it.
func (n *news) edit(lines []string) {
	if len(lines) < 2 || !strings.HasPrefix(lines[1], "--- ") {
		n.outputs(lines)
		return
	}
	for _, written := range []bool{true, false} {
		n.isNew = false
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
				if written {
					n.fileLine(file, line[1:])
				}
			case written:
			case inHunk && (strings.HasPrefix(line, "-") || strings.HasPrefix(line, " ")):
				n.fileLine(file, line[1:])
			default:
				n.output(line)
			}
		}
	}
}

// answer reads an observation of the debugger.
func (n *news) answer(read *Reading) {
	for _, l := range read.Lines {
		n.fileLine(l.File, l.Text)
	}
	scope := ""
	if last := read.Answer[len(read.Answer)-1]; last.Kind == CurrentItem {
		scope = n.frame(last)
		if name := shownExpression(read.Call.Command); len(read.Answer) == 1 && name != "" { // the fact is that it prints nothing
			n.value(scope, name, "")
		}
	}
	for _, item := range read.Answer {
		switch item.Kind {
		case StopItem, FrameItem:
			if at := n.frame(item); item.Text != "" {
				n.value(at, "return", item.Text)
			}
		case ValueItem:
			n.value(scope, item.Name, item.Text)
		case ErrorItem:
			n.value(scope, item.Name, "*** "+item.Text)
		case OutputItem:
			for line := range strings.SplitSeq(item.Text, "\n") {
				if strings.HasPrefix(line, "Breakpoint ") && strings.HasSuffix(line, " hit.") || line == "--Return--" || line == "--Call--" ||
					line == "[EOF]" || line == "" || isListed(line) {
					continue
				}
				if line[0] == 'B' || line[0] >= '0' && line[0] <= '9' {
					line = breakpointSet.ReplaceAllString(line, "breakpoint at ")
				}
				n.output(line)
			}
		}
	}
}

// frame adds a stack frame, and returns its name.
func (n *news) frame(item AnswerItem) string {
	scope := item.File
	if item.Line > 0 {
		scope += " in " + item.Function
		n.show(fact{"frame", scope, strconv.Itoa(item.Line)})
	}
	return scope
}

var (
	breakpointSet = regexp.MustCompile(`^(?:Breakpoint )?\d+ +(set at |at )?`)
	grepLocation  = regexp.MustCompile(`^(\.{0,2}[\w./+-]*[\w+-]):\d+:(.*)$`) // output of grep -n

	// A search in one file or in standard input prints line numbers without file names, and "--"
	// between matches.
	numbersLines  = regexp.MustCompile(`\b(?:e?grep|rg)\s(?:[^|;&]*\s)?(?:-[A-Za-z]*n|--line-number\b)`)
	numberedMatch = regexp.MustCompile(`^(?:\d+[:-]|--$)(.*)$`)
)
