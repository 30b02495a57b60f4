package policies

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tracesmith/tracesmith/agents"
	"github.com/tracesmith/tracesmith/agents/testcmd"
	"github.com/tracesmith/tracesmith/schemas"
)

// evidence collects what observations have shown so far: source lines, definitions, the failing
// test and the debugger's frame.
type evidence struct {
	lines   map[string]map[int]string // path -> line -> text
	defs    []definition              // of every file, in order of path and line
	failure failure
	command string         // the test command, if the prompt of the problem contains it
	workdir string         // the directory of the repository
	frame   *schemas.Frame // the debugger's current frame
}

// definition is a def or class that a search has shown.
type definition struct {
	name, path   string
	line, indent int
	isClass      bool
}

var (
	viewLine   = regexp.MustCompile(`^[ B]\s*(\d+)  (.*)$`)
	viewHead   = regexp.MustCompile(`^(\S+), lines \d+-\d+ of \d+`)
	grepLine   = regexp.MustCompile(`^ *(\d+): (.*)$`)
	defLine    = regexp.MustCompile(`^(\s*)(?:async\s+def|def|class)\s+([A-Za-z_]\w*)`)
	callName   = regexp.MustCompile(`([A-Za-z_]\w*)\s*\(`)
	assignment = regexp.MustCompile(`(?m)(?:^|\bfor\b|\bas\b)\s*([A-Za-z_]\w*)(?:\s*,\s*([A-Za-z_]\w*))?\s*(?:=[^=]|:\s*\w+\s*=[^=]|\bin\b|:)`)
	word       = regexp.MustCompile(`[A-Za-z_]\w*`)
)

func newEvidence(t *agents.Transcript) *evidence {
	e := &evidence{lines: map[string]map[int]string{}, workdir: cmp.Or(t.Task.Workdir, schemas.DefaultWorkdir)}
	for _, s := range t.Steps {
		if s.ToolCall == nil && t.Task.Entrypoint != "" && strings.Contains(s.Text, t.Task.Entrypoint) {
			e.command = t.Task.Entrypoint
		}
	}
	return e
}

func (e *evidence) add(step schemas.Step) {
	if step.Observation == nil {
		return
	}
	text := step.Observation.Text
	switch step.ToolCall.Name {
	case "eval":
		e.readTests(text)
	case "view":
		e.readView(text)
	case "grep":
		e.readGrep(text)
	case "pdb":
		if step.State != nil {
			e.frame = step.State.Frame
		}
	}
}

func (e *evidence) addLine(path string, line int, text string) {
	if e.lines[path] == nil {
		e.lines[path] = map[int]string{}
	}
	e.lines[path][line] = text
}

// readView reads the lines in an answer of view.
func (e *evidence) readView(text string) {
	head, body, _ := strings.Cut(text, "\n")
	m := viewHead.FindStringSubmatch(head)
	if m == nil {
		return
	}
	for line := range strings.SplitSeq(body, "\n") {
		if n := viewLine.FindStringSubmatch(line); n != nil {
			number, _ := strconv.Atoi(n[1]) // the pattern ensures digits
			e.addLine(m[1], number, n[2])
		}
	}
}

// readGrep reads the lines and the definitions in an answer of grep.
func (e *evidence) readGrep(text string) {
	path := ""
	for line := range strings.SplitSeq(text, "\n") {
		if n := grepLine.FindStringSubmatch(line); n != nil && path != "" {
			number, _ := strconv.Atoi(n[1])
			e.addLine(path, number, n[2])
			if d := defLine.FindStringSubmatch(n[2]); d != nil {
				e.defs = append(e.defs, definition{
					name: d[2], path: path, line: number, indent: len(d[1]),
					isClass: strings.HasPrefix(strings.TrimSpace(n[2]), "class"),
				})
			}
		} else if strings.HasSuffix(line, ".py") && !strings.Contains(line, " ") {
			path = line
		}
	}
	slices.SortFunc(e.defs, func(a, b definition) int {
		return cmp.Or(strings.Compare(a.path, b.path), a.line-b.line)
	})
	e.defs = slices.Compact(e.defs)
}

