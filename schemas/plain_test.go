package schemas_test

import (
	"testing"

	"github.com/tracesmith/tracesmith/schemas"
)

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"":                                      "",
		"text\twith\nlines, é and €":            "text\twith\nlines, é and €",
		"\x1b[31mred\x1b[0m \x1b]0;title\x07on": "red on",
		"10%\r20%\rdone\r\nnext\r":              "10%\n20%\ndone\r\nnext\n",
		"bell\x07 del\x7f c1\u0085.":            "bell del c1.",
		"\xff\xfe":                              "\ufffd\ufffd",
		"\x1b]0;never ended":                    "",
	} {
		if got := schemas.Plain(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

// Control characters are found at each position of an eight-byte word and after the
// last whole word.
func TestControlCharactersAreFoundAnywhere(t *testing.T) {
	const plain = "a plain text, of 25 bytes"
	for at := range len(plain) {
		for c := range rune(0xa0) {
			text := plain[:at] + string(c) + plain[at:]
			want := text
			switch {
			case c == '\r':
				want = plain[:at] + "\n" + plain[at:]
			case c < 0x20 && c != '\n' && c != '\t' || c >= 0x7f:
				want = plain
			}
			if got := schemas.Plain(text); got != want && c != 0x1b { // an escape removes the text after it as well
				t.Errorf("%#x at %d: %q", c, at, got)
			}
		}
	}
}
