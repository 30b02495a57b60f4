package normalise

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
)

// secretRule finds one kind of secret by how it begins. The expression is tried
// where one of the prefixes stands, after a character that is no part of a
// word; its first sub-match, if there is one, is the secret.
type secretRule struct {
	name     string
	prefixes []string
	re       *regexp.Regexp
	dense    bool // only values that look random
}

var secretRules = []secretRule{
	{"private_key", []string{"-----BEGIN "}, regexp.MustCompile(`^-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|\z)`), false},
	{"aws_key", []string{"AKIA", "ASIA", "ABIA", "ACCA"}, regexp.MustCompile(`^[A-Z]{4}[A-Z0-9]{16}\b`), false},
	{"github_token", []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"}, regexp.MustCompile(`^gh._[A-Za-z0-9]{36,255}`), false},
	{"github_token", []string{"github_pat_"}, regexp.MustCompile(`^github_pat_[A-Za-z0-9_]{22,255}`), false},
	{"gitlab_token", []string{"glpat-"}, regexp.MustCompile(`^glpat-[A-Za-z0-9_-]{20,255}`), false},
	{"openai_key", []string{"sk-"}, regexp.MustCompile(`^sk-[A-Za-z0-9_-]{20,255}`), true},
	{"google_key", []string{"AIza"}, regexp.MustCompile(`^AIza[0-9A-Za-z_-]{35}`), false},
	{"slack_token", []string{"xoxa-", "xoxb-", "xoxe-", "xoxp-", "xoxr-", "xoxs-"}, regexp.MustCompile(`^xox.-[A-Za-z0-9-]{10,255}`), false},
	{"slack_token", []string{"hooks.slack.com/services/"}, regexp.MustCompile(`^hooks\.slack\.com/services/[A-Za-z0-9/]{20,255}`), false},
	{"huggingface_token", []string{"hf_"}, regexp.MustCompile(`^hf_[A-Za-z0-9]{30,255}`), false},
	{"stripe_key", []string{"sk_live_", "rk_live_"}, regexp.MustCompile(`^.k_live_[A-Za-z0-9]{16,255}`), false},
	{"jwt", []string{"eyJ"}, regexp.MustCompile(`^eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}`), false},
	{"bearer", []string{"Bearer ", "bearer "}, regexp.MustCompile(`^.earer ([A-Za-z0-9._~+/=-]{20,})`), true},
}

// assigned is what follows the name of a secret: a sign and a long value.
var assigned = regexp.MustCompile(`^[:=]\s{0,8}["']?([A-Za-z0-9+/=_.~-]{16,512})`)

// names tells whether text ends in the name of a secret, as in "MY_API_KEY".
func names(text string) bool {
	text = strings.TrimRight(text, " \t")
	text = strings.TrimRight(text, `"'`)
	for _, end := range [...]string{"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD"} {
		if n := len(text) - len(end); n >= 0 && strings.EqualFold(text[n:], end) {
			return true
		}
	}
	return false
}

// candidates are the pairs of bytes with which something to look at begins:
// everything else is skipped at the speed of a table.
var candidates = func() *[1 << 16]bool {
	var t [1 << 16]bool
	for _, r := range secretRules {
		for _, p := range r.prefixes {
			t[int(p[0])<<8|int(p[1])] = true
		}
	}
	for c := range 256 {
		t['='<<8|c], t[':'<<8|c] = true, true
	}
	return &t
}()

// redactor replaces secrets by [REDACTED:type:n], n counting the different
// values of a type in the order they were met: the same secret is the same
// placeholder all through an episode. One goroutine uses it.
type redactor struct {
	known  []string // exact values, longest first
	names  map[string]string
	counts map[string]int // placeholders written, by type
	kinds  map[string]int // different values, by type
	n      int            // placeholders written since the last take
}

func newRedactor(known []string) *redactor {
	r := &redactor{names: map[string]string{}, counts: map[string]int{}, kinds: map[string]int{}}
	for _, k := range known {
		if len(k) >= 8 { // shorter values would tear ordinary words apart
			r.known = append(r.known, k)
		}
	}
	slices.SortFunc(r.known, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return r
}

func (r *redactor) text(s string) string {
	for _, k := range r.known {
		if n := strings.Count(s, k); n > 0 {
			place := r.place("known", k)
			r.counts["known"] += n - 1
			r.n += n - 1
			s = strings.ReplaceAll(s, k, place)
		}
	}
	var out strings.Builder
	at := 0
	for i := 0; i+1 < len(s); i++ {
		if !candidates[int(s[i])<<8|int(s[i+1])] {
			continue
		}
		kind, from, to := find(s, i)
		if kind == "" {
			continue
		}
		out.WriteString(s[at:from])
		out.WriteString(r.place(kind, s[from:to]))
		at, i = to, to-1
	}
	if at == 0 {
		return s
	}
	out.WriteString(s[at:])
	return out.String()
}

// find looks for a secret that begins at i or is assigned by the sign there.
func find(s string, i int) (kind string, from, to int) {
	if s[i] != '=' && s[i] != ':' {
		return begins(s, i)
	}
	if !names(s[max(0, i-24):i]) {
		return "", 0, 0
	}
	m := assigned.FindStringSubmatchIndex(s[i:])
	if m == nil {
		return "", 0, 0
	}
	from, to = i+m[2], i+m[3]
	if kind, first, last := begins(s, from); kind != "" {
		return kind, first, last
	}
	if !random(s[from:to]) {
		return "", 0, 0
	}
	return "assigned", from, to
}

// begins looks for a secret that a rule knows by its prefix.
func begins(s string, i int) (kind string, from, to int) {
	if i > 0 && s[i] != '-' && wordByte(s[i-1]) {
		return "", 0, 0
	}
	for _, rule := range secretRules {
		if !slices.ContainsFunc(rule.prefixes, func(p string) bool { return strings.HasPrefix(s[i:], p) }) {
			continue
		}
		m := rule.re.FindStringSubmatchIndex(s[i:])
		if m == nil {
			continue
		}
		from, to = i+m[len(m)-2], i+m[len(m)-1]
		if rule.dense && !random(s[from:to]) {
			continue
		}
		return rule.name, from, to
	}
	return "", 0, 0
}

func wordByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

func (r *redactor) place(kind, value string) string {
	r.counts[kind]++
	r.n++
	key := kind + "\x00" + value
	if r.names[key] == "" {
		r.kinds[kind]++
		r.names[key] = fmt.Sprintf("[REDACTED:%s:%d]", kind, r.kinds[kind])
	}
	return r.names[key]
}

// take returns how many placeholders were written since the last call.
func (r *redactor) take() int32 {
	n := r.n
	r.n = 0
	return int32(n)
}

// random tells whether a value looks like a generated key rather than a name
// or a path: letters and digits, at least 3.2 bits per character.
func random(s string) bool {
	var counts [256]int
	letters, digits := false, false
	for i := range len(s) {
		c := s[i]
		counts[c]++
		letters = letters || 'a' <= c|0x20 && c|0x20 <= 'z'
		digits = digits || '0' <= c && c <= '9'
	}
	bits := 0.0
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(s))
			bits -= p * math.Log2(p)
		}
	}
	return letters && digits && bits >= 3.2
}
