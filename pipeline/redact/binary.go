package redact

// Binary files in patches: git writes them packed and in base 85 (git's
// Documentation/diff-format and base85.c).

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

// base85Lines is one side of a binary file's change: its lines, each with its length
// before it.
var base85Lines = regexp.MustCompile(`(?m)^((?:literal|delta) [0-9]+\n)((?:[A-Za-z][^\s]{5,65}\n)+)`)

// binaries replaces what patches of binary files hold if there are secrets in it:
// such a patch cannot be applied any more.
func (r *Redactor) binaries(s string) string {
	if !strings.Contains(s, binaryPatch) {
		return s
	}
	return base85Lines.ReplaceAllStringFunc(s, func(part string) string {
		head, lines, _ := strings.Cut(part, "\n")
		written := r.n
		if clean := r.layers(r.unpacked(lines), 0); r.n > written {
			return head + "\n" + strings.Join(placeholder.FindAllString(clean, -1), " ") + "\n"
		}
		return part
	})
}

// unpacked is what lines of a binary patch stand for, as far as they can be read.
func (r *Redactor) unpacked(lines string) string {
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
	out, _ := io.ReadAll(io.LimitReader(z, maxUnpacked)) // what can be read is looked at
	r.work.spend(len(out) / 2)                           // a packed file is the longer text
	return string(out)
}
