package metrics

import (
	"regexp"
	"strings"
)

// This file reads the formats of single lines.

// leadingNumber reads the number at the start of a text.
func leadingNumber(text string) (n int, rest string, ok bool) {
	end := 0
	for end < len(text) && end < 8 && '0' <= text[end] && text[end] <= '9' {
		n = 10*n + int(text[end]-'0')
		end++
	}
	return n, text[end:], end > 0
}

// numbered removes a line number from a line, in the formats of view
// ("B  12  x"), grep (" 12: x", " 12- x"), the debugger (" 12 B->\tx") and cat -n.
func numbered(line string) (text string, ok bool) {
	rest := strings.TrimLeft(line, " B")
	indented := len(rest) < len(line)
	digits := 0
	for digits < len(rest) && '0' <= rest[digits] && rest[digits] <= '9' {
		digits++
	}
	if digits == 0 {
		return line, false
	}
	rest = rest[digits:]
	if mark, text, ok := strings.Cut(rest, "\t"); ok && strings.Trim(mark, " B->") == "" {
		return text, true
	}
	for _, gap := range []string{"  ", ": ", "- "} {
		if text, ok = strings.CutPrefix(rest, gap); ok && indented {
			return text, true
		}
	}
	return line, false
}

// stackPlace reads a stack frame of pdb: "> path(12)name()".
func stackPlace(line string) (file string, n int, ok bool) {
	if len(line) < 5 || line[1] != ' ' || line[0] != '>' && line[0] != ' ' {
		return "", 0, false
	}
	rest := strings.TrimLeft(line[2:], " ")
	open := strings.IndexByte(rest, '(')
	if open <= 0 || strings.ContainsAny(rest[:open], " <") {
		return "", 0, false
	}
	n, after, ok := leadingNumber(rest[open+1:])
	if !ok || !strings.HasPrefix(after, ")") || !strings.Contains(after, "(") {
		return "", 0, false
	}
	return rest[:open], n, true
}

// stackFrame reads a stack frame of pdb, perhaps with a return value: "> path(12)name()->1".
func stackFrame(line string) (file string, n int, function, returned string, ok bool) {
	if file, n, ok = stackPlace(line); !ok {
		return "", 0, "", "", false
	}
	_, rest, _ := strings.Cut(line[2+len(file):], ")")
	function, rest, _ = strings.Cut(rest, "(")
	_, returned, _ = strings.Cut(rest, ")->")
	return file, n, function, returned, true
}

// nameValue reads a line of args: "name = value".
func nameValue(line string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(line, " = ")
	bare := name
	for range 2 {
		bare = strings.TrimPrefix(bare, "*")
	}
	return name, value, ok && bare != "" && (bare[0] < '0' || bare[0] > '9') && !strings.ContainsFunc(bare, func(c rune) bool {
		return c != '_' && (c < '0' || c > '9' && c < 'A' || c > 'Z' && c < 'a' || c > 'z')
	})
}

// stableText replaces the parts of a line that may differ between runs.
func stableText(line string) string {
	for i := 1; i < len(line); i++ {
		if c := line[i-1]; '0' <= c && c <= '9' && (line[i] == 's' || strings.HasPrefix(line[i:], "ms") || strings.HasPrefix(line[i:], " seconds")) {
			line = duration.ReplaceAllString(line, "#")
			break
		}
	}
	return withoutAddresses(line)
}

// withoutAddresses replaces memory addresses of objects.
func withoutAddresses(text string) string {
	if strings.Contains(text, "0x") {
		text = pointer.ReplaceAllString(text, "0x#")
	}
	return text
}

var (
	duration = regexp.MustCompile(`\b(?:in )?\d+(?:\.\d+)?(?:ms|s| seconds)\b`)
	pointer  = regexp.MustCompile(`\b0x[0-9a-fA-F]{4,}\b`)
)
