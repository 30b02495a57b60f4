package redact

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"html"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// planted holds a secret for each kind that a rule finds. They are split, so that secret scanners
// do not report this file.
var planted = map[string]string{
	"aws_key":            "AKIA" + "IOSFODNN7EXAMPLE",
	"github_token":       "ghp_" + strings.Repeat("a1B2", 9),
	"gitlab_token":       "glpat-" + "x1Y2z3A4b5C6d7E8f9G0",
	"anthropic_key":      "sk-ant-" + "api03-Zx9QwErTy12UiOpAs34DfGhJk56",
	"openai_key":         "sk-proj-" + "Zx9QwErTy12UiOpAs34DfGhJk56",
	"google_key":         "AIza" + "SyA1234567890abcdefghijklmnopqrstuv",
	"slack_token":        "xoxb-" + "123456789012-abcdefGHIJKL",
	"huggingface_token":  "hf_" + strings.Repeat("aB3d", 9),
	"npm_token":          "npm_" + strings.Repeat("aB3d", 9),
	"pypi_token":         "pypi-" + "AgEIcHlwaS5vcmc" + strings.Repeat("aB3d", 12),
	"xai_key":            "xai-" + strings.Repeat("aB3d", 12),
	"groq_key":           "gsk_" + strings.Repeat("aB3d", 12),
	"sandbox_key":        "dtn_" + strings.Repeat("aB3d", 10),
	"digitalocean_token": "dop_v1_" + strings.Repeat("0a1b", 16),
	"sendgrid_key":       "SG." + strings.Repeat("aB", 11) + "." + strings.Repeat("c", 43),
	"stripe_key":         "sk_live_" + strings.Repeat("aB3d", 5),
	"jwt":                "eyJ" + "hbGciOiJIUzI1NiJ9.eyJ" + "zdWIiOiIxMjM0In0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r",
	"private_key":        "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEow\nIBAAK\n-----END RSA PRIVATE KEY-----",
}

// inContext holds secrets that only their context reveals.
var inContext = map[string]struct{ text, secret string }{
	"assigned":     {"DB_PASSWORD=" + "q7Zk1xVb93LmPw82TyRs", "q7Zk1xVb93LmPw82TyRs"},
	"bearer":       {"Authorization: Bearer " + "q7Zk1xVb93LmPw82TyRs", "q7Zk1xVb93LmPw82TyRs"},
	"url_password": {"postgres://app:" + "q7Zk1xVb93LmPw@db.local/", "q7Zk1xVb93LmPw"},
}

func TestEveryRuleFindsItsKind(t *testing.T) {
	for kind, secret := range planted {
		got := New(nil).Text("x = '" + secret + "'\n")
		if got != "x = '[REDACTED:"+kind+":1]'\n" {
			t.Errorf("%s: %q", kind, got)
		}
	}
	for kind, c := range inContext {
		got := New(nil).Text("a " + c.text + " z")
		if strings.Contains(got, c.secret) || !strings.Contains(got, "[REDACTED:"+kind+":1]") {
			t.Errorf("%s: %q", kind, got)
		}
	}
}

func TestSameSecretSamePlaceholder(t *testing.T) {
	r := New(NewKnown([]string{"hunter2-hunter2"}))
	a, b := planted["aws_key"], "AKIA"+"IOSFODNN7EXAMPLF"
	if got := r.Text(a + " " + b + " " + a + " hunter2-hunter2"); got != "[REDACTED:aws_key:1] [REDACTED:aws_key:2] [REDACTED:aws_key:1] [REDACTED:known:1]" {
		t.Error(got)
	}
	if got := r.Text(b); got != "[REDACTED:aws_key:2]" {
		t.Error(got)
	}
	if c := r.Counts(); c["aws_key"] != 4 || c["known"] != 1 {
		t.Errorf("counts %v", c)
	}
}

