package audit

import (
	"path"
	"strings"
)

// This file compares the names of functions, tests and files.

// bareFunction returns the function of a test id, or the last part of a name.
func bareFunction(name string) string {
	name, _, _ = strings.Cut(name, "[")
	return bareName(bareTest(name))
}

// bareName returns the last part of a dotted name.
func bareName(name string) string { return name[strings.LastIndex(name, ".")+1:] }

// sameFile reports whether a text names a file, perhaps only by the end of its path.
func sameFile(claimed, file string) bool {
	return claimed == file || strings.HasSuffix(file, "/"+claimed)
}

// bareTest returns the function of a test id, with its parameters.
func bareTest(id string) string {
	names, _, _ := strings.Cut(id, "[")
	if i := strings.LastIndex(names, "::"); i >= 0 {
		return id[i+len("::"):]
	}
	if open := strings.IndexByte(id, '['); open < 0 && !strings.Contains(id, "/") {
		return id[strings.LastIndex(id, ".")+1:]
	}
	return id
}

func isWordByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func isIdentifier(text string) bool {
	for i := 0; i < len(text); i++ {
		if !isWordByte(text[i]) && text[i] != '.' {
			return false
		}
	}
	return text != "" && (text[0] < '0' || text[0] > '9')
}

// isPython reports whether a text names a Python file.
func isPythonFile(name string) bool { return path.Ext(name) == ".py" }

// firstWord returns the word at the start of a text, or "".
func firstWord(text string) string {
	end := 0
	for end < len(text) && isWordByte(text[end]) {
		end++
	}
	return text[:end]
}

// skipWords removes words, each with the space after it, from the start of a text.
func skipWords(text string, words ...string) string {
	for i := 0; i < len(words); i++ {
		if rest, ok := strings.CutPrefix(text, words[i]); ok && strings.HasPrefix(rest, " ") {
			text, i = rest[1:], -1
		}
	}
	return text
}
