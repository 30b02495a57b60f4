package normalise

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
)

// secretRule finds one kind of secret. The first sub-match, if there is one,
// is the secret; hints are literals one of which must be in the text, so that
// most text is never searched.
type secretRule struct {
	name  string
	hints []string
	re    *regexp.Regexp
	dense bool // only values that look random
}

var secretRules = []secretRule{
	{"private_key", []string{"PRIVATE KEY"}, regexp.MustCompile(`-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|\z)`), false},
	{"aws_key", []string{"AKIA", "ASIA", "ABIA", "ACCA"}, regexp.MustCompile(`\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b`), false},
	{"aws_secret", []string{"secret", "SECRET", "Secret"}, regexp.MustCompile(`(?i)aws_?secret(?:_?access)?_?key["']?\s*[:=]\s*["']?([A-Za-z0-9/+=]{40})`), false},
	{"github_token", []string{"gh", "github_pat_"}, regexp.MustCompile(`\b(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255})`), false},
	{"gitlab_token", []string{"glpat-"}, regexp.MustCompile(`\bglpat-[A-Za-z0-9_-]{20,}`), false},
	{"openai_key", []string{"sk-"}, regexp.MustCompile(`\bsk-[A-Za-z0-9_-]{20,}`), true},
	{"google_key", []string{"AIza"}, regexp.MustCompile(`\bAIza[0-9A-Za-z_-]{35}`), false},
	{"slack_token", []string{"xox", "hooks.slack.com"}, regexp.MustCompile(`\bxox[abeprs]-[A-Za-z0-9-]{10,}|hooks\.slack\.com/services/[A-Za-z0-9/]{20,}`), false},
	{"huggingface_token", []string{"hf_"}, regexp.MustCompile(`\bhf_[A-Za-z0-9]{30,}`), false},
	{"stripe_key", []string{"k_live_"}, regexp.MustCompile(`\b[sr]k_live_[A-Za-z0-9]{16,}`), false},
	{"jwt", []string{"eyJ"}, regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}`), false},
	{"bearer", []string{"earer "}, regexp.MustCompile(`\b[Bb]earer ([A-Za-z0-9._~+/=-]{20,})`), true},
	{
		"assigned", []string{"KEY", "TOKEN", "SECRET", "PASSW", "key", "token", "secret", "passw"},
		regexp.MustCompile(`(?i)\b[A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD)["']?\s*[:=]\s*["']?([A-Za-z0-9+/=_.~-]{16,})`), true,
	},
}

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
	for _, rule := range secretRules {
		if !slices.ContainsFunc(rule.hints, func(h string) bool { return strings.Contains(s, h) }) {
			continue
		}
		s = r.apply(rule, s)
	}
	return s
}

func (r *redactor) apply(rule secretRule, s string) string {
	matches := rule.re.FindAllStringSubmatchIndex(s, -1)
	if matches == nil {
		return s
	}
	var out strings.Builder
	at := 0
	for _, m := range matches {
		from, to := m[0], m[1]
		if len(m) > 2 {
			from, to = m[2], m[3]
		}
		value := s[from:to]
		if rule.dense && !random(value) {
			continue
		}
		out.WriteString(s[at:from])
		out.WriteString(r.place(rule.name, value))
		at = to
	}
	out.WriteString(s[at:])
	return out.String()
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
