package redact

// Texts in base64, such as an encoded file or a header of a request.

import (
	"encoding/base64"
	"strings"
)

// redactBase64 replaces base64 texts that contain secrets by the placeholders of the secrets.
func (r *Redactor) redactBase64(s string, depth int) string {
	var out strings.Builder
	at := 0
	for i := 0; i+minEncoded <= len(s); {
		from, to := base64Run(s, i)
		if to == 0 {
			i += minEncoded // a text of minEncoded characters cannot begin before this
			continue
		}
		i = to
		if places := r.placeholdersIn(s[from:to], depth); places != "" {
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

// placeholdersIn returns the placeholders of the secrets in a base64 text. It tries to skip up to
// three characters, because text directly before it, such as a path, may look like base64.
func (r *Redactor) placeholdersIn(run string, depth int) string {
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
		if clean := r.redactLayers(string(b), depth+1); r.n > written {
			return strings.Join(placeholder.FindAllString(clean, -1), " ")
		}
	}
	return ""
}
