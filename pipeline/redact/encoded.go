package redact

// Texts in base64, such as an encoded file or a header of a request.

import (
	"encoding/base64"
	"strings"
)

// encoded replaces texts in base64 that contain secrets by the secrets' placeholders.
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

// within returns the placeholders of the secrets in a text in base64. It skips up to
// three characters, because text directly before it, such as a path, looks like base64.
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
