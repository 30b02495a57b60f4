package closure

import (
	"path"
	"regexp"
	"strings"
	"unicode"
)

// This file checks programs that the agent writes for itself. Only names that must come from somewhere else are
// entities: those of the code that the program neither binds nor passes as a keyword. Strings and numbers are inputs
// that the agent makes up, and comments are its own words, unless they have names of the repository or modules in it.

// program checks a program in a here-document or in the command line.
func (c *checker) program(s script) {
	plain, texts := splitStrings(s.text)
	c.isScript = true
	c.bind(plain)
	for _, m := range opened.FindAllStringSubmatch(s.text, -1) {
		c.invent(c.relative(cleanPath(m[1] + m[2])))
	}
	c.isScript = !s.isInline || importsOther(plain)
	c.text(plain, code)
	c.isScript = false
	for name := range c.bound {
		c.written = append(c.written, name)
	}
	for _, text := range texts {
		c.inventedText(text)
	}
	for line := range strings.SplitSeq(s.text, "\n") {
		if expected := strings.TrimSpace(line); strings.HasPrefix(expected, "assert ") {
			c.expected(expected, s.text)
		}
	}
}

// opened matches a file that a program writes.
var opened = regexp.MustCompile(`(?:\bopen\(["']([\w./-]+)["'], *(?:mode=)?["'][wax]|\bcopy\w*\([^,()\n]*, *["']([\w./-]+)["']\))`)

// inventedText checks a string or a comment of a program.
func (c *checker) inventedText(text string) {
	before, text := len(c.out), withoutEscapes(text)
	mode := prose
	if !strings.Contains(text, " ") {
		mode = code
	}
	c.isScript = true
	c.text(text, mode)
	c.isScript = false
	kept := c.out[:before]
	for _, e := range c.out[before:] {
		dir, base := path.Split(e.Text)
		if c.names[e.Text] || e.Kind == File && strings.Contains(text, e.Text) && len(base) > len(".py") && strings.HasSuffix(base, ".py") && dir != "" && c.hasPath(dir) {
			kept = append(kept, e)
		}
	}
	c.out = kept
}

// expected checks the values in an assertion that occur nowhere else in the program: they are no inputs.
func (c *checker) expected(line, program string) {
	_, line, _ = strings.Cut(line, "==")
	for _, m := range literalValue.FindAllStringSubmatch(line, -1) {
		switch value := m[1] + m[2]; {
		case strings.Count(program, value) > 1:
		case m[2] != "":
			canonical, _ := numberAt(value)
			delete(c.bound, canonical)
			c.value(canonical, value)
		case strings.ContainsFunc(value, unicode.IsLetter) && len(value) > 1 && !c.isKnownName(value) && !prior[value] && !publicFiles[value] && !c.containsText(value):
			c.report(Value, value)
		}
	}
}

// literalValue matches a string of one word, or a number.
var literalValue = regexp.MustCompile(`["']([^"'\s{}%]+)["']|\b(\d[\d_.]*)\b`)

// imported matches the root of an imported module.
var imported = regexp.MustCompile(`(?m)(?:^|;)\s*(?:from|import) +(\w+)`)

// importsOther reports whether a program imports more than Python's modules: it tries something out, so that its numbers
// are inputs.
func importsOther(code string) bool {
	for _, m := range imported.FindAllStringSubmatch(code, -1) {
		if !standard[m[1]] {
			return true
		}
	}
	return false
}

// splitStrings splits Python code into the code without its strings and comments, and these.
func splitStrings(source string) (code string, texts []string) {
	var b strings.Builder
	start := 0
	for i := 0; i < len(source); {
		switch q := source[i]; q {
		case '#':
			b.WriteString(source[start:i])
			end := strings.IndexByte(source[i:], '\n')
			if end < 0 {
				end = len(source) - i
			}
			texts = append(texts, source[i+1:i+end])
			i += end
			start = i
		case '"', '\'':
			b.WriteString(strings.TrimSuffix(source[start:i], prefix.FindString(source[start:i])))
			b.WriteString(`""`)
			quote := source[i : i+1]
			if strings.HasPrefix(source[i:], strings.Repeat(quote, 3)) {
				quote = source[i : i+3]
			}
			i += len(quote)
			from := i
			for i < len(source) && !strings.HasPrefix(source[i:], quote) && (len(quote) == 3 || source[i] != '\n') {
				if source[i] == '\\' {
					i++
				}
				i++
			}
			i = min(i, len(source))
			texts = append(texts, source[from:i])
			i = min(i+len(quote), len(source))
			start = i
		default:
			i++
		}
	}
	b.WriteString(source[start:])
	return b.String(), texts
}
