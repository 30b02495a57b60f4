package redact

import "testing"

// Slack has a different token prefix for each kind of client, and for refresh tokens.
func TestSlackTokens(t *testing.T) {
	for _, kind := range []string{"a", "b", "c", "d", "e", "p", "r", "s"} {
		text := "t = xox" + kind + "-1-" + "My0xLTEyMzQ1Njc4OTAxMi1hYmNkZWZHSElKS0w"
		if got := New(nil).Text(text + "\n"); got != "t = [REDACTED:slack_token:1]\n" {
			t.Errorf("%s: %q", text, got)
		}
	}
}
