package redact

// Texts in base64: a file that was printed so, a header of a request.

import (
	"encoding/base64"
	"strings"
)

const (
	minEncoded = 27 // characters of the shortest key, an AWS key
	wrapped    = 60 // a line at least so long may go on in the next
	maxDepth   = 2  // texts in base64 within one in base64
)

var (
	encodedByte = func() (t [256]bool) {
		for c := range 256 {
			t[c] = alnum(byte(c)) || strings.IndexByte("+/-_", byte(c)) >= 0
		}
		return t
	}()
	plainBase64 = strings.NewReplacer("-", "+", "_", "/", "\n", "", "\r", "")
)

// encoded replaces texts in base64 that hold secrets by the placeholders of these.
func (r *Redactor) encoded(s string, depth int) string {
	var out strings.Builder
	at := 0
	for i := 0; i+minEncoded <= len(s); {
		from, to := run(s, i)
		if to == 0 {
			i += minEncoded // none that begins before the next place to look at
			continue
		}
		i = to
		if places := r.within(s[from:to], depth); places != "" {
			for to < len(s) && s[to] == '=' {
				to++
			}
			out.WriteString(s[at:from])
			out.WriteString(places)
			at, i = to, to
		}
	}
	if at == 0 {
		return s
	}
	out.WriteString(s[at:])
	return out.String()
}

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

// within returns the placeholders of the secrets in a text that base64 stands for.
// What stands directly before it, such as a path, may be taken for a part of it.
func (r *Redactor) within(run string, depth int) string {
	if len(run) < minEncoded {
		return ""
	}
	for skip := range 4 {
		if !printable(plainBase64.Replace(run[skip : skip+8])) {
			continue
		}
		text := plainBase64.Replace(run[skip:])
		b, err := base64.RawStdEncoding.DecodeString(text[:len(text)/4*4])
		if rest := text[len(text)/4*4:]; err == nil && len(rest) > 1 {
			var last []byte
			last, err = base64.RawStdEncoding.DecodeString(rest)
			b = append(b, last...)
		}
		if err != nil {
			continue
		}
		written := r.n
		if clean := r.layers(string(b), depth+1); r.n > written {
			return strings.Join(placeholder.FindAllString(clean, -1), " ")
		}
	}
	return ""
}

// printable tells whether eight characters of base64 stand for text.
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
