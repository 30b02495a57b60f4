// Package shellwords splits shell command lines into words and quotes words.
package shellwords

import (
	"errors"
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Errors of Next and Split.
var (
	ErrUnclosed = errors.New("a quote or bracket is not closed") // or the line ends within an escape
	ErrNoWord   = errors.New("it contains shell syntax other than words")
	ErrTooLong  = errors.New("it is longer than 64 KiB")
)

// maxLine limits the bytes that are parsed. The parser is recursive, and a line of several
// hundred thousand open brackets would overflow the stack.
const maxLine = 64 << 10

// Word is one word of a command line.
type Word struct {
	Raw  string // as written in the line
	Text string // without quotes and escapes; expansions are not expanded
	// Fixed is set if a shell would pass Text to a program: the word has no expansion
	// and no pattern outside quotes.
	Fixed bool
	// Expands is set if the word has an expansion, such as $HOME or $(ls), or a quote that
	// begins with $. A word with a pattern, such as *.py, is neither Fixed nor Expands.
	Expands bool
}

// Next returns the first word of a line and the rest of the line. At the end of the
// line, it returns a zero Word. The error is ErrNoWord if the line begins with anything
// other than a word, such as an operator, a line break or a comment.
func Next(line string) (w Word, rest string, err error) {
	for joined := true; joined; {
		line, joined = strings.CutPrefix(strings.TrimLeft(line, " \t"), "\\\n")
	}
	switch {
	case line == "":
		return Word{}, "", nil
	case len(line) > maxLine:
		return Word{}, line, ErrTooLong
	}
	var word *syntax.Word
	for word, err = range syntax.NewParser().WordsSeq(strings.NewReader(line)) {
		break // the first word
	}
	if word != nil {
		word.Parts = word.Parts[:countPlainParts(word.Parts)]
	}
	switch {
	case word != nil && len(word.Parts) > 0 && word.Pos().Offset() == 0:
	case err != nil && syntax.IsIncomplete(err):
		return Word{}, line, ErrUnclosed
	default:
		return Word{}, line, ErrNoWord
	}
	end := int(word.End().Offset())
	w = Word{Raw: line[:end], Fixed: true}
	w.add(line, word.Parts)
	w.Fixed = w.Fixed && !w.Expands
	if last, ok := word.Parts[len(word.Parts)-1].(*syntax.Lit); ok && end == len(line) && endsInEscape(last.Value) {
		return Word{}, line, ErrUnclosed
	}
	return w, line[end:], nil
}

// countPlainParts returns the number of parts before the first process substitution, such
// as <(cmd), or extended pattern, such as @(a|b). Neither belongs to a word in a POSIX
// shell.
func countPlainParts(parts []syntax.WordPart) int {
	for i, part := range parts {
		switch part.(type) {
		case *syntax.ProcSubst, *syntax.ExtGlob:
			return i
		}
	}
	return len(parts)
}

// Split returns the words of a line that consists only of words. On an error, it returns
// the words before the error.
func Split(line string) ([]Word, error) {
	var words []Word
	for {
		w, rest, err := Next(line)
		if err != nil || w.Raw == "" {
			return words, err
		}
		words, line = append(words, w), rest
	}
}

// add appends the text of the parts of a word.
func (w *Word) add(line string, parts []syntax.WordPart) {
	for _, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit:
			w.addLiteral(part.Value)
		case *syntax.SglQuoted:
			w.Expands = w.Expands || part.Dollar
			w.Text += part.Value
		case *syntax.DblQuoted:
			w.Expands = w.Expands || part.Dollar
			for _, inner := range part.Parts {
				if lit, ok := inner.(*syntax.Lit); ok {
					w.Text += unescape(lit.Value, "$`\"\\")
				} else {
					w.add(line, []syntax.WordPart{inner})
				}
			}
		default:
			w.Expands = true
			w.Text += line[part.Pos().Offset():part.End().Offset()]
		}
	}
}

// addLiteral appends text outside quotes.
func (w *Word) addLiteral(text string) {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
		case strings.IndexByte("*?[~{", c) >= 0:
			w.Fixed = false
		}
	}
	w.Text += unescape(text, "")
}

// endsInEscape reports whether text ends with a backslash that is not escaped.
func endsInEscape(text string) bool {
	return (len(text)-len(strings.TrimRight(text, `\`)))%2 == 1
}

// unescape removes backslashes before characters in escapable, or before any character if
// escapable is "".
func unescape(text, escapable string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && (escapable == "" || strings.IndexByte(escapable, text[i+1]) >= 0) {
			i++
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

var plain = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// Command returns a command line that a POSIX shell splits into words. It quotes only the
// words that need it.
func Command(words ...string) string {
	var out []string
	for _, w := range words {
		if !plain.MatchString(w) {
			w = Quote(w)
		}
		out = append(out, w)
	}
	return strings.Join(out, " ")
}

// Quote returns s as one word of a POSIX shell. It always quotes, even if s needs no
// quotes, because stored data contains its results, which must not change.
func Quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
