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
		return nil, "", tools.Mistake("%s does not exist, so it cannot contain old_code. To create it, omit old_code.", p)
	}
	text := unixText(old)
	want := strings.ReplaceAll(strings.TrimPrefix(*a.OldCode, bom), "\r\n", "\n")
	var at []int
	for i := 0; want != ""; {
		n := strings.Index(text.lf[i:], want)
		if n < 0 {
			break
		}
		at = append(at, i+n)
		i += n + len(want)
	}
	every := a.ReplaceAll != nil && *a.ReplaceAll
	switch n := len(at); {
	case n == 0:
		return nil, "", tools.Mistake("old_code does not occur in %s.%s Give the text exactly as it appears in the file, "+
			"without line numbers, or select the lines with start and end.", p, nearMiss(text.lf, want))
	case n > 1 && !every:
		return nil, "", tools.Mistake("old_code occurs %d times in %s (at lines %s). Include more of the surrounding text, "+
			"select the lines with start and end, or set replace_all.", n, p, text.linesOf(at))
	}
	cuts := make([]splice, len(at))
	for i, offset := range at {
		from := text.raw(offset)
		cuts[i] = splice{from, text.raw(offset + len(want)), withEnds(code, endAt(old, from))}
	}
	first := text.line(at[0])
	last := first + strings.Count(strings.TrimSuffix(want, "\n"), "\n")
	if len(at) > 1 {
		return cuts, fmt.Sprintf("Replaced text in %d places in %s (at lines %s).", len(at), p, text.linesOf(at)), nil
	}
	return cuts, fmt.Sprintf("Replaced text in %s of %s.", asLines(first, last), p), nil
}

// endAt returns the line ending of the line at an offset, LF if it has none.
func endAt(s string, offset int) string {
	if n := strings.IndexByte(s[offset:], '\n'); n >= 0 {
		return ending(s[:offset+n+1])
	}
	return "\n"
}

// unix is a text converted to LF line endings. It maps its offsets to those of the original.
type unix struct {
	lf      string
	removed []int // offsets in lf of the newlines that had a CR before them
}

func unixText(s string) unix {
	u := unix{lf: s}
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

// raw converts an offset in lf to one in the original. The offset of a newline that
// had a CR becomes the offset of the CR.
func (u unix) raw(offset int) int {
	n, _ := slices.BinarySearch(u.removed, offset)
	return offset + n
}

// line returns the line number, from 1, of an offset in lf.
func (u unix) line(offset int) int { return 1 + strings.Count(u.lf[:offset], "\n") }

// linesOf lists the line numbers of the first ten offsets, and says how many more there
// are.
func (u unix) linesOf(offsets []int) string {
	var out []string
	for _, offset := range offsets[:min(len(offsets), 10)] {
		out = append(out, fmt.Sprint(u.line(offset)))
	}
	if more := len(offsets) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, ", ")
}

// nearMiss helps if want is not in text. It returns a sentence, with a leading space, that
// says where want occurs with different whitespace, or which line is most similar to the
// longest line of want. It returns "" if no line is similar enough.
func nearMiss(text, want string) string {
	have, need := bareLines(text), bareLines(strings.Trim(want, "\n"))
	if len(need) <= 100 {
		for i := range max(0, len(have)-len(need)+1) {
			if slices.Equal(have[i:i+len(need)], need) {
				return fmt.Sprintf(" The same text with different whitespace begins at line %d.", i+1)
			}
		}
	}
	longest := slices.MaxFunc(need, func(a, b string) int { return len(a) - len(b) })
	best, at, compared := len(longest)/3+1, -1, 0
	for i, line := range have {
		apart := len(line) - len(longest)
		if len(longest) > 200 || compared == 2000 || max(apart, -apart) >= best {
			continue
		}
		compared++
		if d := nearest.Distance(line, longest); d < best {
			best, at = d, i
		}
	}
	if at < 0 {
		return ""
	}
	return fmt.Sprintf(" Line %d is similar: %s.", at+1, have[at])
}

// bareLines returns the lines of a text with single spaces between words and none around
// them.
func bareLines(text string) []string {
	all := strings.Split(text, "\n")
	for i, l := range all {
		all[i] = strings.Join(strings.Fields(l), " ")
	}
	return all
}
