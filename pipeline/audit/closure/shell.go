package closure

import (
	"regexp"
	"strings"
)

// This file checks shell commands. A file that a command writes is an invention of the agent.

// shell checks a command line.
func (c *checker) shell(text string) {
	text, scripts := splitScripts(text)
	for _, m := range inline.FindAllStringSubmatch(text, -1) {
		scripts = append(scripts, script{m[1] + strings.ReplaceAll(m[2], `\"`, `"`), true, true})
	}
	text = inline.ReplaceAllString(text, " ")
	text = substitution.ReplaceAllString(text, "${1}p $2 $3 ")
	text = insertion.ReplaceAllString(text, "$1 ")
	text = packages.ReplaceAllString(text, " ")
	text = records.ReplaceAllString(text, "$1,${2}p")
	c.bind(text)
	for _, m := range writtenFile.FindAllStringSubmatch(text, -1) {
		c.invent(c.relative(cleanPath(m[1])))
	}
	text = writtenFile.ReplaceAllString(text, " ")
	c.text(withoutEscapes(text), words)
	for _, s := range scripts {
		if s.isPython {
			c.program(s)
			continue
		}
		if !strings.Contains(s.text, "@@ ") {
			c.inventedText(s.text)
			continue
		}
		c.isScript = true
		c.bind(strings.ReplaceAll(s.text, "\n+", "\n")) // a patch
		c.text(s.text, prose)
		c.isScript = false
	}
}

// invent remembers a file that the step makes, and the words of its name.
func (c *checker) invent(file string) {
	for _, name := range append(strings.FieldsFunc(baseName(file), func(r rune) bool { return r == '.' || r == '-' }), file, baseName(file)) {
		c.bindName(name)
		c.written = append(c.written, name)
	}
}

// writtenFile matches the file that a command creates or writes.
var writtenFile = regexp.MustCompile(`(?:(?:^|[^0-9&<>=-])>>?|\btee(?: -a)?|\b(?:touch|mkdir)(?: -p)?|^create|\b(?:cp|mv)(?: -\w+)* \S+)[ \t]*([\w./-]*[\w-][\w./-]*)`)

// substitution matches a script of sed that replaces a text, perhaps in one line: 3s/a/b/.
var substitution = regexp.MustCompile(`(\W\d*)s/([^/\n]*)/([^/\n]*)/`)

// insertion matches the command of sed that inserts the text after it: 27a.
var insertion = regexp.MustCompile(`(\bsed\b[^|;\n]*[^\w.]\d+)[aic]\\?`)

// packages matches the names of packages to install, and dates: inputs that need not be shown.
var packages = regexp.MustCompile(`\bpip3? install [^&|;\n]*|\b\d{4}-\d\d-\d\d\b`)

// records matches the condition of awk for a range of lines.
var records = regexp.MustCompile(`NR ?>=? ?(\d+) ?&& ?NR ?<=? ?(\d+)`)

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

// escapedDot matches a dot of a pattern. It is removed, and not replaced by a space, because numbers contain dots.
var escapedDot = regexp.MustCompile(`\\+\.`)

// withoutEscapes replaces escapes such as \n by spaces, so that their letter is no part of a word.
func withoutEscapes(text string) string {
	if strings.IndexByte(text, '\\') < 0 {
		return text
	}
	plain := []byte(escapedDot.ReplaceAllString(text, "."))
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
