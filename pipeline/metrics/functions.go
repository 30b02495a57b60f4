package metrics

import "strings"

// Function is a function or method of a Python file.
type Function struct {
	Name  string // qualified, such as Cart.total
	First int    // first line, with decorators
	Last  int    // last line of the body
	start int    // column of def
}

// Functions returns the functions of a Python file, in the order of their first lines. It reads
// indentation, strings and brackets, so it also accepts files that do not compile.
func Functions(source string) []Function {
	type block struct {
		name     string
		indent   int
		function int // index in out, or -1 for a class
	}
	var out []Function
	var open []block
	decorator := 0 // line of the first decorator before the current statement
	for s := range statements(source) {
		for len(open) > 0 && open[len(open)-1].indent >= s.indent {
			open = open[:len(open)-1]
		}
		name, isFunction := definedName(s.text)
		first := s.first
		if decorator > 0 {
			first = decorator
		}
		switch {
		case strings.HasPrefix(s.text, "@"):
			if decorator == 0 {
				decorator = s.first
			}
			continue
		case name != "":
			if len(open) > 0 {
				name = open[len(open)-1].name + "." + name
			}
			b := block{name, s.indent, -1}
			if isFunction {
				b.function = len(out)
				out = append(out, Function{Name: name, First: first, start: s.indent})
			}
			open = append(open, b)
		}
		decorator = 0
		for _, b := range open {
			if b.function >= 0 {
				out[b.function].Last = s.last
			}
		}
	}
	return out
}

// definedName returns the name that a statement defines, if it begins a function or a class.
func definedName(statement string) (name string, isFunction bool) {
	rest, isClass := strings.CutPrefix(statement, "class ")
	if !isClass {
		rest, _ = strings.CutPrefix(statement, "async ")
		if rest, isFunction = strings.CutPrefix(strings.TrimLeft(rest, " "), "def "); !isFunction {
			return "", false
		}
	}
	rest = strings.TrimLeft(rest, " ")
	if end := strings.IndexAny(rest, "(:[ \t"); end >= 0 {
		rest = rest[:end]
	}
	return rest, isFunction
}

// statement is a logical line of Python.
type statement struct {
	first, last int // lines
	indent      int
	text        string // its first line, without indentation
}

// statements yields the logical lines of a Python file, without blank lines and comments.
func statements(source string) func(func(statement) bool) {
	return func(yield func(statement) bool) {
		var current statement
		inside := continuation{}
		n := 0
		for line := range strings.Lines(source) {
			n++
			if !inside.open() {
				text := strings.TrimLeft(line, " \t\f\r\n")
				if text == "" || text[0] == '#' {
					continue
				}
				current = statement{first: n, text: strings.TrimRight(text, "\r\n"), indent: indentation(line)}
			}
			inside.read(line)
			if current.last = n; !inside.open() && !yield(current) {
				return
			}
		}
		if inside.open() {
			yield(current)
		}
	}
}

// indentation returns the column of the first character of a line that is not blank. A tab leads to the next multiple of 8.
func indentation(line string) int {
	column := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			column++
		case '\t':
			column += 8 - column%8
		default:
			return column
		}
	}
	return column
}

// continuation tells whether a statement goes on in the next line.
type continuation struct {
	depth  int    // open brackets
	quote  string // the quotes that end the string that is open
	joined bool   // the line ends in a backslash
}

func (c *continuation) open() bool { return c.depth > 0 || c.quote != "" || c.joined }

func (c *continuation) read(line string) {
	c.joined = false
	for i := 0; i < len(line); i++ {
		switch b := line[i]; {
		case b == '\\':
			if rest := strings.TrimLeft(line[i+1:], "\r"); rest == "\n" || rest == "" {
				c.joined = c.quote == "" || len(c.quote) == 1
			}
			i++
		case c.quote != "":
			if strings.HasPrefix(line[i:], c.quote) {
				i += len(c.quote) - 1
				c.quote = ""
			}
		case b == '#':
			i = len(line)
		case b == '\'' || b == '"':
			c.quote = line[i : i+1]
			if triple := strings.Repeat(c.quote, 3); strings.HasPrefix(line[i:], triple) {
				c.quote, i = triple, i+2
			}
		case b == '(' || b == '[' || b == '{':
			c.depth++
		case b == ')' || b == ']' || b == '}':
			c.depth = max(0, c.depth-1)
		}
	}
	if len(c.quote) == 1 && !c.joined { // a string without triple quotes ends with its line
		c.quote = ""
	}
}

// functionOf returns the index of the innermost function that contains a line, or -1.
func functionOf(functions []Function, line int) int {
	found := -1
	for i, f := range functions { // a nested function comes after the one around it
		if f.First > line {
			break
		}
		if line <= f.Last {
			found = i
		}
	}
	return found
}
