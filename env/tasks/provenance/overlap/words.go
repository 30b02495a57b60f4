// Package overlap says how much two texts have in common without either being at
// hand: a text is known by the hashes of its runs of 13 words and by a MinHash
// signature of its runs of 5. Words are runs of letters, digits and underscores;
// case makes no difference where texts are compared with those of benchmarks.
package overlap

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
)

// MaxText is how much of a text is looked at, bytes; more is cut off.
const MaxText = 1 << 20

// Words are those of a text, as they are written.
func Words(text []byte) [][]byte {
	out := make([][]byte, 0, len(text)/6)
	start := -1 // of the word that was begun
	for i := 0; i < len(text); {
		within, n := wordByte[text[i]], 1
		if text[i] >= utf8.RuneSelf {
			var r rune
			r, n = utf8.DecodeRune(text[i:])
			within = unicode.IsLetter(r) || unicode.IsNumber(r)
		}
		switch {
		case within && start < 0:
			start = i
		case !within && start >= 0:
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

// Changed is the text that stands for a git patch: for each file its name, and
// for each hunk the lines that it takes out and puts in. What it leaves as it is
// belongs to the repository. It is "" for what is no patch of texts.
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
