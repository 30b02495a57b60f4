package taskfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/tracesmith/tracesmith/env/tasks/provenance"
	"github.com/tracesmith/tracesmith/schemas"
)

// InstancePattern matches valid instance ids. They become part of file names, labels and object keys.
var InstancePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,127}$`)

var treePattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// DefaultTestFiles returns the patterns of the files that are restored before grading if a task names none: tests and
// their configuration. A pattern without a slash matches the base name in any directory; "dir/**" matches everything
// below dir.
func DefaultTestFiles() []string {
	return []string{
		"tests/**", "test_*.py", "*_test.py", "conftest.py",
		"pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml",
	}
}

// Complete returns a task with defaults for its missing fields and with its id. It removes local
// paths from the names of the repository. source is used if the task does not name its source.
func Complete(t schemas.Task, source string) schemas.Task {
	t.Source = cmp.Or(t.Source, source)
	t.Language = "python"
	t = provenance.WithoutLocalPaths(t)
	t.Workdir = cmp.Or(t.Workdir, schemas.DefaultWorkdir)
	t.Tests.Method = cmp.Or(t.Tests.Method, methodFor(t.Entrypoint))
	if len(t.Tests.Files) == 0 && t.Tests.Method != schemas.VerifyNone {
		t.Tests.Files = DefaultTestFiles()
	}
	if t.Visibility == "" {
		t.Visibility = schemas.TestsRunnable // the repository contains the tests, and the entrypoint runs them
		if t.Tests.Patch != "" {
			t.Visibility = schemas.TestsHidden
		}
	}
	t.ID = t.ComputeID()
	return t
}

// methodFor returns how to read the results of an entrypoint, guessed from the command.
func methodFor(entrypoint string) string {
	switch {
	case strings.Contains(entrypoint, "pytest"):
		return schemas.VerifyPytest
	case strings.Contains(entrypoint, "unittest"):
		return schemas.VerifyUnittest
	}
	return schemas.VerifyExitCode
}

// Problem is an error in a field of a task. Field is its JSON name.
type Problem struct{ Field, Text string }

// Problems checks the fields of a task. It does not look at the repository.
func Problems(t schemas.Task) []Problem {
	var out []Problem
	report := func(field, format string, args ...any) {
		out = append(out, Problem{field, fmt.Sprintf(format, args...)})
	}
	if !InstancePattern.MatchString(t.InstanceID) {
		report("instance_id", "instance_id %.140q: want up to 128 letters, digits or . _ + -, beginning with a letter or digit", t.InstanceID)
	}
	for _, f := range []struct{ field, value string }{{"instructions", t.Instructions}, {"entrypoint", t.Entrypoint}} {
		if strings.TrimSpace(f.value) == "" && (f.field != "entrypoint" || t.Tests.Method != schemas.VerifyNone) {
			report(f.field, "%s is missing", f.field)
		}
	}
	if t.Workdir != "" && (!path.IsAbs(t.Workdir) || path.Clean(t.Workdir) != t.Workdir || t.Workdir == "/") {
		report("workdir", "workdir %q: want a clean absolute path below /", t.Workdir)
	}
	if t.TreeSHA256 != "" && !treePattern.MatchString(t.TreeSHA256) {
		report("tree_sha256", "tree_sha256 %.80q: want 64 hexadecimal digits", t.TreeSHA256)
	}
	for _, dir := range t.Hide {
		if !filepath.IsLocal(dir) || path.Clean(dir) != dir || dir == "." {
			report("hide", "hide %.80q: want a directory below the interpreter's module path, such as pip/_vendor/requests", dir)
		}
	}
	oneOf := func(field, value string, choices ...string) {
		if value != "" && !slices.Contains(choices, value) {
			report(field, "%s %q: choose from %s", field, value, strings.Join(choices, ", "))
		}
	}
	oneOf("tests.method", t.Tests.Method, schemas.VerifyPytest, schemas.VerifyUnittest, schemas.VerifyExitCode, schemas.VerifyNone)
	oneOf("test_visibility", t.Visibility, schemas.TestsHidden, schemas.TestsVisible, schemas.TestsRunnable)
	for _, p := range []struct{ field, patch string }{{"gold_patch", t.GoldPatch}, {"bug_patch", t.BugPatch}, {"tests.patch", t.Tests.Patch}} {
		if p.patch == "" {
			continue
		}
		if err := CheckPatch([]byte(p.patch)); err != nil {
			report(p.field, "%s: %v", p.field, err)
		}
	}
	return append(out, listProblems(t.Tests)...)
}

// listProblems checks the test ids and the expected statuses.
func listProblems(s schemas.TestSpec) (out []Problem) {
	seen := map[string]string{}
	for _, list := range []struct {
		field string
		ids   []string
	}{{"tests.fail_to_pass", s.FailToPass}, {"tests.pass_to_pass", s.PassToPass}} {
		for _, id := range list.ids {
			if id == "" {
				out = append(out, Problem{list.field, list.field + ": a test id is empty"})
			} else if other := seen[id]; other != "" {
				out = append(out, Problem{list.field, fmt.Sprintf("%s: %q is already in %s", list.field, id, other)})
			}
			seen[id] = list.field
		}
	}
	statuses := []string{schemas.StatusPassed, schemas.StatusFailed, schemas.StatusError, schemas.StatusSkipped}
	for id, status := range s.Expected {
		if id == "" || !slices.Contains(statuses, status) {
			out = append(out, Problem{"tests.expected", fmt.Sprintf("tests.expected: %.80q is %.40q: choose from %s", id, status, strings.Join(statuses, ", "))})
		}
	}
	slices.SortFunc(out, func(a, b Problem) int { return strings.Compare(a.Text, b.Text) })
	return out
}

// CheckPatch returns an error if a patch is not a unified diff, or changes no file.
func CheckPatch(patch []byte) error {
	files, err := parsePatch(patch)
	if err != nil {
		return fmt.Errorf("not a unified diff: %w", err)
	}
	if len(files) == 0 {
		return errors.New("changes no file: want a unified diff")
	}
	return nil
}

// parsePatch parses a patch and removes the first component of its file names, as "git apply -p1" does; the library
// does so only for diffs that git wrote. It returns an error if the library panics.
func parsePatch(patch []byte) (files []*gitdiff.File, err error) {
	defer func() {
		if p := recover(); p != nil {
			files, err = nil, fmt.Errorf("%v", p)
		}
	}()
	files, _, err = gitdiff.Parse(bytes.NewReader(patch))
	if bytes.HasPrefix(patch, []byte("diff --git ")) || bytes.Contains(patch, []byte("\ndiff --git ")) {
		return files, err
	}
	for _, f := range files {
		for _, name := range []*string{&f.OldName, &f.NewName} {
			if _, rest, ok := strings.Cut(*name, "/"); ok {
				*name = rest
			}
		}
	}
	return files, err
}
