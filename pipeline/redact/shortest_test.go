package redact

import (
	"strings"
	"testing"
)

// The weaker the name, the longer a value must be to count as a secret. Each value has exactly the
// minimum length: without its last character it is not redacted.
func TestShortestSecrets(t *testing.T) {
	for before, value := range map[string]string{
		"DB_PASSWORD=": "x7Qp",
		"API_KEY=":     "x7Qp9Zk2",
		"my_key = ":    "k9Jx2Qp7Zr4Wm8Tv",
	} {
		if got := New(nil).Text(before + `"` + value + `"`); strings.Contains(got, value) {
			t.Errorf("%q was not redacted", got)
		}
		shorter := before + `"` + value[:len(value)-1] + `"`
		if got := New(nil).Text(shorter); got != shorter {
			t.Errorf("%q became %q", shorter, got)
		}
	}
}
