package redact

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// secretName matches names of variables that hold a secret: MY_API_KEY, HF_TOKEN,
// DB_PASSWORD_2, MYSQL_PWD. maybeName matches names that may: SECRET_OF_THE_SHOP,
// TOKEN_TYPE. inAddress matches the password in a URL.
var (
	secretName = regexp.MustCompile(`(?i)(?:(?:^|_|[a-z])(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|PAT)|(?:^|_)(?:PASS|PWD|AUTH))(?:_?[0-9]+)?$`)
	maybeName  = regexp.MustCompile(`(?i)(?:^|_)(?:SECRETS?|PASSWORD|PASSWD|PASSPHRASE|TOKEN|API_?KEY|CREDENTIALS?)_`)
	inAddress  = regexp.MustCompile(`://[^\s:/@]*:([^\s/@]+)@`)
)

// plainWord matches short words and numbers, which occur in any text.
var plainWord = regexp.MustCompile(`^[a-z]{1,11}$|^[0-9]+$`)

// Environment returns the values of variables (NAME=value) whose names say that they
// are secret, and the passwords in URLs in all variables. It skips paths, numbers, and
// words of less than 12 letters, because replacing a password "postgres" would damage
// every text about the database. If the name of a variable is not certain to be that of
// a secret, Environment also skips values made of words.
func Environment(environ []string) []string {
	var out []string
	add := func(value string) {
		if value != "" && !strings.HasPrefix(value, "/") && !plainWord.MatchString(value) {
			out = append(out, value)
		}
	}
	for _, v := range environ {
		name, value, _ := strings.Cut(v, "=")
		if value = strings.TrimSpace(value); secretName.MatchString(name) || maybeName.MatchString(name) && !madeOfWords(value) {
			add(value)
		}
		for _, m := range inAddress.FindAllStringSubmatch(value, -1) {
			add(m[1])
			if plain, err := url.PathUnescape(m[1]); err == nil {
				add(plain)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// MinKnown is the minimum length of known values, in bytes. Shorter ones occur within
// ordinary words.
const MinKnown = 8

// Known is an index of exact values in all forms in which they may be written. It is
// immutable and safe for concurrent use. The time of a search does not depend on the
// number of values.
type Known struct {
	values []string
	forms  []form
	begins map[uint64][]int32 // forms by their first MinKnown bytes, longest first
	filter [1 << 12]uint64    // bit set of the hashes of these bytes
}

// form is one way in which a value is written.
type form struct {
	text, kind string
	value      int
}

// NewKnown returns an index of values. It ignores values shorter than MinKnown.
func NewKnown(values []string) *Known {
	k := &Known{}
	for _, v := range values {
		k.add(v, "known")
	}
	return k.build()
}

func (k *Known) add(value, kind string) {
	if len(value) < MinKnown {
		return
	}
	k.values = append(k.values, value)
	for _, text := range forms(value) {
		k.forms = append(k.forms, form{text, kind, len(k.values) - 1})
	}
}

func (k *Known) build() *Known {
	slices.SortStableFunc(k.forms, func(a, b form) int { return len(b.text) - len(a.text) })
	k.begins = make(map[uint64][]int32, len(k.forms))
	for i, f := range k.forms {
		head := binary.LittleEndian.Uint64([]byte(f.text[:MinKnown]))
		k.begins[head] = append(k.begins[head], int32(i))
		bit := hashHead(head)
		k.filter[bit>>6] |= 1 << (bit & 63)
	}
	return k
}

func hashHead(head uint64) uint64 { return head * 0x9e3779b97f4a7c15 >> 46 }

// find returns the positions of known values, with the longest form at each.
func (k *Known) find(s string) (out []span) {
	if len(k.forms) == 0 || len(s) < MinKnown {
		return nil
	}
	var head uint64
	for i := range MinKnown - 1 {
		head = head>>8 | uint64(s[i])<<56
	}
	next := 0 // end of the last match
	for i := MinKnown - 1; i < len(s); i++ {
		head = head>>8 | uint64(s[i])<<56
		if bit := hashHead(head); k.filter[bit>>6]&(1<<(bit&63)) == 0 || i-MinKnown+1 < next {
			continue
		}
		for _, n := range k.begins[head] {
			f := &k.forms[n]
			if from := i - MinKnown + 1; strings.HasPrefix(s[from:], f.text) {
				out = append(out, span{from: from, to: from + len(f.text), kind: f.kind, value: f.value})
				next = from + len(f.text)
				break
			}
		}
	}
	return out
}

// lineSecret is the minimum length for a line of a multi-line value to be searched for by itself.
const lineSecret = 16

// forms returns the ways in which a value may be written: unchanged, line by line, in
// upper and lower case, quoted for JSON (once, twice, for HTML), Python and shells,
// escaped for URLs and HTML, in hex, and in base64, alone or within a longer text.
func forms(value string) []string {
	out := []string{value, quoted(value), quoted(quoted(value)), strings.ReplaceAll(value, `\`, `\\`), strings.ReplaceAll(value, `'`, `'\''`), html.EscapeString(value)}
	if safe, err := json.Marshal(value); err == nil {
		out = append(out, string(safe[1:len(safe)-1]), quoted(string(safe[1:len(safe)-1])))
	}
	out = append(out, strings.ReplaceAll(value, `'`, `\'`), strings.ReplaceAll(value, `$`, `$$`))
	if strings.Contains(value, "\n") {
		for line := range strings.Lines(value) {
			if line = strings.TrimSpace(line); len(line) >= lineSecret && !strings.HasPrefix(line, "-----") {
				out = append(out, line)
			}
		}
	}
	if hasLetterAndDigit(value) {
		out = append(out, strings.ToUpper(value), strings.ToLower(value))
	}
	query := url.QueryEscape(value)
	spaced := strings.ReplaceAll(query, "+", "%20")
	out = append(out, query, spaced, strings.ReplaceAll(spaced, "%2F", "/"), url.PathEscape(value), url.QueryEscape(spaced), lowerPercent.ReplaceAllStringFunc(spaced, strings.ToLower))
	digits := hex.EncodeToString([]byte(value))
	out = append(out, digits, strings.ToUpper(digits), `\x`+strings.Join(pairs(digits), `\x`), strings.Join(pairs(digits), " "))
	out = append(out, strings.TrimRight(base32.StdEncoding.EncodeToString([]byte(value)), "=")[:len(value)*8/5])
	out = append(out, strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(value)), "="))
	for before := range 3 { // number of other bytes before the value in a group of three
		text := base64.RawStdEncoding.EncodeToString(append(make([]byte, before), value...))
		from, to := []int{0, 2, 3}[before], len(text)
		if (before+len(value))%3 != 0 {
			to-- // the last character contains bits of the next byte
		}
		out = append(out, text[from:to], urlSafe.Replace(text[from:to]))
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(s string) bool { return len(s) < MinKnown })
}

var lowerPercent = regexp.MustCompile(`%[0-9A-F]{2}`)

// pairs splits hex digits into bytes.
func pairs(digits string) (out []string) {
	for i := 0; i < len(digits); i += 2 {
		out = append(out, digits[i:i+2])
	}
	return out
}

var urlSafe = strings.NewReplacer("+", "-", "/", "_")

// quoted returns a text as the content of a JSON string.
func quoted(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return s
	}
	return strings.TrimSuffix(b.String(), "\"\n")[1:]
}

// learnable reports whether a value is specific enough to search for without its name.
func learnable(v string) bool {
	return len(v) >= MinKnown && (hasLetterAndDigit(v) || symbols(v) > 0)
}
