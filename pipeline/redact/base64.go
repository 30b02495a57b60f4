package redact

import (
	"encoding/base64"
	"strings"
)

const (
	minEncoded = 27 // characters of the shortest key, an AWS key, in base64
	wrapped    = 60 // minimum length of a line that may continue in the next one
)

// encodedByte marks the characters of the standard and the URL-safe alphabet of base64.
var encodedByte = func() (t [256]bool) {
	for c := range 256 {
		t[c] = alnum(byte(c)) || strings.IndexByte("+/-_", byte(c)) >= 0
	}
	return t
}()

// plainBase64 turns base64 in the URL-safe alphabet or in several lines into standard base64.
var plainBase64 = strings.NewReplacer("-", "+", "_", "/", "\n", "", "\r", "")

// base64Run returns the bounds of the base64 text around s[i+minEncoded-1], including further
// lines that continue it, but nothing before s[i]. to is 0 if there is none.
func base64Run(s string, i int) (from, to int) {
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

// printable reports whether unpadded standard base64 decodes to printable ASCII text.
func printable(text string) bool {
	b, err := base64.RawStdEncoding.DecodeString(text)
	for _, c := range b {
		if (c < ' ' || c > '~') && c != '\n' && c != '\t' && c != '\r' {
			return false
		}
	}
	return err == nil
}

// decodeText decodes a value in base64. It returns "" if the value is not valid base64, or if the
// result contains control characters.
func decodeText(value string) string {
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
