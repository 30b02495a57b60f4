package redact

import (
	"math/rand/v2"
	"testing"
)

// Programs assign names, calls and fields to variables called key or token. Such text stays
// unchanged.
func TestCodeIsNotASecret(t *testing.T) {
	for _, s := range []string{
		"encoded_key = base64.b64encode(encryption_key).decode()",
		"token = base64.urlsafe_b64encode(raw)",
		"key = tls13.ExpandLabel(c.hash.New, trafficSecret)",
		"earlySecret = tls13.NewEarlySecret(hs.suite.hash.New, nil)",
		"RegEnumKey = win32api.RegEnumKey",
		"Config{Certificate: der, PrivateKey: testRSA2048PrivateKey}}",
		"{hexKey: hexECTestPKCS1Key, errorContains: `x`},",
		"sorted(rows, key=by_column_2_then_name)",
		"row = get(key=lookup2_by_user_id[0])",
		`_padding_size_key = "_padding_size_key_x123d"`,
		`unnorm_key="libero_10_no_noops",`,
		`{"sort_key": "created_at_utc8_desc"}`,
		"token: iso8859_text_token\n",
		"password=make_password_sha256(request)",
	} {
		if got := New(nil).Text(s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}

// Values made of words are secrets in places where programs seldom have words.
func TestWordsMayBeSecrets(t *testing.T) {
	for _, s := range []string{
		"API_KEY=" + "SuperSecretValue2024", `api_key = "` + `SuperSecretValue2024"`, "password=" + "longpasswordwithmanyletters123",
		`password = "` + `SuperSecretPassw0rd123"`, `"client_secret": "` + `correct-horse-battery-7"`,
	} {
		if New(nil).Text(s) == s {
			t.Errorf("%q was not redacted", s)
		}
	}
}

// Hardly any generated value is mistaken for words.
func TestGeneratedValuesAreNotWords(t *testing.T) {
	for name, c := range map[string]struct {
		alphabet string
		n, max   int // length of a value; how many of 2,000 values may look like words
	}{
		"hex, 32":    {"0123456789abcdef", 32, 0},
		"base36, 24": {"0123456789abcdefghijklmnopqrstuvwxyz", 24, 30},
		"base62, 20": {"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", 20, 60},
		"base62, 32": {"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", 32, 20},
	} {
		r, mistaken := rand.New(rand.NewPCG(1, 2)), 0 // the same values in every run
		for range 2000 {
			b := make([]byte, c.n)
			for i := range b {
				b[i] = c.alphabet[r.IntN(len(c.alphabet))]
			}
			if madeOfWords(string(b)) {
				mistaken++
			}
		}
		if mistaken > c.max {
			t.Errorf("%s: %d of 2000 look like words", name, mistaken)
		}
		t.Logf("%s: %d", name, mistaken)
	}
}

// An unquoted value of words and numbers after the name of a password is a password, unless it
// names an encoding or a version.
func TestPasswordsOfWordsWithoutQuotes(t *testing.T) {
	for text, secret := range map[string]bool{
		"<Client(user=joe, passwd=copper28094_sil)>": true, "INFO user=joe password=falcon.rocket30 ip=10.1.1.1": true,
		"connect(password=sha256.name)": false, "connect(password=python3.name)": false, "connect(password=password12)": false,
	} {
		if got := New(nil).Text(text); (got != text) != secret {
			t.Errorf("%q became %q", text, got)
		}
	}
}
