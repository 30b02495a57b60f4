package viewer

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// visible returns text with every control character replaced by a visible sign, so that
// terminal escapes, carriage returns and bidirectional overrides can neither hide nor reorder
// what an episode contains. Tabs and line feeds stay.
func visible(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, string(utf8.RuneError)), "\r\n", "\n")
	if strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		switch {
		case !hidden(r):
			out.WriteRune(r)
		case r < 0x20:
			out.WriteRune(0x2400 + r) // the picture of the control character
		case r == 0x7f:
			out.WriteRune(0x2421)
		default:
			fmt.Fprintf(&out, "⟨U+%04X⟩", r)
		}
	}
	return out.String()
}

// hidden reports whether a character is a control or format character. The joiners of emoji and
// of some scripts are format characters that change nothing else.
func hidden(r rune) bool {
	switch {
	case r >= 0x20 && r < 0x7f || r == '\t' || r == '\n' || r == '\u200c' || r == '\u200d':
		return false
	}
	return unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}

// cutAt returns at most n bytes from the start of text, or from its end if n is negative, without
// splitting a character.
func cutAt(text string, n int) string {
	if n < 0 {
		from := max(0, len(text)+n)
		for from < len(text) && !utf8.RuneStart(text[from]) {
			from++
		}
		return text[from:]
	}
	if n >= len(text) {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// shortID returns the part of an id that identifies it to a reader.
func shortID(id string) string { return id[:min(12, len(id))] }

// plural formats a number with its noun, such as "1 file" or "2 files".
func plural[N int | int32 | int64](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return grouped(n) + " " + noun
}

// grouped formats a number with a comma between groups of three digits.
func grouped[N int | int32 | int64](n N) string {
	text := strconv.FormatInt(int64(n), 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// bytesText formats a number of bytes.
func bytesText(n int) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}

// millis formats milliseconds as a reader would say them.
func millis(ms int64) string {
	switch d := time.Duration(ms) * time.Millisecond; {
	case d < time.Second:
		return fmt.Sprintf("%d ms", ms)
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	default:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	}
}
