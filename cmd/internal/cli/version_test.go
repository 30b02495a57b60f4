package cli

import (
	"os"
	"strings"
	"testing"
)

// Builds without the Makefile have the same version as the file VERSION.
func TestVersionMatchesTheFile(t *testing.T) {
	raw, err := os.ReadFile("../../../VERSION")
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.TrimSpace(string(raw)); Version != want {
		t.Errorf("cli.Version is %s, but the file VERSION has %s", Version, want)
	}
}
