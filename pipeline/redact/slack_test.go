package redact

import "testing"

// Slack has a kind of token for each kind of caller, including browsers and refresh tokens.
func TestSlackTokens(t *testing.T) {
	for _, kind := range []string{"a", "b", "c", "d", "e", "p", "r", "s"} {
		text := "t = xox" + kind + "-1-" + "My0xLTEyMzQ1Njc4OTAxMi1hYmNkZWZHSElKS0w"
		if got := New(nil).Text(text + "\n"); got != "t = [REDACTED:slack_token:1]\n" {
			t.Errorf("%s: %q", text, got)
		}
	}
}
