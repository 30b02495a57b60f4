package leak

import (
	"encoding/ascii85"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// alphabet is a way to write bytes in characters.
type alphabet struct {
	name   string
	min    int // characters
	in     [256]bool
	decode func(string) []byte
}

var alphabets = []alphabet{
	newAlphabet("hex", 20, "0123456789abcdefABCDEF", func(s string) []byte {
		out, err := hex.DecodeString(s[:len(s)/2*2])
		if err != nil {
			return nil
		}
		return out
	}),
	newAlphabet("base32", 24, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", func(s string) []byte {
		return lenient(s, base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString)
	}),
	newAlphabet("base64", 16, letters+"+/-_", func(s string) []byte {
		return lenient(strings.NewReplacer("-", "+", "_", "/").Replace(s), base64.RawStdEncoding.DecodeString)
	}),
	newAlphabet("base85", 20, letters+"!#$%&()*+-;<=>?@^_`{|}~", func(s string) []byte { return base85(s, alphabet85) }),
	newAlphabet("z85", 20, letters+".-:+=^!/*?&<>()[]{}@%$#", func(s string) []byte { return base85(s, alphabetZ85) }),
	newAlphabet("ascii85", 20, ascii85Letters, func(s string) []byte {
		s = strings.TrimSuffix(strings.TrimPrefix(s, "<~"), "~>")
		out := make([]byte, len(s)*4+8)
		n, _, err := ascii85.Decode(out, []byte(s), true)
		if err != nil {
			return nil
		}
		return out[:n]
	}),
}

const (
	letters     = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	alphabet85  = letters + "!#$%&()*+-;<=>?@^_`{|}~"
	alphabetZ85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
)

var ascii85Letters = func() string {
	out := []byte("z~")
	for c := byte('!'); c <= 'u'; c++ {
		out = append(out, c)
	}
	return string(out)
}()

func newAlphabet(name string, least int, characters string, decode func(string) []byte) alphabet {
	a := alphabet{name: name, min: least, decode: decode}
	for i := range len(characters) {
		a.in[characters[i]] = true
	}
	return a
}

// lenient decodes as many characters as make whole bytes.
func lenient(s string, decode func(string) ([]byte, error)) []byte {
	for cut := range min(len(s), 8) {
		if out, err := decode(s[:len(s)-cut]); err == nil {
			return out
		}
	}
	return nil
}

func base85(s, alphabet string) []byte {
	pad := (5 - len(s)%5) % 5
	s += strings.Repeat(alphabet[84:], pad)
	out := make([]byte, 0, len(s))
	for i := 0; i+5 <= len(s); i += 5 {
		var v uint64
		for k := range 5 {
			v = v*85 + uint64(max(strings.IndexByte(alphabet, s[i+k]), 0))
		}
		if v > 1<<32-1 {
			return nil
		}
		out = append(out, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
	}
	return out[:len(out)-min(pad, len(out))]
}

// alphabets decodes long runs of the characters of an alphabet, also over several lines and strings.
func (u *unpacker) alphabets(text string, next func(string, []byte)) {
	for i := range alphabets {
		a := &alphabets[i]
		runs(text, a, func(run string) {
			if data := a.decode(run); len(data) >= smallest && (mostlyText(data) || begins(data)) {
				next(a.name, data)
			}
		})
	}
}

// begins reports whether data may be a compressed stream, an archive or a text of wide characters.
func begins(data []byte) bool {
	for _, p := range packed {
		if strings.HasPrefix(string(data[:min(len(data), 8)]), p.magic) {
			return true
		}
	}
	_, wide := wideText(data)
	return wide || strings.HasPrefix(string(data), "PK\x03\x04") || len(data) > 262 && string(data[257:262]) == "ustar"
}

// joiner has what may end one run and begin the next, between what may stand between them.
var joiner, between = bytesOf("\r\n\"'`\\"), bytesOf(" \t\r\n\"'`,+\\()#")

func bytesOf(list string) (out [256]bool) {
	for i := range len(list) {
		out[list[i]] = true
	}
	return out
}

// runs calls each with the runs that are long enough. Runs with nothing but line ends, quotes and
// what stands between strings between them are one.
func runs(text string, a *alphabet, each func(string)) {
	var joined strings.Builder
	flush := func() {
		if joined.Len() >= a.min {
			each(joined.String())
		}
		joined.Reset()
	}
	for i := 0; i < len(text); {
		if !a.in[text[i]] || prefix(text, i) {
			end, joins := i, joiner[text[i]]
			for end < len(text) && (!a.in[text[end]] && between[text[end]] || prefix(text, end)) {
				end++
			}
			if !joins || end-i > 60 {
				flush()
				end = max(end, i+1)
			}
			i = end
			continue
		}
		end := i
		for end < len(text) && a.in[text[end]] {
			end++
		}
		joined.WriteString(text[i:end])
		i = end
	}
	flush()
}

// prefix reports whether a string's prefix is at i, as in b"text".
func prefix(text string, i int) bool {
	return i > 0 && i+1 < len(text) && strings.IndexByte("bBuU", text[i]) >= 0 && (text[i+1] == '"' || text[i+1] == '\'') &&
		strings.IndexByte(" \t\r\n(,+=[", text[i-1]) >= 0
}
