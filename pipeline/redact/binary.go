package redact

// Binary files in patches. Git compresses them with zlib and encodes them in base85 (see
// base85.c and Documentation/diff-format in git's source).

import (
	"bytes"
	"compress/zlib"
	"io"
	"regexp"
	"strings"
)

const (
	binaryPatch = "GIT binary patch\n"
	maxUnpacked = 16 << 20
	base85      = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
)

// base85Lines matches one side of a change to a binary file: a header, then lines of base85
// that each begin with a letter for their length.
var base85Lines = regexp.MustCompile(`(?m)^((?:literal|delta) [0-9]+\n)((?:[A-Za-z][^\s]{5,65}\n)+)`)

// redactBinaries replaces binary data in patches, if it contains secrets, by the placeholders of
// the secrets. Such a patch can no longer be applied.
func (r *Redactor) redactBinaries(s string) string {
	if !strings.Contains(s, binaryPatch) {
		return s
	}
	return base85Lines.ReplaceAllStringFunc(s, func(part string) string {
		head, lines, _ := strings.Cut(part, "\n")
		written := r.n
		if clean := r.redactLayers(r.unpack(lines), 0); r.n > written {
			return head + "\n" + strings.Join(placeholder.FindAllString(clean, -1), " ") + "\n"
		}
		return part
	})
}

// unpack decodes lines of a binary patch. If the data is damaged, it returns the part before the
// damage, or "" if the data is not in zlib format.
func (r *Redactor) unpack(lines string) string {
	var raw []byte
	for line := range strings.Lines(lines) {
		line = strings.TrimSuffix(line, "\n")
		n := int(line[0]-'A') + 1
		if line[0] >= 'a' {
			n = int(line[0]-'a') + 27
		}
		var b []byte
		for digits := line[1:]; len(digits) >= 5; digits = digits[5:] {
			var v uint64
			for i := range 5 {
				v = v*85 + uint64(max(0, strings.IndexByte(base85, digits[i])))
			}
			b = append(b, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
		}
		raw = append(raw, b[:min(n, len(b))]...)
	}
	z, err := zlib.NewReader(bytes.NewReader(raw))
	if err != nil {
		return ""
	}
	out, _ := io.ReadAll(io.LimitReader(z, maxUnpacked)) // an error leaves the part before the damage
	r.work.spend(len(out) / 2)                           // the budget is based on compressed bytes, which can unpack to many more
	return string(out)
}
