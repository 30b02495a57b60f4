package cli

import (
	"os"
	"strings"
	"testing"
)

// Builds without the Makefile have the release in the file VERSION.
func TestVersionIsThatOfTheFile(t *testing.T) {
	raw, err := os.ReadFile("../../../VERSION")
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.TrimSpace(string(raw)); Version != want {
		t.Errorf("the program says %s, VERSION says %s", Version, want)
	}
}
