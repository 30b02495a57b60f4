package house

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	promiseLine = regexp.MustCompile(`(?m)^\| ([0-9]+) \| [^|]+ \| (.+) \|$`)
	testList    = regexp.MustCompile("^`([a-z/]+)` (Test[A-Za-z0-9]+(?:, Test[A-Za-z0-9]+)*)$")
)

// Each test that docs/internals/promises.md lists exists in the folder that it gives.
func TestPromisesOfTheDatasetHaveTheirTests(t *testing.T) {
	page, err := os.ReadFile("docs/internals/promises.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := promiseLine.FindAllStringSubmatch(string(page), -1)
	if len(rows) != 10 {
		t.Fatalf("%d promises, want 10", len(rows))
	}
	for _, row := range rows {
		for part := range strings.SplitSeq(row[2], "; ") {
			m := testList.FindStringSubmatch(part)
			if m == nil {
				t.Errorf("promise %s: %q is not a folder followed by names of tests", row[1], part)
				continue
			}
			for name := range strings.SplitSeq(m[2], ", ") {
				if !hasTest(t, m[1], name) {
					t.Errorf("promise %s: %s has no %s", row[1], m[1], name)
				}
			}
		}
	}
}

// hasTest reports whether a package in folder has the test function name.
func hasTest(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+name+"(t *testing.T)") {
			return true
		}
	}
	return false
}
