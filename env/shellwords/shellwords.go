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
	ErrUnclosed = errors.New("a quote or bracket is not closed")
	ErrNoWord   = errors.New("something else than a word stands in it")
	ErrTooLong  = errors.New("it is longer than 64 KiB")
)

// maxLine bounds what is parsed: the parser recurses, and a line of several hundred
// thousand open brackets would overflow the stack.
const maxLine = 64 << 10

// Word is one word of a command line.
type Word struct {
	Raw  string // as it stands in the line
	Text string // without quotes and escapes; expansions stay as they are
	// Fixed reports that Text is what the shell makes of the word: it has no
	// expansions, and no pattern outside quotes.
	Fixed bool
	// Expands reports that the word has an expansion, of a variable or a command.
	Expands bool
}

// Next reads the first word of a line and returns what follows it. The word is
// empty at the end of the line. Anything else than a word is ErrNoWord, a line
// break and a comment too.
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
		word.Parts = word.Parts[:simple(word.Parts)]
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
	if last, ok := word.Parts[len(word.Parts)-1].(*syntax.Lit); ok && end == len(line) && escapes(last.Value) {
		return Word{}, line, ErrUnclosed
	}
	return w, line[end:], nil
}

// simple counts the parts before a process substitution, which is a redirection to
// readers of words, or a pattern such as @(a|b), which a shell does not know by
// default.
func simple(parts []syntax.WordPart) int {
	for i, part := range parts {
		switch part.(type) {
		case *syntax.ProcSubst, *syntax.ExtGlob:
			return i
		}
	}
	return len(parts)
}

// Split reads a line that has nothing but words.
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
			w.lit(part.Value)
		case *syntax.SglQuoted:
			w.Expands = w.Expands || part.Dollar
			w.Text += part.Value
		case *syntax.DblQuoted:
			w.Expands = w.Expands || part.Dollar
			for _, inner := range part.Parts {
				if lit, ok := inner.(*syntax.Lit); ok {
					w.Text += unescaped(lit.Value, "$`\"\\")
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

// lit appends text outside quotes.
func (w *Word) lit(text string) {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
		case strings.IndexByte("*?[~{", c) >= 0:
			w.Fixed = false
		}
	}
	w.Text += unescaped(text, "")
}

// escapes reports whether text ends with a backslash that is not escaped.
func escapes(text string) bool {
	return (len(text)-len(strings.TrimRight(text, `\`)))%2 == 1
}

// unescaped drops the backslashes before the characters that need one; "" = all.
func unescaped(text, need string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && (need == "" || strings.IndexByte(need, text[i+1]) >= 0) {
			i++
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

var plain = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// Command writes a command line that a POSIX shell reads as these words. It quotes
// the words that need it.
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

// Quote makes s one word of a POSIX shell. It always quotes, and always in the same
// way: some of its words are data.
func Quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
