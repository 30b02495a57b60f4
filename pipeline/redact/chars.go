package redact

import "strings"

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f' }

func upperOrDigit(c byte) bool { return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' }

func alnum(c byte) bool { return upperOrDigit(c) || 'a' <= c && c <= 'z' }

// mixed reports whether a value has lower-case and upper-case letters.
func mixed(s string) bool { return strings.ToLower(s) != s && strings.ToUpper(s) != s }

// wordAt reports whether s[i] is a letter, a digit or an underscore.
func wordAt(s string, i int) bool { return i < len(s) && (alnum(s[i]) || s[i] == '_') }

// keyByte marks the characters of which most keys consist.
var keyByte = func() (t [256]bool) {
	for c := range 256 {
		t[c] = alnum(byte(c)) || c == '_' || c == '-'
	}
	return t
}()

// inKey marks the characters that may occur in a secret of any kind.
var inKey = func() (t [256]bool) {
	for c := range 256 {
		t[c] = keyByte[c] || strings.IndexByte("./+=~%|:", byte(c)) >= 0
	}
	return t
}()

// escaped reports whether text ends with an escape sequence, such as a line break in JSON or in a
// URL.
func escaped(text string) bool {
	n := len(text)
	return n > 1 && text[n-2] == '\\' && strings.IndexByte("nrt", text[n-1]) >= 0 || n > 2 && text[n-3] == '%' && isHex(text[n-2]) && isHex(text[n-1])
}

// lower returns a text with its ASCII letters in lower case.
func lower(s string) []byte {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + ('a' - 'A')
		}
	}
	return b
}

func wordSet(words string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(words) {
		out[w] = true
	}
	return out
}
