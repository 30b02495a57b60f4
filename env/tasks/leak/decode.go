package leak

import (
	"encoding/hex"
	"encoding/json"
	"io"
	"mime/quotedprintable"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// maxText is the number of bytes of a text in which encoded parts are searched for.
const maxText = 4 << 20

var percent = regexp.MustCompile(`%[0-9a-fA-F]{2}`)

// decode calls next with the name and the result of each way to decode a text: without escapes and markup
// (plainReadings), and from the encodings that the text seems to use.
func (u *unpacker) decode(text string, next func(string, []byte)) {
	if len(text) > maxText {
		text = text[:maxText]
	}
	u.plainReadings(text, next)
	u.decodeAlphabets(text, next)
	if strings.Count(text, "%") > 3 && len(percent.FindAllStringIndex(text, 5)) > 3 {
		if plain, err := url.QueryUnescape(badPercent.ReplaceAllString(text, "%25$1")); err == nil {
			next("url-encoded", []byte(plain))
		}
	}
	if strings.Contains(text, "=\n") || strings.Contains(text, "=3D") || strings.Contains(text, "=20") {
		plain, _ := io.ReadAll(quotedprintable.NewReader(strings.NewReader(text))) // after an error, use what was decoded before it
		next("quoted-printable", plain)
	}
	numberLists(text, next)
	u.uudecode(text, next)
	hexDump(text, next)
	joinedStrings(text, next)
}

// badPercent matches a percent sign that does not begin an escape. QueryUnescape would refuse it.
var badPercent = regexp.MustCompile(`%([^0-9a-fA-F]|[0-9a-fA-F][^0-9a-fA-F]|.?$)`)

// bracedCode matches the code of a character in JavaScript, Ruby, Rust and Perl, after the backslash.
var bracedCode = regexp.MustCompile(`^[ux]\{([0-9a-fA-F]{1,6})\}`)

// unescaped replaces the escape sequences of string literals by their characters. For a tab or carriage return it
// writes a space, which the search ignores in the same way.
func unescaped(text string) []byte {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			out = append(out, text[i])
			continue
		}
		i++
		if m := bracedCode.FindStringSubmatch(text[i:min(len(text), i+12)]); m != nil {
			c, _ := strconv.ParseUint(m[1], 16, 32) // the pattern allows only hexadecimal digits
			out, i = append(out, string(rune(c))...), i+len(m[0])-1
			continue
		}
		digits, base := 0, 16
		switch c := text[i]; {
		case c == 'n':
			out = append(out, '\n')
			continue
		case c == 't' || c == 'r':
			out = append(out, ' ')
			continue
		case c == 'x':
			digits = 2
		case c == 'u':
			digits = 4
		case c == 'U':
			digits = 8
		case c >= '0' && c <= '7':
			for digits, base = 1, 8; digits < 3 && i+digits < len(text) && text[i+digits] >= '0' && text[i+digits] <= '7'; digits++ {
			}
			i--
		}
		if digits > 0 && i+digits < len(text) {
			if c, err := strconv.ParseUint(text[i+1:i+1+digits], base, 32); err == nil {
				out = append(out, string(rune(c))...)
				i += digits
				continue
			}
		}
		out = append(out, text[i])
	}
	return out
}

// dumpLine matches a line of hexdump -C or xxd: an offset, bytes, and often the same bytes as characters.
var dumpLine = regexp.MustCompile(`(?m)^[ \t]*[0-9a-fA-F]{5,8}:?[ \t]+((?:(?:[0-9a-fA-F]{2}){1,2}[ \t]{1,2}){2,16})`)

func hexDump(text string, next func(string, []byte)) {
	if !dumpLine.MatchString(text[:min(len(text), 1<<16)]) {
		return
	}
	var digits strings.Builder
	for _, m := range dumpLine.FindAllStringSubmatch(text, -1) {
		digits.WriteString(strings.Join(strings.Fields(m[1]), ""))
	}
	if data, err := hex.DecodeString(digits.String()); err == nil {
		next("hex dump", data)
	}
}

// minPieces is the smallest number of strings in a row that are read as one text.
const minPieces = 4

// joinedStrings calls next with the joined contents of successive string literals that only separators divide. A line of
// code that is cut into pieces does not appear in any single literal. Strings in triple quotes are skipped, because they
// may be comments between the pieces.
func joinedStrings(text string, next func(string, []byte)) {
	var joined []byte
	pieces, last := 0, 0 // last is the offset after the last literal
	flush := func() {
		if pieces >= minPieces {
			next("joined strings", joined)
		}
		joined, pieces = joined[:0:0], 0
	}
	for i := 0; i < len(text); i++ {
		if text[i] != '"' && text[i] != '\'' {
			continue
		}
		end, triple := stringEnd(text, i)
		if end < 0 {
			continue
		}
		if strings.Trim(text[last:i], " \t\r\n,+.&\\bru") != "" {
			flush()
		}
		if !triple {
			joined, pieces = append(joined, unescaped(text[i+1:end-1])...), pieces+1
		}
		last, i = end, end-1
	}
	flush()
}

// jsonStrings returns the strings in JSON values, each on its own line.
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

// minCodes is the smallest number of numbers in a row that are read as characters.
const minCodes = 12

// numberLists calls next with lists of numbers, read as character codes.
func numberLists(text string, next func(string, []byte)) {
	var row []string
	flush := func() {
		if len(row) >= minCodes {
			characterCodes(row, next)
		}
		row = row[:0]
	}
	gap, found := 0, 0
	for i := 0; i < len(text) && found < 1<<16; {
		if classes[text[i]] != wordByte {
			i++
			gap++
			continue
		}
		from := i
		for i < len(text) && classes[text[i]] == wordByte {
			i++
		}
		switch w := text[from:i]; {
		case w == "chr" || w == "ord" || w == "x":
		case !isNumeral(w):
			flush()
		default:
			if gap > 12 {
				flush()
			}
			row = append(row, w)
			found++
		}
		gap = 0
	}
	flush()
}

// isNumeral reports whether a word may be a number in some base.
func isNumeral(w string) bool {
	if len(w) > 10 {
		return false
	}
	for i := range len(w) {
		if c := w[i] | 0x20; (c < '0' || c > '9') && (c < 'a' || c > 'f') && c != 'x' && c != 'o' {
			return false
		}
	}
	return w[0] >= '0' && w[0] <= '9' || len(w) == 2
}

// characterCodes reads a list of numbers in each base that fits all of them.
func characterCodes(row []string, next func(string, []byte)) {
	for _, base := range []int{2, 8, 10, 16, 0} {
		plain := make([]byte, 0, len(row))
		for _, n := range row {
			c, err := strconv.ParseUint(n, base, 21)
			switch {
			case err != nil:
				plain = nil
			case c < 256 && plain != nil:
				plain = append(plain, byte(c))
			case plain != nil:
				plain = append(plain, string(rune(c))...)
			}
			if plain == nil {
				break
			}
		}
		if mostlyText(plain) || hasMagic(plain) {
			next("character codes", plain)
		}
	}
}

func (u *unpacker) uudecode(text string, next func(string, []byte)) {
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
