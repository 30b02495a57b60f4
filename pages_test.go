package house

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/troubleshooting.md quotes messages of the program literally.
func TestTroubleshootingQuotesMessages(t *testing.T) {
	var code strings.Builder
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		raw, err := os.ReadFile(path)
		code.Write(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	messages := regexp.MustCompile("(?m)^## `(.*)`$").FindAllStringSubmatch(pages(t)["docs/troubleshooting.md"], -1)
	if len(messages) < 10 {
		t.Errorf("only %d messages were found", len(messages))
	}
	for _, m := range messages {
		for part := range strings.SplitSeq(m[1], "…") {
			if !strings.Contains(code.String(), strings.TrimSpace(part)) {
				t.Errorf("no Go file contains %q", part)
			}
		}
	}
}
