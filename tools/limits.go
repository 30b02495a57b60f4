package tools

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tracesmith/tracesmith/schemas"
)

// MaxText limits the text of an observation that the model sees, and MaxFullText the longer
// text that dataset rows keep. Both are in bytes.
const (
	MaxText     = 64 << 10
	MaxFullText = 1 << 20
)

// defaultMore tells the model how to see what was cut if the tool does not have a better hint.
const defaultMore = "to see more, write the output to a file with bash and view parts of it"

// Fit cleans the text of an observation with Clean and shortens it to MaxText bytes by
// cutting out the middle. more tells the model, in a clause, how to see the rest; if it
// is empty, Fit uses a general hint. A tool that has already cut its output sets
// FullBytes to the original size.
func Fit(o schemas.Observation, more string) schemas.Observation {
	o.FullBytes = max(o.FullBytes, int64(len(o.Text)))
	o.Text = Clean(o.Text)
	if len(o.Text) <= MaxText {
		return o
	}
	more = cmp.Or(more, defaultMore)
	o.Truncated = true
	o.FullText = cut(o.Text, MaxFullText, o.FullBytes, "")
	o.Text = cut(o.Text, MaxText, o.FullBytes, "; "+more)
	return o
}

// cut returns the head and the tail of text with a line between them that says how many
// of total bytes are missing. The result has at most limit bytes.
func cut(text string, limit int, total int64, more string) string {
	if len(text) <= limit {
		return text
	}
	mark := func(missing int64) string {
		return fmt.Sprintf("\n[... %d of %d bytes cut here%s ...]\n", missing, total, more)
	}
	keep := (limit - len(mark(total))) / 2
	head, tail := headOf(text, keep), tailOf(text, keep)
	missing := max(total, int64(len(text))) - int64(len(head)+len(tail))
	return head + mark(missing) + tail
}

// headOf returns at most the first n bytes of s: whole lines if one ends within the last
// quarter of them, otherwise whole characters.
func headOf(s string, n int) string {
	s = s[:n]
	if i := strings.LastIndexByte(s, '\n'); i > n-n/4 {
		return s[:i]
	}
	for len(s) > 0 {
		if r, size := utf8.DecodeLastRuneInString(s); r != utf8.RuneError || size > 1 {
			break
		}
		s = s[:len(s)-1]
	}
	return s
}

// tailOf is like headOf, but for the last n bytes.
func tailOf(s string, n int) string {
	s = s[len(s)-n:]
	if i := strings.IndexByte(s, '\n'); i >= 0 && i < n/4 {
		return s[i+1:]
	}
	for len(s) > 0 && !utf8.RuneStart(s[0]) {
		s = s[1:]
	}
	return s
}

// Clean returns program output as a terminal would finally show it: without escape
// sequences and control characters other than newline and tab, with U+FFFD for invalid
// UTF-8, and with only the last version of a line that carriage returns overwrote.
//
// schemas.Plain, which applies to all texts of rows, does not change the result. Plain
// itself must keep CRLF and overwritten lines, because it also applies to files and to
// texts of other programs.
func Clean(s string) string {
	if isPlain(s) {
		return s
	}
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n")
	line := 0 // start of the current line in text
	text := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == 0x1b:
			i += escapeLen(s[i:])
			continue
		case c == '\r':
			if next := strings.TrimLeft(s[i:], "\r"); next != "" && next[0] != '\n' {
				text = text[:line]
			}
		case c == '\n':
			text = append(text, c)
			line = len(text)
		case c == '\t' || c >= ' ' && c < utf8.RuneSelf && c != 0x7f:
			text = append(text, c)
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRuneInString(s[i:])
			if r > 0x9f {
				text = append(text, s[i:i+size]...)
			}
			i += size
			continue
		}
		i++
	}
	return string(text)
}

// isPlain reports whether s needs no cleaning.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\n' && c != '\t' || c == 0x7f || c == 0xc2 {
			return false // 0xc2 begins the C1 control codes
		}
	}
	return utf8.ValidString(s)
}

// escapeLen returns the length of the escape sequence at the start of s (ECMA-48: CSI,
// string sequences, and escapes of two or three bytes), at least 1.
func escapeLen(s string) int {
	if len(s) < 2 {
		return len(s)
	}
	switch s[1] {
	case '[': // CSI: parameters, intermediates, one final byte
		for i := 2; i < len(s); i++ {
			if s[i] >= 0x40 && s[i] <= 0x7e {
				return i + 1
			}
			if s[i] < 0x20 || s[i] > 0x7e {
				return i
			}
		}
		return len(s)
	case ']', 'P', 'X', '^', '_': // a string up to BEL or ESC \ on the same line
		for i := 2; i < len(s) && s[i] != '\n'; i++ {
			if s[i] == 0x07 {
				return i + 1
			}
			if s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\' {
				return i + 2
			}
		}
		return 2
	case '(', ')', '*', '+', '#', '%', ' ': // character sets and the like
		if len(s) > 2 && s[2] >= 0x30 && s[2] <= 0x7e {
			return 3
		}
		return 2
	}
	if s[1] >= 0x30 && s[1] <= 0x7e {
		return 2
	}
	return 1
}
