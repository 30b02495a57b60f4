package learn

import (
	"slices"
	"strings"
)

// This file reads statements of Python from the lines that an agent saw, which may be any part of a
// file. It does not parse: it follows strings, brackets and indentation.

// statement is a statement that a breakpoint can stop at, or the header of a compound statement.
type statement struct {
	file        string
	first, last int      // line numbers
	tokens      []string // names, numbers, operators; a string literal is the one token `""`
	words       []string // identifiers of the code and words of its strings
	indent      int      // columns
	function    *function
	place       int // index among the statements of the function
}

// function is a function of which at least the header was shown.
type function struct {
	name, class string
	indent      int
	statements  int
	words       []string        // of all its statements, each once
	has         map[string]bool // the same
}

// scanner holds what is open at the end of a line.
type scanner struct {
	brackets int
	quote    string // the quotes that end the open string
}

// scan reads a line. open means that the statement continues on the next line.
func (s *scanner) scan(line string) (tokens []string, open bool) {
	for i := 0; i < len(line); {
		if s.quote != "" {
			i = s.skipString(line, i)
			continue
		}
		c := line[i]
		switch {
		case c == ' ' || c == '\t' || c == '\r' || c == '\f':
			i++
		case c == '#':
			i = len(line)
		case c == '\\' && i == len(line)-1:
			return tokens, true
		case c == '"' || c == '\'':
			s.quote = line[i : i+1]
			if strings.HasPrefix(line[i:], strings.Repeat(s.quote, 3)) {
				s.quote = line[i : i+3]
			}
			i += len(s.quote)
			tokens = append(tokens, `""`)
		case isWord(c):
			from := i
			for i < len(line) && isWord(line[i]) {
				i++
			}
			if i < len(line) && (line[i] == '"' || line[i] == '\'') && i-from <= 2 {
				continue // the prefix of a string
			}
			tokens = append(tokens, line[from:i])
		default:
			n := operatorLength(line[i:])
			s.bracket(c)
			tokens = append(tokens, line[i:i+n])
			i += n
		}
	}
	if len(s.quote) == 1 {
		s.quote = "" // not valid, or the line was cut
	}
	return tokens, s.brackets > 0 || s.quote != ""
}

// skipString returns the index after the open string, or the length of the line.
func (s *scanner) skipString(line string, i int) int {
	for ; i < len(line); i++ {
		if line[i] == '\\' {
			i++
			continue
		}
		if strings.HasPrefix(line[i:], s.quote) {
			i += len(s.quote)
			s.quote = ""
			return i
		}
	}
	return len(line)
}

func (s *scanner) bracket(c byte) {
	switch c {
	case '(', '[', '{':
		s.brackets++
	case ')', ']', '}':
		s.brackets = max(0, s.brackets-1)
	}
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
}

// operatorLength returns the length of the operator at the start of text.
func operatorLength(text string) int {
	for _, n := range []int{3, 2} {
		if len(text) >= n && slices.Contains([]string{"**=", "//=", ">>=", "<<=", "==", "!=", "<=", ">=", "->", ":=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "**", "//", "<<", ">>"}, text[:n]) {
			return n
		}
	}
	return 1
}

// statements returns the statements of a file of which lines holds the shown lines by number, in the
// order of the file. Statements at which no breakpoint stops are not among them.
func statements(file string, lines map[int]string) []statement {
	numbers := make([]int, 0, len(lines))
	for n := range lines {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	var out []statement
	var scopes []*function // the functions and classes around a line
	for i := 0; i < len(numbers); {
		if i > 0 && numbers[i] != numbers[i-1]+1 {
			scopes = nil
		}
		var s scanner
		first := numbers[i]
		text := lines[first]
		tokens, open := s.scan(text)
		for i++; open && i < len(numbers) && numbers[i] == numbers[i-1]+1; i++ {
			var more []string
			more, open = s.scan(lines[numbers[i]])
			tokens = append(tokens, more...)
			text += "\n" + lines[numbers[i]]
		}
		if len(tokens) == 0 {
			continue
		}
		st := statement{file: file, first: first, last: numbers[i-1], tokens: tokens, words: words(text), indent: indentOf(text)}
		scopes = slices.DeleteFunc(scopes, func(f *function) bool { return f.indent >= st.indent })
		if name, isClass, ok := definition(tokens); ok {
			f := &function{name: name, indent: st.indent, has: map[string]bool{}}
			if isClass {
				f.name, f.class = "", name
			} else if len(scopes) > 0 {
				f.class = scopes[len(scopes)-1].class
			}
			scopes = append(scopes, f)
			continue
		}
		if len(scopes) > 0 && scopes[len(scopes)-1].name != "" {
			st.function = scopes[len(scopes)-1]
		}
		if f := st.function; f != nil {
			for _, w := range st.words {
				if !f.has[w] {
					f.has[w] = true
					f.words = append(f.words, w)
				}
			}
		}
		if stopsAt(tokens) {
			if f := st.function; f != nil {
				st.place = f.statements
				f.statements++
			}
			out = append(out, st)
		}
	}
	return out
}

// definition returns the name that a def or class statement defines.
func definition(tokens []string) (name string, isClass, ok bool) {
	if tokens[0] == "async" {
		tokens = tokens[1:]
	}
	if len(tokens) < 2 || tokens[0] != "def" && tokens[0] != "class" {
		return "", false, false
	}
	return tokens[1], tokens[0] == "class", true
}

// stopsAt reports whether a breakpoint at a statement can stop the program in a function.
func stopsAt(tokens []string) bool {
	switch tokens[0] {
	case "else", "try", "finally", "@", "import", "from", "global", "nonlocal", ")", "]", "}", "...":
		return false
	case `""`:
		return len(tokens) > 1
	}
	return true
}

func indentOf(text string) int {
	n := 0
	for _, c := range text {
		switch c {
		case ' ':
			n++
		case '\t':
			n += 8
		default:
			return n
		}
	}
	return n
}

// words returns the identifiers of a text, and the parts of those that consist of several words, in lower case. Each
// occurs once.
func words(text string) []string {
	var out []string
	seen := map[string]bool{}
	add := func(w string) {
		if w = strings.ToLower(w); len(w) > 2 && !seen[w] && !common[w] {
			seen[w] = true
			out = append(out, w)
		}
	}
	for _, name := range strings.FieldsFunc(text, func(r rune) bool { return r < 0x80 && !isWord(byte(r)) }) {
		add(name)
		from := 0
		for i := 1; i <= len(name); i++ {
			if i == len(name) || name[i] == '_' || 'A' <= name[i] && name[i] <= 'Z' && 'a' <= name[i-1] && name[i-1] <= 'z' {
				if part := strings.Trim(name[from:i], "_"); len(part) < len(name) {
					add(part)
				}
				from = i
			}
		}
	}
	return out
}

// common holds words that say nothing about a program.
var common = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq("and assert async await break class continue def del elif else except false finally for from global if import in is lambda " +
		"none nonlocal not or pass raise return self true try while with yield test tests the testcase assertequal") {
		m[w] = true
	}
	return m
}()
