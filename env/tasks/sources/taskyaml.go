package sources

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tracesmith/tracesmith/env/tasks/taskfile"
	"github.com/tracesmith/tracesmith/schemas"
)

// taskFile decodes a task.yaml. It collects all problems with their lines, so that a user can correct them together.
type taskFile struct {
	name     string         // name in messages
	lines    map[string]int // line of each key
	problems []error
}

// parseTaskFile parses a task.yaml. instance is the id if the file does not set one. Errors have the form
// "name:line: problem".
func parseTaskFile(name, instance string, data []byte) (schemas.Task, error) {
	f := &taskFile{name: name, lines: map[string]int{}}
	t := schemas.Task{InstanceID: instance}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return t, fmt.Errorf("%s is empty", name)
		}
		return t, notYAML(name, err)
	}
	var second yaml.Node
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		return t, fmt.Errorf("%s contains more than one document: write one task per file", name)
	}
	if len(doc.Content) == 0 {
		return t, fmt.Errorf("%s is empty", name)
	}
	var tests yaml.Node
	f.mapping("", doc.Content[0], map[string]any{
		"instance_id": &t.InstanceID, "instructions": &t.Instructions,
		"entrypoint": &t.Entrypoint, "debug_entrypoint": &t.DebugEntrypoint,
		"setup": &t.Setup, "hide": &t.Hide, "python": &t.Python, "image": &t.Image, "workdir": &t.Workdir,
		"repo": &t.Repo, "base_commit": &t.BaseCommit, "license": &t.License,
		"bug_kind": &t.BugKind, "created_at": &t.CreatedAt, "tests": &tests,
	})
	if !tests.IsZero() {
		f.mapping("tests.", &tests, map[string]any{
			"method": &t.Tests.Method, "fail_to_pass": &t.Tests.FailToPass,
			"pass_to_pass": &t.Tests.PassToPass, "files": &t.Tests.Files, "command": &t.Tests.Command,
		})
	}
	if len(f.problems) == 0 {
		f.check(t)
	}
	return t, errors.Join(f.problems...)
}

// notYAML returns an error of the YAML library as "name:line: ...", which editors understand.
func notYAML(name string, err error) error {
	text, line := strings.TrimPrefix(err.Error(), "yaml: "), 0
	if n, scanErr := fmt.Sscanf(text, "line %d:", &line); n == 1 && scanErr == nil {
		_, text, _ = strings.Cut(text, ": ")
		name = fmt.Sprintf("%s:%d", name, line)
	}
	return fmt.Errorf("%s: not valid YAML: %s", name, text)
}

// mapping decodes the keys of node into the pointers of into.
func (f *taskFile) mapping(prefix string, node *yaml.Node, into map[string]any) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if node.Kind != yaml.MappingNode {
		f.problem(node.Line, "want keys and values (%s)", strings.Join(slices.Sorted(maps.Keys(into)), ", "))
		return
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		name := prefix + key.Value
		dest, known := into[key.Value]
		first, twice := f.lines[name]
		f.lines[name] = key.Line
		switch {
		case !known:
			f.problem(key.Line, "unknown key %q: choose from %s", name, strings.Join(slices.Sorted(maps.Keys(into)), ", "))
		case twice:
			f.problem(key.Line, "key %q is already on line %d", name, first)
		default:
			f.value(name, value, dest)
		}
	}
}

// value decodes one value into dest. If dest is a *yaml.Node, it gets the node itself.
func (f *taskFile) value(name string, value *yaml.Node, dest any) {
	want := ""
	switch dest := dest.(type) {
	case *yaml.Node:
		*dest = *value
		return
	case *string:
		want = "text"
	case *[]string:
		want = "a list of texts"
	case *time.Time:
		want = "a date such as 2026-01-31"
	}
	if err := value.Decode(dest); err != nil {
		f.problem(value.Line, "%s: want %s", name, want)
	}
}

// check validates the values after all of them have been read.
func (f *taskFile) check(t schemas.Task) {
	for _, p := range taskfile.Problems(t) {
		f.problem(f.lines[p.Field], "%s", p.Text)
	}
}

// problem records a problem. Line 0 means the whole file.
func (f *taskFile) problem(line int, format string, args ...any) {
	where := f.name
	if line > 0 {
		where = fmt.Sprintf("%s:%d", f.name, line)
	}
	f.problems = append(f.problems, fmt.Errorf("%s: %s", where, fmt.Sprintf(format, args...)))
}