// lineText returns a line without leading and trailing white space, or "" if no step has shown it.
func (e *evidence) lineText(path string, line int) string {
	return strings.TrimSpace(e.lines[path][line])
}

// lastLine returns the last line of a definition, derived from the next definition that is not indented
// deeper. It returns 0 for the last definition of a file.
func (e *evidence) lastLine(d definition) int {
	for _, other := range e.defs {
		if other.path == d.path && other.line > d.line && other.indent <= d.indent {
			return other.line - 1
		}
	}
	return 0
}

// extent returns the first and last line of a definition, as far as they are known.
func (e *evidence) extent(d definition) (start, end int) {
	if end = e.lastLine(d); end > 0 {
		return d.line, end
	}
	for n := range e.lines[d.path] {
		end = max(end, n)
	}
	return d.line, end
}

// body returns the lines of a definition that were shown.
func (e *evidence) body(d definition) string {
	start, end := e.extent(d)
	var b strings.Builder
	for n := start; n <= end; n++ {
		b.WriteString(e.lines[d.path][n])
		b.WriteByte('\n')
	}
	return b.String()
}

// testBody returns the source of the failing test, or all shown lines of its file.
func (e *evidence) testBody(f failure) string {
	name := testcmd.Function(f.id)
	var found, class definition // class is the class around the current definition
	for _, d := range e.defs {
		switch {
		case d.path != f.path:
		case d.isClass:
			class = d
		case d.name == name:
			if d.indent <= class.indent {
				class = definition{}
			}
			if found.name == "" || class.name == testcmd.Class(f.id) {
				found = d
			}
		}
	}
	if found.name != "" {
		return e.body(found)
	}
	var b strings.Builder
	for _, n := range slices.Sorted(maps.Keys(e.lines[f.path])) {
		b.WriteString(e.lines[f.path][n])
		b.WriteByte('\n')
	}
	return b.String()
}

// callee is a definition that a source text mentions before a parenthesis.
type callee struct {
	definition
	isMember  bool // the text defines it
	ambiguous bool // the program has several definitions with this name
}

// callees returns the program's definitions that a source text calls, in the order of their first
// call. For a call of a class, it returns the class, whose body contains the methods.
func (e *evidence) callees(source string) []callee {
	var out []callee
	for _, m := range callName.FindAllStringSubmatchIndex(source, -1) {
		name, before := source[m[2]:m[3]], source[:m[2]]
		first, count := len(out), 0
		for _, d := range e.defs {
			isMember := strings.HasSuffix(before, "def ")
			if d.name != name || testcmd.IsTestFile(d.path) || isMember && !strings.Contains(source, strings.TrimSpace(e.lines[d.path][d.line])) {
				continue
			}
			if strings.HasPrefix(name, "__") && !isMember { // as in super().__init__()
				continue
			}
			count++
			if !slices.ContainsFunc(out, func(c callee) bool { return c.definition == d }) {
				out = append(out, callee{definition: d, isMember: isMember})
			}
		}
		for i := first; i < len(out); i++ {
			out[i].ambiguous = count > 1
		}
	}
	return out
}

// functionAt returns the innermost function around a line, or nil.
func (e *evidence) functionAt(path string, line int) *definition {
	var found *definition
	for i, d := range e.defs {
		if d.path != path || d.isClass || d.line > line {
			continue
		}
		if end := e.lastLine(d); end == 0 || line <= end {
			found = &e.defs[i]
		}
	}
	return found
}

// goldFunctions returns the functions around the gold lines. If there are none, it returns the first
// function after the first gold line of a file.
func (e *evidence) goldFunctions(spots []goldSpot) []definition {
	var out []definition
	add := func(d *definition) {
		if d != nil && !slices.Contains(out, *d) {
			out = append(out, *d)
		}
	}
	for _, spot := range spots {
		for _, line := range spot.lines {
			add(e.functionAt(spot.path, line))
		}
	}
	for _, spot := range spots {
		for i, d := range e.defs {
			if len(out) == 0 && d.path == spot.path && !d.isClass && d.line >= spot.lines[0] {
				add(&e.defs[i])
			}
		}
	}
	return out
}

