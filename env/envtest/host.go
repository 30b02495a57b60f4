package envtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hostProcesses lists the command lines on the host that hold a word as an
// argument of its own.
func hostProcesses(t *testing.T, word string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			continue // ended meanwhile
		}
		if args := strings.Split(string(raw), "\x00"); len(args) > 1 && args[0] == "sleep" && args[1] == word {
			out = append(out, strings.Join(args, " "))
		}
	}
	return out
}
