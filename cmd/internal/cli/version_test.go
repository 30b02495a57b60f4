package cli

import (
	"os"
	"strings"
	"testing"
)

// Builds that the Makefile does not make also have the release that the file names.
func TestVersionIsThatOfTheFile(t *testing.T) {
	raw, err := os.ReadFile("../../../VERSION")
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.TrimSpace(string(raw)); Version != want {
		t.Errorf("the program says %s, VERSION says %s", Version, want)
	}
}