// breakpointLines returns up to two shown lines at the start of a function's body where the debugger can stop.
func (e *evidence) breakpointLines(d definition) []int {
	start, end := e.extent(d)
	n := start
	for depth := 0; n <= end; n++ { // the signature may take several lines
		text := e.lines[d.path][n]
		depth += strings.Count(text, "(") + strings.Count(text, "[") - strings.Count(text, ")") - strings.Count(text, "]")
		if depth <= 0 && strings.HasSuffix(strings.TrimSpace(stripComment(text)), ":") {
			break
		}
	}
	var out []int
	for n++; n <= end && len(out) < 2; n++ {
		text := e.lineText(d.path, n)
		if quote := docQuote(text); quote != "" && len(out) == 0 { // skip the docstring
			for closed := strings.Count(text, quote) >= 2; !closed && n < end; {
				n++
				closed = strings.Contains(e.lines[d.path][n], quote)
			}
			continue
		}
		if e.isExecutable(d.path, n) {
			out = append(out, n)
		}
	}
	return out
}

// isExecutable guesses from a line's text whether the debugger can stop there.
func (e *evidence) isExecutable(path string, line int) bool {
	text := e.lineText(path, line)
	if text == "" || strings.ContainsAny(text[:1], "#@)]}\"'") {
		return false
	}
	first := word.FindString(text)
	return !slices.Contains([]string{"def", "class", "global", "nonlocal", "else", "try", "finally", "async"}, first)
}

// docQuote returns the quotes with which a docstring begins in a line, or "".
func docQuote(text string) string {
	for _, q := range []string{`"""`, "'''"} {
		if strings.HasPrefix(strings.TrimLeft(text, "rRuU"), q) {
			return q
		}
	}
	return ""
}

func stripComment(text string) string {
	before, _, _ := strings.Cut(text, " #")
	return before
}

// locals returns the names worth printing at a line: those that the line reads, then the parameters
// of its function.
func (e *evidence) locals(path string, line int) []string {
	var out []string
	add := func(source string, keep func(string) bool) {
		for _, name := range word.FindAllString(source, -1) {
			if keep(name) && !slices.Contains(out, name) && !slices.Contains(notLocals, name) {
				out = append(out, name)
			}
		}
	}
	d := e.functionAt(path, line)
	if d == nil {
		return nil
	}
	source := e.body(*d)
	params := parameters(source)
	known := slices.Clone(params)
	for n := d.line; n < line; n++ {
		for _, m := range assignment.FindAllStringSubmatch(e.lines[path][n], -1) {
			known = append(known, m[1], m[2])
		}
	}
	add(stripStrings(e.lineText(path, line)), func(n string) bool { return slices.Contains(known, n) })
	add(strings.Join(params, " "), func(string) bool { return true })
	return out
}

// isMethod reports whether the function at a line takes self.
func (e *evidence) isMethod(path string, line int) bool {
	d := e.functionAt(path, line)
	return d != nil && slices.Contains(parameters(e.body(*d)), "self")
}

// notLocals lists words that look like names but are not worth printing.
var notLocals = []string{"self", "cls", "None", "True", "False", "if", "for", "in", "not", "and", "or", "return", "else", "lambda", "is", "yield"}

// parameters returns the names of the parameters in a signature.
func parameters(source string) []string {
	_, rest, ok := strings.Cut(source, "(")
	if !ok {
		return nil
	}
	depth, end := 1, len(rest)
	for i, c := range rest {
		switch c {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		}
		if depth == 0 {
			end = i
			break
		}
	}
	var out []string
	for part := range strings.SplitSeq(rest[:end], ",") {
		part, _, _ = strings.Cut(part, "=")
		part, _, _ = strings.Cut(part, ":")
		if name := strings.Trim(part, " *\n\t"); word.MatchString(name) && word.FindString(name) == name {
			out = append(out, name)
		}
	}
	return out
}

var stringLiteral = regexp.MustCompile(`"[^"]*"|'[^']*'`)

func stripStrings(s string) string { return stringLiteral.ReplaceAllString(s, "") }
