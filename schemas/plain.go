package schemas

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// escapes matches terminal escape sequences (ECMA-48): CSI, OSC and other strings
// up to their end, and two-character escapes.
var escapes = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|$)|[ -/]*[0-~])`)

// ValidUTF8 replaces every byte that is not valid UTF-8 with U+FFFD and returns the number of such bytes.
func ValidUTF8(s string) (string, int) {
	if utf8.ValidString(s) {
		return s, 0
	}
	var out strings.Builder
	invalid := 0
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			invalid++
		}
		out.WriteRune(r)
		i += n
	}
	return out.String(), invalid
}

// Plain returns a text as models see it and rows contain it: valid UTF-8 without
// escape sequences and without C0 and C1 control characters other than newline and
// tab. A carriage return before a newline stays, because files contain such line ends.
// Any other carriage return becomes a newline, because programs use it in progress bars.
func Plain(s string) string {
	s, _ = ValidUTF8(s)
	if !mayHaveControl(s) {
		return s
	}
	s = escapes.ReplaceAllString(s, "")
	var out strings.Builder
	out.Grow(len(s))
	for i, r := range s {
		switch {
		case r == '\r' && i+1 < len(s) && s[i+1] != '\n', r == '\r' && i+1 == len(s):
			out.WriteByte('\n')
		case r == '\r' || !isControl(r):
			out.WriteRune(r)
		}
	}
	return out.String()
}

// mayHaveControl reports whether s may contain a control character. For speed, it examines
// bytes, eight at a time while all are printable ASCII. It also returns true for every
// character whose first byte is that of a C1 character.
func mayHaveControl(s string) bool {
	i := 0
	for ; i+8 <= len(s); i += 8 {
		w := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
			uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
		if (w|(w-ones*0x20)|(w+ones))&(ones*0x80) == 0 {
			continue
		}
		for j := i; j < i+8; j++ {
			if suspectBytes[s[j]] {
				return true
			}
		}
	}
	for ; i < len(s); i++ {
		if suspectBytes[s[i]] {
			return true
		}
	}
	return false
}

const ones = 0x0101010101010101

// suspectBytes contains the bytes that may belong to a control character.
var suspectBytes = func() (t [256]bool) {
	for c := range 0x20 {
		t[c] = c != '\n' && c != '\t'
	}
	t[0x7f], t[0xc2] = true, true
	return t
}()

func isControl(r rune) bool {
	return r < 0x20 && r != '\n' && r != '\t' || 0x7f <= r && r < 0xa0
}
