package leak

import (
	"html"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

var (
	entity       = regexp.MustCompile(`&(?:#[xX]?[0-9a-fA-F]{1,6}|[a-zA-Z]{2,8};)`)
	markupTag    = regexp.MustCompile(`<[^<>]{0,200}>|\x1b\[[0-9;]*m`)
	wordDiffSign = regexp.MustCompile(`\[-[^\n]*?-\]|\{\+|\+\}`)
	linePrefix   = regexp.MustCompile(`^[ \t]*(?:[|>*!%;]+|//+|--+|/\*+|\d+[:|.)]?(?:[ \t]|$))[ \t]?`)
)

// plainReadings calls next with the text without escapes, markup, line prefixes and the like.
func (u *unpacker) plainReadings(text string, next func(string, []byte)) {
	if strings.Count(text, `\`) > 1 {
		next("escaped", unescaped(linesWith(text, `\`)))
	}
	if strings.Contains(text, "</") || strings.Contains(text, "\x1b[") || entity.MatchString(text) {
		marked := linesWith(text, "<&\x1b")
		if plain := html.UnescapeString(markupTag.ReplaceAllString(marked, "")); plain != marked {
			next("markup", []byte(plain))
		}
	}
	if trimmed := strings.TrimSpace(text); trimmed != "" && (trimmed[0] == '{' || trimmed[0] == '[') {
		next("JSON", jsonStrings(trimmed))
	}
	if code := codeInStrings(text); len(code) > 0 {
		next("strings and comments", code)
	}
	if hasLinePrefixes(text) {
		lines := strings.Split(text, "\n")
		for _, side := range []string{"-", "+"} {
			var out strings.Builder
			for _, line := range lines {
				if strings.HasPrefix(line, side) {
					continue
				}
				line = strings.TrimLeft(line, "+-")
				out.WriteString(line[len(linePrefix.FindString(line)):] + "\n")
			}
			next("lines with signs", []byte(out.String()))
		}
	}
	if strings.Contains(text, "{+") {
		next("words with signs", []byte(wordDiffSign.ReplaceAllString(text, "")))
	}
	if wide := linesWith(text, ""); wide != "" {
		if plain := norm.NFKC.String(wide); len(plain) != len(wide) {
			next("other forms of letters", []byte(plain))
		}
	}
	if lines := spacedLines(text); len(lines) > 0 {
		var out strings.Builder
		for _, line := range lines {
			for _, w := range strings.Split(line, "  ") {
				out.WriteString(strings.ReplaceAll(w, " ", "") + " ")
			}
			out.WriteByte('\n')
		}
		next("spaced letters", []byte(out.String()))
	}
}

// linesWith returns the lines that contain one of some ASCII characters, or a character beyond ASCII if there are none, and
// the lines next to them. The callers would not change the other lines.
func linesWith(text, characters string) string {
	var out strings.Builder
	before, kept := "", false // the previous line, and whether it is in out
	wanted := 0               // further lines to keep
	for line := range strings.Lines(text) {
		has := characters != "" && strings.ContainsAny(line, characters)
		for i := 0; characters == "" && !has && i < len(line); i++ {
			has = line[i] >= utf8.RuneSelf
		}
		if has {
			if !kept {
				out.WriteString(before)
			}
			wanted = 2
		}
		if kept = wanted > 0; kept {
			out.WriteString(line)
			wanted--
		}
		before = line
	}
	return out.String()
}

var statement = regexp.MustCompile(`(?m)^[ \t]*(?:(?:async )?def \w+\(|return\b|(?:if|for|while) .*:[ \t]*$|\w+ = \S)`)

// codeInStrings returns the statements in long strings and in comments of several lines, which may be a copy with other
// names.
func codeInStrings(text string) []byte {
	var out []byte
	add := func(part string) {
		if strings.Contains(part, "(") && len(statement.FindAllStringIndex(part, 2)) == 2 {
			out = append(append(out, part...), '\n')
		}
	}
	for _, quote := range []string{`"""`, "'''"} {
		for i, part := range strings.Split(text, quote) {
			if i%2 == 1 {
				add(part)
			}
		}
	}
	var comment strings.Builder
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(strings.TrimLeft(line, " \t"), "#"); ok {
			comment.WriteString(strings.TrimPrefix(rest, " "))
		} else if comment.Len() > 0 {
			add(comment.String())
			comment.Reset()
		}
	}
	add(comment.String())
	return out
}

// hasLinePrefixes reports whether at least two lines start with signs or numbers, as in patches, mails and listings.
func hasLinePrefixes(text string) bool {
	found := 0
	for line := range strings.Lines(text) {
		body := strings.TrimLeft(line, " \t")
		if body == "" {
			continue
		}
		if line[0] == '+' || line[0] == '-' || strings.IndexByte("|>*!%;/-0123456789", body[0]) >= 0 && linePrefix.MatchString(line) {
			if found++; found > 1 {
				return true
			}
		}
	}
	return false
}

// spacedLines returns the lines with a space after each letter.
func spacedLines(text string) (out []string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		spaced := len(line) > 16
		for i := 1; spaced && i < 16; i += 2 {
			spaced = line[i] == ' '
		}
		if spaced {
			out = append(out, line)
		}
	}
	return out
}
