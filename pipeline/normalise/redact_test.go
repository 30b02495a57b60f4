package normalise

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/schemas"
)

var pemLines = []string{
	"MIIEowIBAAKCAQEA75n6sW0uLq0ZrVbX3mGhhfk2HzzMIIEowIBAAKCAQEA75n6s", "q0ZrVbX3mGhhfk2HzzMIIEowIBAAKCAQEA75n6sW0uLq0ZrVbX3mGhhfk2Hzz12", "W0uLq0Zr==",
}

const (
	pemFirst = "-----BEGIN RSA " + "PRIVATE KEY-----"
	pemLast  = "-----END RSA " + "PRIVATE KEY-----"
)

// A key of which only a part is there is no less a key.
func TestPartsOfAPrivateKey(t *testing.T) {
	body := strings.Join(pemLines, "\n")
	for name, text := range map[string]string{
		"whole":        "a\n" + pemFirst + "\n" + body + "\n" + pemLast + "\nz",
		"end cut":      "a\n" + pemFirst + "\n" + body + "\n\n... cut\n",
		"begin cut":    "... cut\n" + body + "\n" + pemLast + "\nz",
		"diff":         "+" + pemFirst + "\n+" + strings.Join(pemLines, "\n+") + "\n+" + pemLast + "\n z",
		"diff, cut":    "+" + pemFirst + "\n+" + strings.Join(pemLines, "\n+"),
		"quoted":       `KEY = "` + pemFirst + `\n` + strings.Join(pemLines, `\n`) + `\n` + pemLast + `\n"`,
		"quoted, cut":  `... cut ` + strings.Join(pemLines, `\n`) + `\n` + pemLast + `\n"`,
		"encrypted":    pemFirst + "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A1B\n\n" + body,
		"body of none": pemFirst + "\n<not a real key>\n" + pemLast + body[:0],
	} {
		got := newRedactor(nil).text(text)
		for _, line := range append(pemLines, "not a real key") {
			if strings.Contains(got, line) {
				t.Errorf("%s: %q stays in %q", name, line, got)
			}
		}
		if !strings.Contains(got, "[REDACTED:private_key:1]") {
			t.Errorf("%s: no placeholder in %q", name, got)
		}
		if strings.HasPrefix(text, "a\n") && !strings.HasPrefix(got, "a\n") || strings.HasSuffix(text, "z") && !strings.HasSuffix(got, "z") {
			t.Errorf("%s: too much went: %q", name, got)
		}
	}
}

// A program that reads keys holds none.
func TestMarkersOfAPrivateKeyAreCode(t *testing.T) {
	for _, s := range []string{
		"_BEGIN = b\"" + pemFirst + "\"\n_END = b\"" + pemLast + "\"\n\ndef load(text):\n    return text\n",
		"if line == '" + pemFirst + "':\n    inside = True\n",
		"END = '" + pemLast + "'\n",
	} {
		if got := newRedactor(nil).text(s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}

// The secret half of an AWS key has no mark: it is looked for where there is a key.
func TestSecretHalfOfAnAWSKey(t *testing.T) {
	half := "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEZ"
	ep := golden()
	ep.Steps[2].Observation.Text = "found " + half // before the key itself is seen
	ep.Steps[3].Observation.Text = planted["aws_key"] + "\n" + half
	s := normalised(t, ep, Config{})
	if got := *s.Steps[2].Observation + *s.Steps[3].Observation; got != "found [REDACTED:aws_secret:1][REDACTED:aws_key:1]\n[REDACTED:aws_secret:1]" {
		t.Errorf("%s", got)
	}
	plainText := "commit 0962d333d9dad15154e97e2149f25742be85f995 of " + half
	if got := newRedactor(nil).text(plainText); got != plainText {
		t.Errorf("without a key there is no half: %s", got)
	}
	if got := newRedactor(nil).text(planted["aws_key"] + " 0962d333d9dad15154e97e2149f25742be85f995"); !strings.HasSuffix(got, "f995") {
		t.Errorf("a commit is no secret: %s", got)
	}
}

// What was assigned to the name of a secret is found without its name too, also
// in what was said before.
func TestLearnedSecrets(t *testing.T) {
	ep := golden()
	value := planted["assigned"]
	ep.Steps[2].Observation.Text = "it says " + value
	ep.Steps[3].Observation.Text = "DB_PASSWORD=" + value
	ep.Patch = []byte(strings.Replace(patch, "a + b", "'"+value+"'", 1))
	body, err := schemas.CanonicalJSON(normalised(t, ep, Config{}))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(body), value) {
		t.Error("a value that is known to be a secret stays where its name is not")
	}
	var counts map[string]int
	if err := json.Unmarshal([]byte(*normalised(t, ep, Config{}).Episode.RedactionsJSON), &counts); err != nil || counts["assigned"] != 3 {
		t.Errorf("counts are of one reading: %v %v", counts, err)
	}
}

// Whatever stands around a secret, it goes; and what was redacted stays as it is.
func FuzzSecrets(f *testing.F) {
	f.Add("x = '", "'\n", uint8(0))
	f.Add("\x1b[31m", "\xff", uint8(5))
	f.Add("-----BEGIN ", "PRIVATE KEY-----", uint8(3))
	kinds := []string{"aws_key", "github_token", "openai_key", "google_key", "slack_token", "private_key"}
	f.Fuzz(func(t *testing.T, before, after string, n uint8) {
		secret := planted[kinds[int(n)%len(kinds)]]
		text := before + "\n" + secret + "\n" + after
		got := newRedactor(nil).text(text)
		if strings.Contains(got, secret) {
			t.Fatalf("%q stays in %q", secret, got)
		}
		if again := newRedactor(nil).text(got); again != got && !strings.Contains(before+after, "REDACTED") {
			t.Fatalf("not stable: %q, then %q", got, again)
		}
	})
}

// Encodings are not looked through: this states what is not promised.
func TestEncodedSecretsAreNotSeen(t *testing.T) {
	text := base64.StdEncoding.EncodeToString([]byte(planted["github_token"]))
	if got := newRedactor(nil).text(text); got != text {
		t.Errorf("%s", got)
	}
}
