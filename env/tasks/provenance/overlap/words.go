// Package overlap measures how much two texts have in common, without the texts: a text is
// represented by the hashes of its runs of 13 words and by a MinHash signature of its runs of 5.
// Words are runs of letters, digits and underscores. TextHashesOf ignores case.
package overlap

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// MaxText is the number of bytes of a text that are used.
const MaxText = 1 << 20

// Words returns the words of a text without changing their case.
func Words(text []byte) [][]byte {
	out := make([][]byte, 0, len(text)/6)
	start := -1 // of the current word
	for i := 0; i < len(text); {
		inWord, n := wordByte[text[i]], 1
		if text[i] >= utf8.RuneSelf {
			var r rune
			r, n = utf8.DecodeRune(text[i:])
			inWord = unicode.IsLetter(r) || unicode.IsNumber(r)
		}
		switch {
		case inWord && start < 0:
			start = i
		case !inWord && start >= 0:
			out, start = append(out, text[start:i]), -1
		}
		i += n
	}
	if start >= 0 {
		out = append(out, text[start:])
	}
	return out
}

var wordByte = func() (t [256]bool) {
	for c := range rune(utf8.RuneSelf) {
		t[c] = c == '_' || unicode.IsLetter(c) || unicode.IsNumber(c)
	}
	return t
}()

// Changed returns the text that represents a git patch in TextHashes: the name of each file, and the lines that each
// hunk removes and adds, without the context. It returns "" if the patch cannot be parsed.
func Changed(patch string) string {
	files, _, err := gitdiff.Parse(strings.NewReader(patch))
	if err != nil {
		return ""
	}
	var out strings.Builder
	for _, f := range files {
		for i, hunk := range f.TextFragments {
			if i == 0 {
				out.WriteString(max(f.NewName, f.OldName) + "\n")
			}
			for _, l := range hunk.Lines {
				if l.Op != gitdiff.OpContext {
					out.WriteString(l.Line)
				}
			}
			out.WriteString("\n")
		}
	}
	return out.String()
}
