package write

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// source is what the steps have shown of the program's files.
type source struct {
	lines map[string]map[int]string

	// What Functions, statements and FunctionAt have found. A new line empties these.
	found     []Function
	placed    map[Place][]Placed
	innermost map[Place]Function
}

// Place is a line of a file.
type Place struct {
	File string
	Line int
}

// Function is a function or class whose definition was shown.
type Function struct {
	Place
	Name    string
	Class   string // around it, if that was shown
	IsClass bool
	indent  int
}

var definition = regexp.MustCompile(`^(\s*)(async\s+def|def|class)\s+([A-Za-z_]\w*)`)

func (s *source) add(file string, line int, text string) {
	if s.lines[file] == nil {
		s.lines[file] = map[int]string{}
	}
	s.lines[file][line] = text
	s.found, s.placed, s.innermost = nil, map[Place][]Placed{}, map[Place]Function{}
}

// text returns a line without leading and trailing white space, or "" if no step has shown it.
func (s *source) text(p Place) string { return strings.TrimSpace(s.lines[p.File][p.Line]) }

// showsNumber reports whether a line that was shown contains a number.
func (s *source) showsNumber(number int) bool {
	for _, lines := range s.lines {
		for _, line := range lines {
			tokens, _ := tokenize(line)
			if slices.ContainsFunc(tokens, func(t token) bool { return t.kind == numberToken && t.text == strconv.Itoa(number) }) {
				return true
			}
		}
	}
	return false
}

// Functions returns all definitions that were shown, by file and line.
func (s *source) Functions() []Function {
	if s.found != nil {
		return s.found
	}
	out := []Function{}
	for _, file := range slices.Sorted(maps.Keys(s.lines)) {
		var class Function
		for _, n := range slices.Sorted(maps.Keys(s.lines[file])) {
			m := definition.FindStringSubmatch(s.lines[file][n])
			if m == nil {
				continue
			}
			f := Function{Place: Place{file, n}, Name: m[3], IsClass: m[2] == "class", indent: len(m[1])}
			if class.Name != "" && f.indent > class.indent {
				f.Class = class.Name
			}
			if f.IsClass {
				class = f
			} else if f.indent <= class.indent {
				class = Function{}
			}
			out = append(out, f)
		}
	}
	s.found = out
	return out
}

// body returns the lines of a definition that were shown without a gap, from the line of "def" on.
func (s *source) body(f Function) []int {
	lines := s.lines[f.File]
	out := []int{f.Line}
	for n, last := f.Line+1, f.Line; ; n++ {
		text, shown := lines[n]
		trimmed := strings.TrimSpace(text)
		switch {
		case !shown:
			return out[:last-f.Line+1]
		case trimmed != "" && !strings.HasPrefix(trimmed, ")") && indentOf(text) <= f.indent && n > s.headEnd(f):
			return out[:last-f.Line+1]
		case trimmed != "":
			last = n
		}
		out = append(out, n)
	}
}

// headEnd returns the line at which the signature of a definition ends.
func (s *source) headEnd(f Function) int {
	depth := 0
	for n := f.Line; ; n++ {
		text, shown := s.lines[f.File][n]
		if !shown {
			return n - 1
		}
		tokens, _ := tokenize(text)
		for _, t := range tokens {
			depth += t.nesting()
		}
		if depth <= 0 {
			return n
		}
	}
}

// isRead reports whether more than the first line of a function was shown.
func (s *source) isRead(f Function) bool { return len(s.body(f)) > s.headEnd(f)-f.Line+1 }

// FunctionAt returns the innermost function around a line, as far as it was shown.
func (s *source) FunctionAt(p Place) (Function, bool) {
	found, known := s.innermost[p]
	if known {
		return found, found.Name != ""
	}
	for _, f := range s.Functions() {
		if f.File == p.File && !f.IsClass && f.Line <= p.Line && slices.Contains(s.body(f), p.Line) && f.indent >= found.indent {
			found = f
		}
	}
	if s.innermost != nil {
		s.innermost[p] = found
	}
	return found, found.Name != ""
}

