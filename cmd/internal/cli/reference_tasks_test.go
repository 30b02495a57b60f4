package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/env"
)

// The tables of the page on task.yaml name every field, and tracesmith can read the page's
// examples.
func TestTaskFilePageIsComplete(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(repository, "docs/task-yaml.md"))
	if err != nil {
		t.Fatal(err)
	}
	tables := regexp.MustCompile("(?m)^\\| `([a-z_.]+)` \\|").FindAllStringSubmatch(string(raw), -1)
	documented := map[string]bool{}
	for _, row := range tables {
		documented[row[1]] = true
	}
	_, known, _ := strings.Cut(readTaskFile(t, "x: 1").Error(), "choose from ")
	_, inTests, _ := strings.Cut(readTaskFile(t, "tests: {x: 1}").Error(), "choose from ")
	count := 0
	for _, list := range []struct{ prefix, names string }{{"", known}, {"tests.", inTests}} {
		for name := range strings.SplitSeq(list.names, ", ") {
			if name == "tests" {
				continue
			}
			if count++; !documented[list.prefix+name] {
				t.Errorf("the page does not describe the field %s%s", list.prefix, name)
			}
		}
	}
	if count != len(documented) {
		t.Errorf("the page describes %d fields, but there are %d", len(documented), count)
	}
	for _, example := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(raw), -1) {
		if err := readTaskFile(t, example[1]); err != nil {
			t.Error(err)
		}
	}
}

// readTaskFile returns the error of the task source dir for a task.yaml with this text.
func readTaskFile(t *testing.T, text string) error {
	t.Helper()
	dir := t.TempDir()
	for name, body := range map[string]string{"a/task.yaml": text, "a/repo/x.py": "pass\n"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	source, err := env.Sources.Build("dir", map[string]any{"path": dir}, struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = source.Tasks(t.Context())
	return err
}
