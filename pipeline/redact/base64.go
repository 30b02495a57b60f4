package redact

import (
	"encoding/base64"
	"strings"
)

const (
	minEncoded = 27 // characters of the shortest key, an AWS key, in base64
	wrapped    = 60 // a line of at least this length may continue in the next one
)

var encodedByte = func() (t [256]bool) {
	for c := range 256 {
		t[c] = alnum(byte(c)) || strings.IndexByte("+/-_", byte(c)) >= 0
	}
	return t
}()

var plainBase64 = strings.NewReplacer("-", "+", "_", "/", "\n", "", "\r", "")

// run is the run of base64 that byte i+minEncoded-1 belongs to, without what lies
// before i, with the lines in which it goes on; to is 0 where there is none.
func run(s string, i int) (from, to int) {
	if !encodedByte[s[i+minEncoded-1]] {
		return 0, 0
	}
	from = i + minEncoded - 1
	for from > i && encodedByte[s[from-1]] {
		from--
	}
	for line := from; ; {
		to = max(line, i+minEncoded-1)
		for to < len(s) && encodedByte[s[to]] {
			to++
		}
		next := to
		for next < len(s) && (s[next] == '\r' || s[next] == '\n') && next-to < 2 {
			next++
		}
		if to-line < wrapped || next == to || next == len(s) || !encodedByte[s[next]] {
			return from, to
		}
		line = next
	}
}

// printable reports whether eight characters of base64 stand for text.
func printable(text string) bool {
	b, err := base64.RawStdEncoding.DecodeString(text)
	for _, c := range b {
		if (c < ' ' || c > '~') && c != '\n' && c != '\t' && c != '\r' {
			return false
		}
	}
	return err == nil
}

// decoded is what a value in base64 stands for; "" if that is no text.
func decoded(value string) string {
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(plainBase64.Replace(value), "="))
	for _, c := range b {
		if c < ' ' || c == 0x7f {
			return ""
		}
	}
	if err != nil {
		return ""
	}
	return string(b)
}