// statements returns the lines of a function at which the debugger can stop before a statement, with the statements. That
// is the first line of a statement, unless it runs nothing by itself, such as "if (".
func (s *source) statements(f Function) []Placed {
	if out, known := s.placed[f.Place]; known {
		return out
	}
	var out []Placed
	body := s.body(f)
	for i := s.headEnd(f) - f.Line + 1; i < len(body); i++ {
		first, text := i, s.lines[f.File][body[i]]
		for !isWhole(text) && i+1 < len(body) {
			i++
			text += "\n" + s.lines[f.File][body[i]]
		}
		if quote := strings.TrimLeft(strings.TrimSpace(text), "rRuUbB"); strings.HasPrefix(quote, `"`) || strings.HasPrefix(quote, `'`) {
			continue // a docstring
		}
		if parsed, ok := parseStatement(text); ok && !parsed.tokens[0].is("else", "try", "finally", "except") {
			out = append(out, Placed{Place{f.File, body[first] + parsed.linesToFirst()}, body[i], parsed})
		}
	}
	if s.placed != nil {
		s.placed[f.Place] = out
	}
	return out
}

// statementAt returns the statement that begins at a place, with its function, as far as they were shown.
func (s *source) statementAt(p Place) (f Function, st Placed, ok bool) {
	if f, ok = s.FunctionAt(p); !ok {
		return f, st, false
	}
	for _, st := range s.statements(f) {
		if st.Place == p {
			return f, st, true
		}
	}
	return f, st, false
}

// Placed is a statement with its first and last line.
type Placed struct {
	Place
	last int
	statement
}

// head returns the first line of the statement, which can be above the line at which the debugger stops.
func (st Placed) head() int { return st.Line - st.linesToFirst() }

// isWhole reports whether text is a whole statement: its brackets and strings are closed.
func isWhole(text string) bool {
	tokens, ok := tokenize(text)
	depth := 0
	for _, t := range tokens {
		depth += t.nesting()
	}
	return ok && depth <= 0 && !strings.HasSuffix(strings.TrimSpace(text), "\\")
}

func indentOf(text string) int { return len(text) - len(strings.TrimLeft(text, " \t")) }

// names returns the names that a function has as parameters or assigns, in order.
func (s *source) names(f Function) []string {
	var out []string
	add := func(name string) {
		if name != "" && name != "_" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	head := ""
	for n := f.Line; n <= s.headEnd(f); n++ {
		head += s.lines[f.File][n] + "\n"
	}
	for _, name := range parameters(head) {
		add(name)
	}
	for _, st := range s.statements(f) {
		tokens, _ := tokenize(st.target)
		for i, t := range tokens {
			isPart := i > 0 && tokens[i-1].is(".") || i+1 < len(tokens) && tokens[i+1].is(".", "[", "(")
			if t.kind == nameToken && !isPart {
				add(t.text)
			}
		}
		for i, t := range st.tokens { // except ... as name, with ... as name, for name in
			if i > 0 && st.tokens[i-1].is("as") && t.kind == nameToken {
				add(t.text)
			}
		}
	}
	return out
}

// vocabulary returns what changes to statements of a function can use: its names and short string literals, and the attributes
// of self in its class, as far as they were shown.
func (s *source) vocabulary(f Function) vocabulary {
	words := vocabulary{names: s.names(f)}
	add := func(list *[]string, text string) {
		if !slices.Contains(*list, text) {
			*list = append(*list, text)
		}
	}
	for _, g := range s.Functions() {
		if g != f && (g.IsClass || f.Class == "" || g.File != f.File || g.Class != f.Class) {
			continue
		}
		for _, st := range s.statements(g) {
			for i, t := range st.tokens {
				switch {
				case t.kind == stringToken && len(t.text) <= 20 && g == f:
					add(&words.strings, t.text)
				case t.kind == nameToken && i > 1 && st.tokens[i-1].is(".") && st.tokens[i-2].is("self") && (i+1 == len(st.tokens) || !st.tokens[i+1].is("(")):
					add(&words.attributes, t.text)
				}
			}
		}
	}
	return words
}

// parameters returns the names of the parameters in the head of a definition.
func parameters(head string) []string {
	tokens, _ := tokenize(head)
	open := slices.IndexFunc(tokens, func(t token) bool { return t.is("(") })
	if open < 0 {
		return nil
	}
	end := closing(tokens, open)
	if end < 0 {
		end = len(tokens)
	}
	var out []string
	depth := 0
	for i := open + 1; i < end; i++ {
		t := tokens[i]
		depth += t.nesting()
		if t.kind == nameToken && depth == 0 && tokens[i-1].is("(", ",", "*", "**") {
			out = append(out, t.text)
		}
	}
	return out
}

// called returns the names before a parenthesis in a text, in order.
func called(text string) []string {
	tokens, _ := tokenize(text)
	var out []string
	for i, t := range tokens {
		if t.kind == nameToken && i+1 < len(tokens) && tokens[i+1].is("(") && (i == 0 || !tokens[i-1].is("def", "class")) && !slices.Contains(out, t.text) {
			out = append(out, t.text)
		}
	}
	return out
}