// A value that is recognized by its name once is also redacted everywhere else in the text.
func TestRepeatedSecretsAreRedacted(t *testing.T) {
	for _, text := range []string{
		"assert 'Bramble!7302' == 'other'\n +  where 'Bramble!7302' = <Config>.password\n",
		"$ echo Bramble!7302 | sudo -S ls\nBramble!7302: command not found\n",
	} {
		if got := New(nil).Text(text); strings.Contains(got, "Bramble") || strings.Count(got, "[REDACTED:assigned:1]") != 2 {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func jsonOf(s string) string {
	b, _ := json.Marshal(s)
	return strings.Trim(string(b), `"`)
}

func TestKnownValuesInOtherForms(t *testing.T) {
	value := `p@ss "w/rd\-0123456789`
	quotedTwice := quoted(quoted(value))
	for _, text := range []string{
		value, url.QueryEscape(value), url.PathEscape(value), strings.ReplaceAll(url.QueryEscape(value), "+", "%20"), quoted(value), quotedTwice,
		`p@ss "w/rd\\-0123456789`, base64.StdEncoding.EncodeToString([]byte(value)), base64.URLEncoding.EncodeToString([]byte(value)),
	} {
		if got := New(NewKnown([]string{value})).Text("x " + text + " y"); !strings.HasPrefix(got, "x [REDACTED:known:1]") {
			t.Errorf("%q: %q", text, got)
		}
	}
	for _, value := range []string{"counter-9", "p4ss&<w>o'rd", "ZürichÄ-77"} {
		for name, text := range map[string]string{
			"unchanged": value, "hex": hex.EncodeToString([]byte(value)), "upper hex": strings.ToUpper(hex.EncodeToString([]byte(value))), "HTML": html.EscapeString(value),
			"JSON for HTML": jsonOf(value), "base32": base32.StdEncoding.EncodeToString([]byte(value)), "base64": base64.StdEncoding.EncodeToString([]byte("u:" + value)),
			"URL": url.QueryEscape(value), "URL twice": url.QueryEscape(url.QueryEscape(value)), "capitals": strings.ToUpper(value),
		} {
			if got := New(NewKnown([]string{value})).Text("x " + text + " y"); !strings.Contains(got, "[REDACTED:known:1]") {
				t.Errorf("%s of %q: %q", name, value, got)
			}
		}
	}
	for _, before := range []string{"", "u", "me", "you"} {
		for _, after := range []string{"", "a", "bc"} {
			text := base64.StdEncoding.EncodeToString([]byte(before + value + after))
			got := New(NewKnown([]string{value})).Text(text)
			if b, err := base64.StdEncoding.DecodeString(got); err == nil && strings.Contains(string(b), value) || !strings.Contains(got, "[REDACTED:known:1]") {
				t.Errorf("%q between %q and %q: %q", text, before, after, got)
			}
		}
	}
	lines := New(NewKnown([]string{"first line of it, long\nsecond line of it, long"}))
	if got := lines.Text("+second line of it, long"); got != "+[REDACTED:known:1]" {
		t.Error(got)
	}
}

// CheckAfter skips only texts that the redactor left unchanged, not texts that it changed or never
// saw.
func TestCheckAfterSearchesUnknownTexts(t *testing.T) {
	secret := planted["github_token"]
	plain, long := strings.Repeat("nothing to see here, ", 20), strings.Repeat("x ", 200)+secret
	r := New(nil)
	texts := []string{r.Text(plain), r.Text(long)}
	if err := NewChecker(nil).CheckAfter(r, "episode 1", texts); err != nil {
		t.Error(err)
	}
	for _, unknown := range []string{long, plain + secret, secret} {
		if err := NewChecker(nil).CheckAfter(r, "episode 1", append(texts, unknown)); err == nil {
			t.Errorf("%.20q... was not searched", unknown)
		}
	}
}

func TestCheckNamesThePlace(t *testing.T) {
	type row struct {
		ID    string   `col:"id,required"`
		Text  *string  `col:"observation"`
		Files []string `json:"files"`
		Raw   []byte
		inner string
	}
	secret := planted["github_token"]
	c := NewChecker(NewKnown([]string{"hunter2-hunter2"}))
	for place, v := range map[string]any{
		"observation": row{Text: &secret}, "files[1]": row{Files: []string{"a", secret}}, "Raw": row{Raw: []byte("x " + secret)},
		"[1].id": []row{{}, {ID: secret}}, "[0].files[0]": []any{row{Files: []string{"hunter2-hunter2"}}},
	} {
		err := c.Check("episode 7", v)
		var f *Found
		if !errors.As(err, &f) || f.Place != place || f.Object != "episode 7" || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", place, err)
		}
	}
	clean := row{ID: "x", Text: new("[REDACTED:github_token:1]"), inner: secret}
	if err := c.Check("episode 7", []any{clean, nil, map[string]int{"a": 1}}); err != nil {
		t.Error(err)
	}
}

var pemLines = []string{
	"MIIEowIBAAKCAQEA75n6sW0uLq0ZrVbX3mGhhfk2HzzMIIEowIBAAKCAQEA75n6s", "q0ZrVbX3mGhhfk2HzzMIIEowIBAAKCAQEA75n6sW0uLq0ZrVbX3mGhhfk2Hzz12", "W0uLq0Zr==",
}

const (
	pemFirst = "-----BEGIN RSA " + "PRIVATE KEY-----"
	pemLast  = "-----END RSA " + "PRIVATE KEY-----"
)

// A part of a private key is still a secret.
func TestPartsOfAPrivateKey(t *testing.T) {
	body := strings.Join(pemLines, "\n")
	for name, text := range map[string]string{
		"complete":    "a\n" + pemFirst + "\n" + body + "\n" + pemLast + "\nz",
		"end cut":     "a\n" + pemFirst + "\n" + body + "\n\n... cut\n",
		"begin cut":   "... cut\n" + body + "\n" + pemLast + "\nz",
		"diff":        "+" + pemFirst + "\n+" + strings.Join(pemLines, "\n+") + "\n+" + pemLast + "\n z",
		"diff, cut":   "+" + pemFirst + "\n+" + strings.Join(pemLines, "\n+"),
		"quoted":      `KEY = "` + pemFirst + `\n` + strings.Join(pemLines, `\n`) + `\n` + pemLast + `\n"`,
		"quoted, cut": `... cut ` + strings.Join(pemLines, `\n`) + `\n` + pemLast + `\n"`,
		"encrypted":   pemFirst + "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A1B\n\n" + body,
		"no real key": pemFirst + "\n<not a real key>\n" + pemLast + body[:0],
	} {
		got := New(nil).Text(text)
		for _, line := range append(pemLines, "not a real key") {
			if strings.Contains(got, line) {
				t.Errorf("%s: %q is still in %q", name, line, got)
			}
		}
		if !strings.Contains(got, "[REDACTED:private_key:1]") {
			t.Errorf("%s: no placeholder in %q", name, got)
		}
		if strings.HasPrefix(text, "a\n") && !strings.HasPrefix(got, "a\n") || strings.HasSuffix(text, "z") && !strings.HasSuffix(got, "z") {
			t.Errorf("%s: too much was redacted: %q", name, got)
		}
	}
}

// A program that reads private keys contains their markers, but no key.
func TestMarkersOfAPrivateKeyAreNotAKey(t *testing.T) {
	for _, s := range []string{
		"_BEGIN = b\"" + pemFirst + "\"\n_END = b\"" + pemLast + "\"\n\ndef load(text):\n    return text\n",
		"if line == '" + pemFirst + "':\n    inside = True\n",
		"END = '" + pemLast + "'\n",
	} {
		if got := New(nil).Text(s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}

// An AWS secret access key has no prefix, so it is searched for only if the text contains an access
// key ID.
func TestAWSSecretAccessKey(t *testing.T) {
	secretKey := "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEZ"
	plainText := "commit 0962d333d9dad15154e97e2149f25742be85f995 of " + secretKey
	if got := New(nil).Text(plainText); got != plainText {
		t.Errorf("a possible secret access key was redacted without an access key ID: %s", got)
	}
	if got := New(nil).Text(planted["aws_key"] + " 0962d333d9dad15154e97e2149f25742be85f995"); !strings.HasSuffix(got, "f995") {
		t.Errorf("a commit hash was redacted: %s", got)
	}
}

// FuzzSecrets checks that a secret is redacted in any surrounding text, before or after another
// one, and that redacting again changes nothing.
func FuzzSecrets(f *testing.F) {
	f.Add("x = '", "", "'\n", uint8(0), uint8(1))
	f.Add("\x1b[31m", "_", "\xff", uint8(5), uint8(9))
	f.Add("-----BEGIN ", "-", "PRIVATE KEY-----", uint8(3), uint8(3))
	f.Add("GIT binary patch\nliteral 9\nzabcde", "Aabcde", "\n\ndelta 3\nAabcde\n", uint8(1), uint8(2))
	kinds := slices.Sorted(maps.Keys(planted))
	f.Fuzz(func(t *testing.T, before, between, after string, n, m uint8) {
		first, second := planted[kinds[int(n)%len(kinds)]], planted[kinds[int(m)%len(kinds)]]
		for _, text := range []string{first + second, first + "\n" + between + "\n" + second} {
			text = before + "\n" + text + "\n" + after
			got := New(nil).Text(text)
			for _, secret := range []string{first, second} {
				if strings.Contains(got, secret) {
					t.Fatalf("%q is still in %q", secret, got)
				}
			}
			if again := New(nil).Text(got); again != got && !strings.Contains(text, "REDACTED") {
				t.Fatalf("redacting again changed %q to %q", got, again)
			}
		}
	})
}

// Secrets in base64 are found, in single values and in a file that is wrapped into lines.
func TestSecretsInBase64(t *testing.T) {
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(planted)) {
		secret := planted[kind]
		all = append(all, secret)
		for _, text := range []string{secret, "user:" + secret, "(" + secret + "\n", "key = " + secret + " # \x00\xff"} {
			for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding} {
				whole := enc.EncodeToString([]byte(text))
				r := New(nil)
				got := r.Text("data: " + whole + " z")
				if got != "data: [REDACTED:"+kind+":1] z" || r.Counts()[kind] != 1 {
					t.Errorf("%s: %q became %q", kind, whole, got)
				}
			}
		}
	}
	body := base64.StdEncoding.EncodeToString([]byte(strings.Join(all, "\n")))
	var lines strings.Builder
	for part := range slices.Chunk([]byte(body), 76) {
		lines.WriteString(string(part) + "\n")
	}
	r := New(nil)
	got := r.Text("$ base64 keys\n" + lines.String() + "$ ")
	if n := strings.Count(got, "[REDACTED:"); n < len(all)-1 || !strings.HasPrefix(got, "$ base64 keys\n[REDACTED:") || !strings.HasSuffix(got, "]\n$ ") {
		t.Errorf("%d of %d placeholders: %q", n, len(all), got)
	}
}

// Hashes, paths and other texts that look like base64 stay unchanged.
func TestBase64WithoutSecrets(t *testing.T) {
	for _, s := range []string{
		"integrity sha512-" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x01\xfe7", 21))),
		"/usr/lib/python3/dist-packages/setuptools/_distutils/command/bdist_rpm",
		"data:text/plain;base64," + base64.StdEncoding.EncodeToString([]byte("the quick brown fox jumps over the lazy dog, twice")),
		strings.Repeat("-", 400) + strings.Repeat("_", 400),
	} {
		if got := New(nil).Text(s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}

// Characters directly before a key are not part of it: an escaped line break in JSON, an encoded
// space in a URL, letters that fill a long line.
func TestSecretsAfterLetters(t *testing.T) {
	for kind, secret := range planted {
		for _, before := range []string{`a\n`, `b\t`, "x%20", "x%0A", "yyyyyyyyyyyy"} {
			if strings.HasPrefix(before, "yy") && len(secret) < keySize && (kind == "openai_key" || kind == "anthropic_key") {
				continue // may be the end of a word: task-..., disk-...
			}
			text := before + secret + " z"
			if got := New(nil).Text(text); got != before+"[REDACTED:"+kind+":1] z" {
				t.Errorf("%q became %q", text, got)
			}
		}
	}
	for _, s := range []string{"task-20220101-the-first-run-of-all-tasks-2", "disk-4f3c2b1a0987654321abcdef0123456789abcdef01", "GATTACAKIAGATTACAGATTACAGAT"} {
		if got := New(nil).Text(s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}

// A private key in a URL, complete and truncated.
func TestPrivateKeyInAURL(t *testing.T) {
	body := strings.Join(pemLines, "\n")
	for _, text := range []string{pemFirst + "\n" + body + "\n" + pemLast, pemFirst + "\n" + body, body + "\n" + pemLast} {
		for _, s := range []string{url.QueryEscape(text), url.PathEscape(text)} {
			got := New(nil).Text("key=" + s)
			for _, line := range pemLines {
				if strings.Contains(got, line) || strings.Contains(got, url.QueryEscape(line)) {
					t.Errorf("%q is still in %q", line, got)
				}
			}
		}
	}
}

// Nothing marks the end of a key. If two keys adjoin, the first must not include the second, and
// both are counted as their own kind.
func TestSecretsSideBySide(t *testing.T) {
	both := func(a, b string) map[string]int {
		want := map[string]int{a: 1}
		want[b]++
		return want
	}
	for a, first := range planted {
		for b, second := range planted {
			for _, between := range []string{"", " ", "\n", "|", ",", "'", "/", ".", "=", ":", "-", "_"} {
				text := "x " + first + between + second + " y"
				r := New(nil)
				got := r.Text(text)
				if want := both(a, b); !maps.Equal(r.Counts(), want) || strings.Contains(got, first) || strings.Contains(got, second) {
					t.Errorf("%s, %q, %s: %v, want %v: %q", a, between, b, r.Counts(), want, got)
				}
				if err := NewChecker(nil).Check("it", got); err != nil {
					t.Errorf("%s, %q, %s: %v: %q", a, between, b, err, got)
				}
			}
		}
	}
}

// A secret that only its context reveals is redacted even if it adjoins a key. Both may be counted
// as one, because nothing marks the end of a key.
func TestSecretsInContextSideBySide(t *testing.T) {
	for kind, c := range inContext {
		for other, key := range planted {
			texts := []string{c.text + key, key + c.text, c.text + " " + key, key + " " + c.text}
			if other == awsKey && upperOrDigit(c.text[0]) { // within a longer word of capitals, it is not an AWS key
				texts = slices.Delete(texts, 1, 2)
			}
			for _, text := range texts {
				r := New(nil)
				got := r.Text("x " + text + " y")
				if strings.Contains(got, c.secret) || strings.Contains(got, key) || r.Counts()[kind]+r.Counts()[other] == 0 {
					t.Errorf("%s and %s: %v: %q", kind, other, r.Counts(), got)
				}
				if err := NewChecker(nil).Check("it", got); err != nil {
					t.Errorf("%s and %s: %v: %q", kind, other, err, got)
				}
			}
		}
	}
}
