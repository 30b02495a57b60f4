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

// secretName are names of variables that hold a secret: MY_API_KEY, HF_TOKEN,
// DB_PASSWORD_2, MYSQL_PWD. Other names say the same with less certainty:
// SECRET_OF_THE_SHOP, TOKEN_TYPE.
var (
	secretName = regexp.MustCompile(`(?i)(?:(?:^|_|[a-z])(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|PAT)|(?:^|_)(?:PASS|PWD|AUTH))(?:_?[0-9]+)?$`)
	maybeName  = regexp.MustCompile(`(?i)(?:^|_)(?:SECRETS?|PASSWORD|PASSWD|PASSPHRASE|TOKEN|API_?KEY|CREDENTIALS?)_`)
	inAddress  = regexp.MustCompile(`://[^\s:/@]*:([^\s/@]+)@`)
)

// plainWord are values nobody generated: they stand for themselves in any text.
var plainWord = regexp.MustCompile(`^[a-z]{1,11}$|^[0-9]+$`)

// Environment are the values of the variables (NAME=value) that hold a secret by
// their name, and the passwords in addresses that any variable holds. Paths, plain
// words of less than 12 letters and numbers are no secrets: a password "postgres"
// would tear every text about the database apart. Where the name is no proof, what
// is made of words is none either.
func Environment(environ []string) []string {
	var out []string
	add := func(value string) {
		if value != "" && !strings.HasPrefix(value, "/") && !plainWord.MatchString(value) {
			out = append(out, value)
		}
	}
	for _, v := range environ {
		name, value, _ := strings.Cut(v, "=")
		if value = strings.TrimSpace(value); secretName.MatchString(name) || maybeName.MatchString(name) && !words(value) {
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

// MinKnown is how many bytes a known value must have to be looked for: shorter
// ones would tear ordinary words apart.
const MinKnown = 8

// Known are exact values to look for, in all forms in which they are written. It is
// built once and then shared: it does not change. Finding takes the same time however
// many there are.
type Known struct {
	values []string
	forms  []form
	begins map[uint64][]int32 // forms by their first eight bytes, longest first
	filter [1 << 12]uint64    // a bit for each of their first eight bytes, hashed
}

// form is one way in which a value is written.
type form struct {
	text, kind string
	value      int
}

// NewKnown reads known values; those of less than MinKnown bytes are left out.
func NewKnown(values []string) *Known {
	k := &Known{}
	for _, v := range values {
		k.add(v, "known")
	}
	return k.ready()
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

// ready makes the index.
func (k *Known) ready() *Known {
	slices.SortStableFunc(k.forms, func(a, b form) int { return len(b.text) - len(a.text) })
	k.begins = make(map[uint64][]int32, len(k.forms))
	for i, f := range k.forms {
		head := binary.LittleEndian.Uint64([]byte(f.text[:MinKnown]))
		k.begins[head] = append(k.begins[head], int32(i))
		bit := hashed(head)
		k.filter[bit>>6] |= 1 << (bit & 63)
	}
	return k
}

func hashed(head uint64) uint64 { return head * 0x9e3779b97f4a7c15 >> 46 }

// find returns where known values stand, the longest form at each place.
func (k *Known) find(s string) (out []span) {
	if len(k.forms) == 0 || len(s) < MinKnown {
		return nil
	}
	var head uint64
	for i := range MinKnown - 1 {
		head = head>>8 | uint64(s[i])<<56
	}
	next := 0 // what lies before it is taken
	for i := MinKnown - 1; i < len(s); i++ {
		head = head>>8 | uint64(s[i])<<56
		if bit := hashed(head); k.filter[bit>>6]&(1<<(bit&63)) == 0 || i-MinKnown+1 < next {
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

// lineSecret is how long a line of a value of several lines must be to be
// looked for on its own.
const lineSecret = 16

// forms are the ways in which a value is written: as it is, line by line, in capitals,
// quoted as JSON (once, twice, for HTML) and by Python and shells, escaped for URLs and
// HTML, in hex and in base64, by itself and within a longer text.
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
	if letterDigit(value) {
		out = append(out, strings.ToUpper(value), strings.ToLower(value))
	}
	query := url.QueryEscape(value)
	spaced := strings.ReplaceAll(query, "+", "%20")
	out = append(out, query, spaced, strings.ReplaceAll(spaced, "%2F", "/"), url.PathEscape(value), url.QueryEscape(spaced), lowerPercent.ReplaceAllStringFunc(spaced, strings.ToLower))
	digits := hex.EncodeToString([]byte(value))
	out = append(out, digits, strings.ToUpper(digits), `\x`+strings.Join(pairs(digits), `\x`), strings.Join(pairs(digits), " "))
	out = append(out, strings.TrimRight(base32.StdEncoding.EncodeToString([]byte(value)), "=")[:len(value)*8/5])
	out = append(out, strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(value)), "="))
	for before := range 3 { // bytes of something else in the same group of three
		text := base64.RawStdEncoding.EncodeToString(append(make([]byte, before), value...))
		from, to := []int{0, 2, 3}[before], len(text)
		if (before+len(value))%3 != 0 {
			to-- // the last character has bits of what follows
		}
		out = append(out, text[from:to], urlSafe.Replace(text[from:to]))
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(s string) bool { return len(s) < MinKnown })
}

var lowerPercent = regexp.MustCompile(`%[0-9A-F]{2}`)

// pairs are the two digits of each byte in hex.
func pairs(digits string) (out []string) {
	for i := 0; i < len(digits); i += 2 {
		out = append(out, digits[i:i+2])
	}
	return out
}

var urlSafe = strings.NewReplacer("+", "-", "/", "_")

// quoted is a text within a JSON string.
func quoted(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return s
	}
	return strings.TrimSuffix(b.String(), "\"\n")[1:]
}

// learnable tells whether a value can be looked for where nothing else tells it.
func learnable(v string) bool {
	return len(v) >= MinKnown && (letterDigit(v) || symbols(v) > 0)
}
