package redact

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"
)

// sample is a secret and its surrounding text, in which %s stands for the secret.
type sample struct{ form, secret string }

// generator generates secrets, so that this file contains none. They are the same in every run of
// the tests.
type generator struct{ *rand.Rand }

// rounds is how many secrets are tried in every form.
const rounds = 20

func newGenerator(seed int) generator { return generator{rand.New(rand.NewPCG(uint64(seed), 7))} }

const (
	lowerDigits = "abcdefghijklmnopqrstuvwxyz0123456789"
	upperDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	hexDigits   = "0123456789abcdef"
	base62      = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	base64url   = base62 + "-_"
)

// of returns n random characters of an alphabet, with at least one letter and one digit.
func (d generator) of(alphabet string, n int) string {
	for {
		b := make([]byte, n)
		for i := range b {
			b[i] = alphabet[d.IntN(len(alphabet))]
		}
		if s := string(b); strings.ContainsAny(s, "0123456789") && hasLetter(s) && alnum(s[0]) && alnum(s[n-1]) {
			return s
		}
	}
}

// password returns a password like those that people choose: a word, a sign and a number.
func (d generator) password() string {
	words := []string{"Summer", "orchid", "Tiger", "winter", "Passw0rd", "dragon", "Sunshine", "monkey", "hunter", "Falcon"}
	signs := "!@#$%^*?+"
	w := words[d.IntN(len(words))]
	return fmt.Sprintf("%s%c%d", w, signs[d.IntN(len(signs))], 10+d.IntN(9990))
}

// short returns a short password of letters and digits.
func (d generator) short() string { return d.of(lowerDigits, 7+d.IntN(5)) }

// byContext returns secrets that only their context reveals.
func (d generator) byContext() (out []sample) {
	add := func(secret string, forms ...string) {
		for _, f := range forms {
			out = append(out, sample{f, secret})
		}
	}
	for _, f := range strings.Split(passwordForms, "\n") {
		if f = strings.TrimSpace(f); f != "" {
			f = strings.NewReplacer("⏎", "\n", "⇥", "\t").Replace(f)
			add(d.password(), f)
			add(d.short(), f)
		}
	}
	for _, f := range strings.Split(keyForms, "\n") {
		if f = strings.TrimSpace(f); f != "" {
			f = strings.NewReplacer("⏎", "\n", "⇥", "\t").Replace(f)
			add(d.of(base62, 24+d.IntN(17)), f)
			add(d.of(hexDigits, 32), f)
		}
	}
	return out
}

