package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/tracesmith/tracesmith/cmd/internal/settings"
	"github.com/tracesmith/tracesmith/env"
)

// The tables of the page on task.yaml name every field, and tracesmith can read the page's
// examples.
func TestTaskFilePageIsComplete(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(repository, "docs/task-yaml.md"))
	if err != nil {
		t.Fatal(err)
	}
	checkTaskTable(t, string(raw))
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
		if err := validateTask(t, example[1]); err != nil {
			t.Errorf("the schema refuses %s: %v", example[1], err)
		}
	}
}

// The schema of task.yaml refuses what the program refuses.
func TestTaskSchemaRefusesMistakes(t *testing.T) {
	for _, text := range []string{
		"instructions: a\nentrypoint: b\ncolour: red", "entrypoint: b", "instructions: a\nentrypoint: b\nsetup: make",
		"instructions: a\nentrypoint: b\ntests: {method: guess}", "instructions: a\nentrypoint: b\ntests: {fail: [a]}",
	} {
		if readTaskFile(t, text) == nil || validateTask(t, text) == nil {
			t.Errorf("accepted: %s", text)
		}
	}
}

// validateTask validates a task.yaml with the schema.
func validateTask(t *testing.T, text string) error {
	t.Helper()
	var doc any
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(doc) // as an editor reads it: a date is text
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	schema, err := settings.TaskSchema().Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return schema.Validate(doc)
}

// checkTaskTable checks that the page has the fields of the schema of task.yaml. With -update, it writes them.
func checkTaskTable(t *testing.T, page string) {
	t.Helper()
	var table strings.Builder
	for _, f := range settings.TaskFields {
		table.WriteString(strings.ReplaceAll(fmt.Sprintf("| `%s` | %s | %s | %s |\n", f.Key, f.Type, f.Default, f.Meaning), "|  |", "| |"))
	}
	const head = "| Field | Type | Default | Meaning |\n| --- | --- | --- | --- |\n"
	before, rest, found := strings.Cut(page, head)
	rows, after, _ := strings.Cut(rest, "\n\n")
	switch {
	case !found:
		t.Fatal("the page has no table")
	case *update:
		if err := os.WriteFile(filepath.Join(repository, "docs/task-yaml.md"), []byte(before+head+table.String()+"\n"+after), 0o644); err != nil {
			t.Fatal(err)
		}
	case rows+"\n" != table.String():
		t.Errorf("docs/task-yaml.md does not match settings.TaskFields: run make docs\n%s", cmp.Diff(rows+"\n", table.String()))
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
