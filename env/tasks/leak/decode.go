package leak

import (
	"encoding/ascii85"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"io"
	"mime/quotedprintable"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// maxText bounds a text in which encoded parts are looked for.
const maxText = 4 << 20

var (
	marks   = regexp.MustCompile(`<[^<>]{0,200}>|\x1b\[[0-9;]*m`)
	escapes = regexp.MustCompile(`\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{3}|[nrt"'\\/_*.()\[\]{}=#-])`)
	numbers = regexp.MustCompile(`(?:\b(?:0x[0-9a-fA-F]{1,6}|0b[01]{1,21}|0o[0-7]{1,7}|[01]{7,8}|[0-9]{1,7})\b[\s,;:|)(\]\[+-]*(?:chr|ord|\\|&|#)?\(?){12,}`)
	number  = regexp.MustCompile(`\b(?:0x[0-9a-fA-F]+|0b[01]+|0o[0-7]+|[0-9]+)\b`)
	bytesIn = regexp.MustCompile(`(?:\b(?:0x|\\x)?[0-9a-fA-F]{2}\b[\s,:;-]*){12,}`)
	byteIn  = regexp.MustCompile(`[0-9a-fA-F]{2}\b`)
	spaced  = regexp.MustCompile(`(?m)^(?:[^\s] ){8,}.*$`)
	soft    = regexp.MustCompile(`=[0-9A-F]{2}|=\n`)
	percent = regexp.MustCompile(`%[0-9a-fA-F]{2}`)
	inserts = regexp.MustCompile(`\[-[^\n]*?-\]|\{\+|\+\}`)
	changed = regexp.MustCompile(`(?m)^[+-]`)
	guttery = regexp.MustCompile(`(?m)^[ \t]*(?:[|>*!%;]+|//+|--+|/\*+|\d+[:|.)]?(?:[ \t]|$))[ \t]?`)
)

// encoded looks into a text for what is encoded in it, and gives the text in other readings.
func (u *unpacker) encoded(text string, next func(string, []byte)) {
	if len(text) > maxText {
		text = text[:maxText]
	}
	u.readings(text, next)
	u.alphabets(text, next)
	if n := len(percent.FindAllStringIndex(text, 5)); n > 3 {
		if plain, err := url.QueryUnescape(badPercent.ReplaceAllString(text, "%25$1")); err == nil {
			next("url-encoded", []byte(plain))
		}
	}
	if n := len(soft.FindAllStringIndex(text, 5)); n > 3 {
		plain, _ := io.ReadAll(quotedprintable.NewReader(strings.NewReader(text))) // what was read before an error counts
		next("quoted-printable", plain)
	}
	for _, list := range numbers.FindAllString(text, 50) {
		u.codes(list, next)
	}
	for _, list := range bytesIn.FindAllString(text, 50) {
		if plain, err := hex.DecodeString(strings.Join(byteIn.FindAllString(list, -1), "")); err == nil {
			next("hex", plain)
		}
	}
	u.uuencoded(text, next)
}

var badPercent = regexp.MustCompile(`%([^0-9a-fA-F]|[0-9a-fA-F][^0-9a-fA-F]|.?$)`)

// readings gives the text without what belongs to the way in which it is stored.
func (u *unpacker) readings(text string, next func(string, []byte)) {
	if len(escapes.FindAllStringIndex(text, 2)) > 1 {
		next("escaped", []byte(escapes.ReplaceAllStringFunc(text, unescaped)))
	}
	if strings.Contains(text, "&") || strings.Contains(text, "</") || strings.Contains(text, "\x1b[") {
		if plain := html.UnescapeString(marks.ReplaceAllString(text, "")); plain != text {
			next("markup", []byte(plain))
		}
	}
	if trimmed := strings.TrimSpace(text); trimmed != "" && (trimmed[0] == '{' || trimmed[0] == '[') {
		next("JSON", jsonStrings(trimmed))
	}
	if len(changed.FindAllStringIndex(text, 2)) > 1 || len(guttery.FindAllStringIndex(text, 2)) > 1 {
		lines := strings.Split(text, "\n")
		for _, side := range []string{"-", "+"} {
			var out strings.Builder
			for _, line := range lines {
				if strings.HasPrefix(line, side) {
					continue
				}
				line = strings.TrimLeft(line, "+-")
				out.WriteString(line[len(guttery.FindString(line)):] + "\n")
			}
			next("lines with signs", []byte(out.String()))
		}
	}
	if strings.Contains(text, "{+") {
		next("words with signs", []byte(inserts.ReplaceAllString(text, "")))
	}
	if plain := norm.NFKC.String(text); len(plain) != len(text) {
		next("other forms of letters", []byte(plain))
	}
	if lines := spaced.FindAllString(text, 1000); len(lines) > 0 {
		var out strings.Builder
		for _, line := range lines {
			for _, w := range strings.Split(line, "  ") {
				out.WriteString(strings.ReplaceAll(w, " ", "") + " ")
			}
			out.WriteByte('\n')
		}
		next("spaced letters", []byte(out.String()))
	}
}

func unescaped(e string) string {
	switch e[1] {
	case 'n':
		return "\n"
	case 't', 'r':
		return " "
	case 'x', 'u', 'U':
		if c, err := strconv.ParseUint(e[2:], 16, 32); err == nil {
			return string(rune(c))
		}
	case '0', '1', '2', '3', '4', '5', '6', '7':
		if c, err := strconv.ParseUint(e[1:], 8, 32); err == nil {
			return string(rune(c))
		}
	}
	return e[1:]
}

// jsonStrings returns the strings of JSON values.
func jsonStrings(text string) []byte {
	var out strings.Builder
	for d := json.NewDecoder(strings.NewReader(text)); ; {
		tok, err := d.Token()
		if err != nil {
			return []byte(out.String())
		}
		if s, ok := tok.(string); ok {
			out.WriteString(s)
			if !strings.HasSuffix(s, "\n") {
				out.WriteByte('\n')
			}
		}
	}
}

// codes reads a list of numbers as characters.
func (u *unpacker) codes(list string, next func(string, []byte)) {
	var plain []byte
	binary := len(regexp.MustCompile(`\b[01]{7,8}\b`).FindAllString(list, 12)) == 12
	for _, n := range number.FindAllString(list, maxText) {
		base := 0
		if binary {
			base = 2
		} else if n = strings.TrimLeft(n, "0"); n == "" || n[0] == 'x' || n[0] == 'b' || n[0] == 'o' {
			n = "0" + n
		}
		c, err := strconv.ParseUint(n, base, 21)
		if err != nil {
			return
		}
		plain = append(plain, string(rune(c))...)
		if c > 126 {
			plain = append(plain[:len(plain)-len(string(rune(c)))], byte(c))
		}
	}
	next("character codes", plain)
}

func (u *unpacker) uuencoded(text string, next func(string, []byte)) {
	at := strings.Index(text, "begin ")
	if at < 0 || !strings.Contains(text[at:], "\nend") {
		return
	}
	var out []byte
	for line := range strings.Lines(text[at:]) {
		line = strings.TrimRight(line, "\r\n")
		if line == "end" {
			break
		}
		if line == "" || strings.HasPrefix(line, "begin ") {
			continue
		}
		n := int(line[0]-' ') & 63
		var row []byte
		for i := 1; i+3 < len(line); i += 4 {
			var v [4]byte
			for k := range v {
				v[k] = (line[i+k] - ' ') & 63
			}
			row = append(row, v[0]<<2|v[1]>>4, v[1]<<4|v[2]>>2, v[2]<<6|v[3])
		}
		out = append(out, row[:min(n, len(row))]...)
	}
	next("uuencode", out)
}

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
			end, joins := i, strings.IndexByte("\r\n\"'`\\", text[i]) >= 0
			for end < len(text) && (!a.in[text[end]] && strings.IndexByte(" \t\r\n\"'`,+\\()#", text[end]) >= 0 || prefix(text, end)) {
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
