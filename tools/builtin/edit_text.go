package builtin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tracesmith/tracesmith/configs/nearest"
	"github.com/tracesmith/tracesmith/tools"
)

// replaceText plans the replacement of the only occurrence of old_code, or of every
// occurrence if replace_all is set. LF and CRLF match each other. It returns the splices
// and a sentence that describes them.
func replaceText(p place, old, code string, a editArgs) ([]splice, string, error) {
	if !p.Exists {
		return nil, "", tools.NewUserError("%s does not exist, so it cannot contain old_code. To create it, omit old_code.", p)
	}
	text := newLFText(old)
	want := strings.ReplaceAll(strings.TrimPrefix(*a.OldCode, bom), "\r\n", "\n")
	var offsets []int // of the occurrences
	for i := 0; want != ""; {
		n := strings.Index(text.lf[i:], want)
		if n < 0 {
			break
		}
		offsets = append(offsets, i+n)
		i += n + len(want)
	}
	every := a.ReplaceAll != nil && *a.ReplaceAll
	switch n := len(offsets); {
	case n == 0:
		return nil, "", tools.NewUserError("old_code does not occur in %s.%s Give the text exactly as it appears in the file, "+
			"without line numbers, or select the lines with start and end.", p, nearMiss(text.lf, want))
	case n > 1 && !every:
		return nil, "", tools.NewUserError("old_code occurs %d times in %s (at lines %s). Include more of the surrounding text, "+
			"select the lines with start and end, or set replace_all.", n, p, text.lineNumbers(offsets))
	}
	splices := make([]splice, len(offsets))
	for i, offset := range offsets {
		from := text.originalOffset(offset)
		splices[i] = splice{from, text.originalOffset(offset + len(want)), withEnds(code, endAt(old, from))}
	}
	first := text.lineNumber(offsets[0])
	last := first + strings.Count(strings.TrimSuffix(want, "\n"), "\n")
	if len(offsets) > 1 {
		return splices, fmt.Sprintf("Replaced text in %d places in %s (at lines %s).", len(offsets), p, text.lineNumbers(offsets)), nil
	}
	return splices, fmt.Sprintf("Replaced text in %s of %s.", describeLines(first, last), p), nil
}

// endAt returns the line ending of the line at an offset, or LF for a line without one.
func endAt(s string, offset int) string {
	if n := strings.IndexByte(s[offset:], '\n'); n >= 0 {
		return ending(s[:offset+n+1])
	}
	return "\n"
}

// lfText is a text converted to LF line endings. It converts offsets in lf to offsets in the
// original text.
type lfText struct {
	lf      string
	removed []int // sorted offsets in lf of the newlines that had a CR before them
}

func newLFText(s string) lfText {
	u := lfText{lf: s}
	if !strings.Contains(s, "\r\n") {
		return u
	}
	for i := 0; ; {
		n := strings.Index(s[i:], "\r\n")
		if n < 0 {
			break
		}
		u.removed = append(u.removed, i+n-len(u.removed))
		i += n + 2
	}
	u.lf = strings.ReplaceAll(s, "\r\n", "\n")
	return u
}

// originalOffset converts an offset in lf to one in the original. The offset of a newline that
// had a CR becomes the offset of the CR.
func (u lfText) originalOffset(offset int) int {
	n, _ := slices.BinarySearch(u.removed, offset)
	return offset + n
}

func (u lfText) lineNumber(offset int) int { return 1 + strings.Count(u.lf[:offset], "\n") }

// lineNumbers lists the line numbers of the first ten offsets, and says how many more there
// are.
func (u lfText) lineNumbers(offsets []int) string {
	var out []string
	for _, offset := range offsets[:min(len(offsets), 10)] {
		out = append(out, fmt.Sprint(u.lineNumber(offset)))
	}
	if more := len(offsets) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, ", ")
}

// nearMiss returns a hint for a want that does not occur in text. It is a sentence, with a
// leading space, that says where want occurs with different whitespace, or which line is most
// similar to the longest line of want. It is "" if no line is similar enough.
func nearMiss(text, want string) string {
	textLines, wantLines := normalizedLines(text), normalizedLines(strings.Trim(want, "\n"))
	if len(wantLines) <= 100 {
		for i := range max(0, len(textLines)-len(wantLines)+1) {
			if slices.Equal(textLines[i:i+len(wantLines)], wantLines) {
				return fmt.Sprintf(" The same text with different whitespace begins at line %d.", i+1)
			}
		}
	}
	longest := slices.MaxFunc(wantLines, func(a, b string) int { return len(a) - len(b) })
	best, bestLine, compared := len(longest)/3+1, -1, 0
	for i, line := range textLines {
		difference := len(line) - len(longest)
		if len(longest) > 200 || compared == 2000 || max(difference, -difference) >= best {
			continue
		}
		compared++
		if d := nearest.Distance(line, longest); d < best {
			best, bestLine = d, i
		}
	}
	if bestLine < 0 {
		return ""
	}
	return fmt.Sprintf(" Line %d is similar: %s.", bestLine+1, textLines[bestLine])
}

// normalizedLines returns the lines of a text with single spaces between words, and without
// leading and trailing white space.
func normalizedLines(text string) []string {
	all := strings.Split(text, "\n")
	for i, l := range all {
		all[i] = strings.Join(strings.Fields(l), " ")
	}
	return all
}
