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