// byPrefix returns secrets that their own form, mostly a prefix, identifies.
func (d generator) byPrefix() (out []sample) {
	for prefix, rest := range map[string]string{
		"AK" + "IA": d.of(upperDigits, 16), "ghp" + "_": d.of(base62, 36), "github" + "_pat_": d.of(base62, 22) + "_" + d.of(base62, 59), "glpat" + "-": d.of(base64url, 20),
		"sk-ant" + "-api03-": d.of(base64url, 93) + "AA", "sk-" + "proj-": d.of(base62, 48), "AI" + "za": d.of(base64url, 35), "xox" + "b-": "123456789012-1234567890123-" + d.of(base62, 24),
		"hf" + "_": d.of(base62, 34), "npm" + "_": d.of(base62, 36), "pypi-AgEIcHlwaS5vcmc": d.of(base64url, 100), "dop" + "_v1_": d.of(hexDigits, 64), "SG" + ".": d.of(base64url, 22) + "." + d.of(base64url, 43),
		"sk" + "_live_": d.of(base62, 24), "sk" + "_test_": d.of(base62, 24), "hvs" + ".": d.of(base64url, 94), "dckr" + "_pat_": d.of(base64url, 27), "dapi": d.of(hexDigits, 32), "r8" + "_": d.of(base62, 37),
		"shpat" + "_": d.of(hexDigits, 32), "glrt" + "-": d.of(base64url, 20), "AGE-SECRET-" + "KEY-1": d.of("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58), "lin" + "_api_": d.of(base62, 40), "ntn" + "_": "12345678901" + d.of(base62, 35),
		"PMAK" + "-": d.of(hexDigits, 24) + "-" + d.of(hexDigits, 34), "figd" + "_": d.of(base64url, 40), "tskey" + "-auth-": d.of(base62, 17) + "-" + d.of(base62, 32), "pul" + "-": d.of(hexDigits, 40), "rubygems" + "_": d.of(hexDigits, 48),
		"xai" + "-": d.of(base62, 80), "gsk" + "_": d.of(base62, 52), "nvapi" + "-": d.of(base64url, 64), "whsec" + "_": d.of(base62, 32), "sq0atp" + "-": d.of(base64url, 22), "sntryu" + "_": d.of(hexDigits, 64), "pscale" + "_tkn_": d.of(base64url, 43),
		"1234567890:" + "AA": d.of(base64url, 33), "https://hooks.slack.com" + "/services/T00AAAAAA/B00AAAAAA/": d.of(base62, 24), "key" + "-": d.of(hexDigits, 32), "ya29" + ".": d.of(base64url, 60),
	} {
		out = append(out, sample{"found %s in the log", prefix + rest}, sample{"x = f('%s', 1)", prefix + rest})
	}
	jwt := "ey" + "J" + d.of(base64url, 20) + ".ey" + "J" + d.of(base64url, 40) + "." + d.of(base64url, 43)
	basic := base64.StdEncoding.EncodeToString([]byte("admin:" + d.password()))
	pem := "-----BEGIN " + "PRIVATE KEY-----\n" + d.of(base62, 64) + "\n" + d.of(base62, 64) + "\n-----END " + "PRIVATE KEY-----"
	ssh := "-----BEGIN OPENSSH " + "PRIVATE KEY-----\\n" + d.of(base62, 64) + "\\n" + d.of(base62, 64)
	packed := base64.StdEncoding.EncodeToString([]byte("API_KEY=" + d.of(base62, 32)))
	return append(out, sample{"cookie: %s;", jwt}, sample{"Authorization: Basic %s", basic}, sample{"%s\n", pem}, sample{`"%s"`, ssh}, sample{"data: %s", packed})
}

// contains reports whether a redacted text still contains at least two thirds of a secret.
func contains(text, secret string) bool {
	n := max(4, len(secret)*2/3)
	for i := 0; i+n <= len(secret); i++ {
		if strings.Contains(text, secret[i:i+n]) {
			return true
		}
	}
	return false
}

// The share of secrets that are found must reach a minimum, and must be the one that
// docs/secrets.md states.
func TestRecall(t *testing.T) {
	forms, missed, all := map[string]bool{}, 0, 0
	for n := range rounds {
		d := newGenerator(n)
		for _, p := range append(d.byContext(), d.byPrefix()...) {
			all++
			forms[p.form] = true
			text := "# notes\n" + strings.Replace(p.form, "%s", p.secret, 1) + "\n# end\n"
			if got := New(nil).Text(text); contains(got, p.secret) {
				missed++
				t.Logf("missed %q in %q", p.secret, got)
			}
		}
	}
	recall := 100 - 100*float64(missed)/float64(all)
	if all < 120 || len(forms) < 40 || recall < 95 {
		t.Errorf("%d secrets in %d forms, of which %.1f %% are found", all, len(forms), recall)
	}
	checkDocumented(t, fmt.Sprintf("%.1f %% of %d secrets in %d forms", recall, all, len(forms)))
}

// checkDocumented fails the test if docs/secrets.md does not contain a text.
func checkDocumented(t *testing.T, text string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/secrets.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(regexp.MustCompile(`\s+`).ReplaceAll(page, []byte(" "))), text) {
		t.Errorf("docs/secrets.md does not say %q", text)
	}
}

// Texts that only look like secrets stay unchanged.
func TestFalseAlarms(t *testing.T) {
	d, all := newGenerator(0), []string(nil)
	for line := range strings.Lines(lookAlikes) {
		if line = strings.TrimSuffix(line, "\n"); line != "" {
			uuid := d.of(hexDigits, 8) + "-" + d.of(hexDigits, 4) + "-4" + d.of(hexDigits, 3) + "-a" + d.of(hexDigits, 3) + "-" + d.of(hexDigits, 12)
			all = append(all, strings.NewReplacer("UUID", uuid, "SHA1", d.of(hexDigits, 40), "SHA256", d.of(hexDigits, 64), "MD5", d.of(hexDigits, 32), "B64", d.of(base62, 44), "⏎", "\n").Replace(line))
		}
	}
	changed := 0
	for _, text := range all {
		text = "# notes\n" + text + "\n# end\n"
		if got := New(nil).Text(text); got != text {
			changed++
			t.Logf("%q became %q", text, got)
		}
	}
	alarms := 100 * float64(changed) / float64(len(all))
	if len(all) < 120 || alarms > 2 {
		t.Errorf("%d look-alikes, of which %.1f %% are replaced", len(all), alarms)
	}
	checkDocumented(t, fmt.Sprintf("%.1f %% of %d look-alikes", alarms, len(all)))
}
