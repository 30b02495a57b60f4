package leak

import (
	"bytes"
	"encoding/ascii85"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// alphabet is an encoding of bytes as characters, such as base64.
type alphabet struct {
	name   string
	minLen int // characters in the shortest run that is decoded
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
	newAlphabet("base32", 24, letters, func(s string) []byte {
		s = strings.ToUpper(s)
		if out := lenient(s, base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString); mostlyText(out) || hasMagic(out) {
			return out
		}
		return lenient(s, base32.HexEncoding.WithPadding(base32.NoPadding).DecodeString)
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

func newAlphabet(name string, minLen int, characters string, decode func(string) []byte) alphabet {
	a := alphabet{name: name, minLen: minLen, decode: decode}
	for i := range len(characters) {
		a.in[characters[i]] = true
	}
	return a
}

// lenient decodes s, without up to seven characters at its end if they make it invalid.
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

// decodeAlphabets decodes long runs of the characters of each alphabet, which may span several lines and strings.
func (u *unpacker) decodeAlphabets(text string, next func(string, []byte)) {
	for i := range alphabets {
		a := &alphabets[i]
		runs(text, a, func(run string, parts []int) {
			for _, from := range parts {
				if data := a.decode(run[from:]); len(data) >= minBytes && (mostlyText(data) || hasMagic(data)) {
					next(a.name, data)
					return
				}
			}
		})
	}
}

// hasMagic reports whether data starts like a compressed stream, a tar archive or a text in UTF-16 or UTF-32, or contains
// a zip archive.
func hasMagic(data []byte) bool {
	for _, p := range compressedFormats {
		if strings.HasPrefix(string(data[:min(len(data), 8)]), p.magic) {
			return true
		}
	}
	_, wide := wideText(data)
	return wide || bytes.Contains(data, []byte("PK\x03\x04")) || len(data) > 262 && string(data[257:262]) == "ustar"
}

// canJoin are the characters that may follow a run that continues after them, such as a line end or a quote.
// separators are all characters that may occur between the two parts.
var canJoin, separators = bytesOf("\r\n\"'`\\"), bytesOf(" \t\r\n\"'`,+\\()#")

func bytesOf(list string) (out [256]bool) {
	for i := range len(list) {
		out[list[i]] = true
	}
	return out
}

// Words may precede an encoded text. So a joined run is also decoded from the start of the first runs that are long.
const (
	maxParts = 4
	minPart  = 16
)

// runs calls each with the runs of an alphabet's characters that are long enough. Runs that only line ends, quotes and
// other separators of string literals divide are joined; parts has the offsets in the result at which an encoded text may start.
func runs(text string, a *alphabet, each func(joined string, parts []int)) {
	var joined strings.Builder
	var parts []int
	flush := func() {
		for len(parts) > 1 && joined.Len()-parts[len(parts)-1] < a.minLen {
			parts = parts[:len(parts)-1]
		}
		if joined.Len() >= a.minLen {
			each(joined.String(), parts)
		}
		joined.Reset()
		parts = parts[:0]
	}
	for i := 0; i < len(text); {
		if !a.in[text[i]] || isStringPrefix(text, i) {
			end, joins := i, canJoin[text[i]]
			for end < len(text) && (!a.in[text[end]] && separators[text[end]] || isStringPrefix(text, end)) {
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
		if len(parts) == 0 || len(parts) < maxParts && end-i >= minPart {
			parts = append(parts, joined.Len())
		}
		joined.WriteString(text[i:end])
		i = end
	}
	flush()
}

// isStringPrefix reports whether the character at i is the prefix of a string literal, as in b"text".
func isStringPrefix(text string, i int) bool {
	return i > 0 && i+1 < len(text) && strings.IndexByte("bBuU", text[i]) >= 0 && (text[i+1] == '"' || text[i+1] == '\'') &&
		strings.IndexByte(" \t\r\n(,+=[", text[i-1]) >= 0
}
