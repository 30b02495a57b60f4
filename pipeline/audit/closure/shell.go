package closure

import (
	"regexp"
	"slices"
	"strings"
)

// This file checks shell commands. A file that a command writes, and the names that the code in it binds, are
// inventions of the agent, like the numbers in it with which it tries the program out.

// shell checks a command line.
func (c *checker) shell(text string) {
	text, scripts := splitScripts(text)
	for _, m := range inline.FindAllStringSubmatch(text, -1) {
		scripts = append(scripts, script{m[1] + strings.ReplaceAll(m[2], `\"`, `"`), true, true})
	}
	text = inline.ReplaceAllString(text, " ")
	text = substitution.ReplaceAllString(text, "${1}p $2 $3 ")
	c.bind(text)
	for _, m := range writtenFile.FindAllStringSubmatch(text, -1) {
		c.invent(c.relative(cleanPath(m[1])))
	}
	text = writtenFile.ReplaceAllString(text, " ")
	c.text(withoutEscapes(text), words)
	for _, s := range scripts {
		before := len(c.out)
		if !s.isPython {
			c.text(s.text, words)
			continue
		}
		c.isScript = !s.isInline
		c.code(s.text)
		c.isScript = false
		c.out = append(c.out[:before], slices.DeleteFunc(c.out[before:], func(e Entity) bool { return e.Kind == Value && !s.isInline && !s.expects(e.Text) || c.isProse(s, e) })...)
		for name := range c.bound {
			c.written = append(c.written, name)
		}
	}
}

// invent remembers a name that the step makes.
func (c *checker) invent(name string) {
	if c.bound == nil {
		c.bound = map[string]bool{}
	}
	c.bound[name] = true
	c.written = append(c.written, name)
}

// writtenFile matches the file that a command creates or writes.
var writtenFile = regexp.MustCompile(`(?:(?:^|[^0-9&<>=-])>>?|\btee(?: -a)?|\b(?:touch|mkdir)(?: -p)?|^create|\b(?:cp|mv)(?: -\w+)* \S+)[ \t]*([\w./-]*[\w-][\w./-]*)`)

// substitution matches a script of sed that replaces a text, perhaps in one line: 3s/a/b/.
var substitution = regexp.MustCompile(`(\W\d*)s/([^/\n]*)/([^/\n]*)/`)

// inline matches a program in the command line.
var inline = regexp.MustCompile(`(?s)\bpython[\d.]*(?: -\w+)* -c (?:'([^']*)'|"((?:[^"\\]|\\.)*)")`)

// script is a text that a command passes to a program or writes into a file: a here-document.
type script struct {
	text     string
	isPython bool
	isInline bool // in the command line: its numbers and strings count
}

// hereDocument matches the line that a here-document follows, up to its delimiter.
var hereDocument = regexp.MustCompile(`(?m)^(.*)<<-?[ \t]*["']?(\w+)["']?(.*)$`)

// splitScripts splits a command line into its commands and its here-documents.
func splitScripts(text string) (commands string, scripts []script) {
	for {
		m := hereDocument.FindStringSubmatchIndex(text)
		if m == nil {
			return commands + text, scripts
		}
		line, delimiter := text[m[2]:m[3]]+" "+text[m[6]:m[7]], text[m[4]:m[5]]
		commands += text[:m[0]] + line + "\n"
		body, rest := strings.TrimPrefix(text[m[1]:], "\n"), ""
		at := 0
		for l := range strings.SplitAfterSeq(body, "\n") {
			if strings.TrimSpace(l) == delimiter {
				body, rest = body[:at], body[at+len(l):]
				break
			}
			at += len(l)
		}
		scripts = append(scripts, script{body, strings.Contains(line, "python") || strings.Contains(line, ".py"), false})
		text = rest
	}
}

// expects reports whether a line of a script compares with a value or says what is expected.
func (s script) expects(value string) bool {
	for line := range strings.SplitSeq(s.text, "\n") {
		if strings.Contains(line, value) && expectation.MatchString(line) {
			return true
		}
	}
	return false
}

var expectation = regexp.MustCompile(`(?i)\bassert|\bprint\(.*[=!]=|expected`)

// isProse reports whether a script has a name only in comments and strings, and the repository does not have it.
func (c *checker) isProse(s script, e Entity) bool {
	if e.Kind != Identifier && e.Kind != Test || c.names[e.Text] {
		return false
	}
	for line := range strings.SplitSeq(s.text, "\n") {
		if at := strings.Index(line, e.Text); at >= 0 && strings.Count(line[:at], `"`)%2 == 0 && strings.Count(line[:at], "'")%2 == 0 && !strings.Contains(line[:at], "#") {
			return false
		}
	}
	return true
}

// withoutEscapes replaces escapes such as \n by spaces, so that their letter is no part of a word.
func withoutEscapes(text string) string {
	if strings.IndexByte(text, '\\') < 0 {
		return text
	}
	plain := []byte(text)
	for i := 0; i+1 < len(plain); i++ {
		if plain[i] == '\\' {
			plain[i] = ' '
			if i++; strings.IndexByte("nrtbBsSwWdDAZ", plain[i]) >= 0 {
				plain[i] = ' '
			}
		}
	}
	return string(plain)
}
