package sources

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/tasks/taskfile"
	"github.com/tracesmith/tracesmith/schemas"
)

// files writes contents below a new directory and returns it. A name that ends in "/" becomes
// an empty directory.
func files(t *testing.T, contents map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range contents {
		full := filepath.Join(dir, name)
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(full, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// tasksOf builds a source and lists its tasks. The error may come from either step.
func tasksOf(t *testing.T, kind string, with map[string]any) ([]schemas.Task, error) {
	t.Helper()
	src, err := env.Sources.Build(kind, with, struct{}{})
	if err != nil {
		return nil, err
	}
	return src.Tasks(t.Context())
}

const goodTask = `instructions: It prints 3.
entrypoint: python3 -m pytest -q
license: MIT
created_at: 2026-01-31
setup: [pip install pandas]
tests:
  fail_to_pass: ["test_a.py::test_a"]
`

const goodPatch = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 3\n+x = 2\n"

func TestDirTask(t *testing.T) {
	dir := files(t, map[string]string{
		"one/task.yaml": goodTask, "one/repo/a.py": "x = 3\n", "one/gold.patch": goodPatch,
		"two/task.yaml": "instance_id: other\ninstructions: x\nentrypoint: ./run\n", "two/repo/run": "",
		"README": "not a task", "_drafts/x": "", ".cache/x": "",
	})
	tasks, err := tasksOf(t, "dir", map[string]any{"path": dir})
	if err != nil {
		t.Fatal(err)
	}
	if len(tasks) != 2 || tasks[1].InstanceID != "other" || tasks[1].Tests.Method != schemas.VerifyExitCode {
		t.Fatalf("tasks = %+v", tasks)
	}
	got := tasks[0]
	if got.ID != got.ComputeID() || len(got.TreeSHA256) != 64 {
		t.Errorf("id %q, tree %q", got.ID, got.TreeSHA256)
	}
	got.ID, got.TreeSHA256 = "", ""
	want := schemas.Task{
		Source: "dir", InstanceID: "one", Repo: "dir/one", License: "MIT", Language: "python",
		CreatedAt:    time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC),
		Instructions: "It prints 3.", Entrypoint: "python3 -m pytest -q",
		Setup: []string{"pip install pandas"}, Workdir: "/testbed", GoldPatch: goodPatch, Visibility: "runnable",
		Tests: schemas.TestSpec{
			Method: schemas.VerifyPytest, FailToPass: []string{"test_a.py::test_a"}, Files: taskfile.DefaultTestFiles(),
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("task (-want +got):\n%s", diff)
	}
}

// An error names every mistake in a task file and its line, so that a user can fix them all
// at once.
func TestDirProblems(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"unknown key":     {files: map[string]string{"t/task.yaml": goodTask + "entry_point: x\n"}, want: []string{`t/task.yaml:8: unknown key "entry_point": choose from base_commit, `}},
		"unknown test":    {files: map[string]string{"t/task.yaml": goodTask + "  flaky: []\n"}, want: []string{`t/task.yaml:8: unknown key "tests.flaky": choose from command, fail_to_pass, `}},
		"key twice":       {files: map[string]string{"t/task.yaml": goodTask + "license: MIT\n"}, want: []string{`t/task.yaml:8: key "license" is already on line 3`}},
		"wrong type":      {files: map[string]string{"t/task.yaml": "instructions: [a]\nentrypoint: x\nsetup: make\ncreated_at: soon\n"}, want: []string{"t/task.yaml:1: instructions: want text", "t/task.yaml:3: setup: want a list of texts", "t/task.yaml:4: created_at: want a date"}},
		"tests a list":    {files: map[string]string{"t/task.yaml": "instructions: a\nentrypoint: x\ntests: [a]\n"}, want: []string{"t/task.yaml:3: want keys and values (command, fail_to_pass, "}},
		"no mapping":      {files: map[string]string{"t/task.yaml": "- a\n"}, want: []string{"t/task.yaml:1: want keys and values"}},
		"not YAML":        {files: map[string]string{"t/task.yaml": "a: b\n\tc: d\n"}, want: []string{"t/task.yaml:2: not valid YAML"}},
		"empty":           {files: map[string]string{"t/task.yaml": "# later\n"}, want: []string{"t/task.yaml is empty"}},
		"two documents":   {files: map[string]string{"t/task.yaml": goodTask + "---\na: b\n"}, want: []string{"more than one document"}},
		"no entrypoint":   {files: map[string]string{"t/task.yaml": "instructions: x\n"}, want: []string{"t/task.yaml: entrypoint is missing"}},
		"blank words":     {files: map[string]string{"t/task.yaml": "instructions: ' '\nentrypoint: x\n"}, want: []string{"t/task.yaml:1: instructions is missing"}},
		"instance id":     {files: map[string]string{"t/task.yaml": "instance_id: ../up\n" + goodTask}, want: []string{`t/task.yaml:1: instance_id "../up"`}},
		"method":          {files: map[string]string{"t/task.yaml": goodTask + "  method: nose\n"}, want: []string{`t/task.yaml:8: tests.method "nose": choose from pytest, unittest, exit_code`}},
		"workdir":         {files: map[string]string{"t/task.yaml": goodTask + "workdir: src/../x\n"}, want: []string{"t/task.yaml:8: workdir"}},
		"test twice":      {files: map[string]string{"t/task.yaml": goodTask + "  pass_to_pass: [\"test_a.py::test_a\"]\n"}, want: []string{`t/task.yaml:8: tests.pass_to_pass: "test_a.py::test_a" is already in tests.fail_to_pass`}},
		"no task file":    {files: map[string]string{"t/repo/a.py": ""}, want: []string{"/t has no task.yaml: a task directory contains"}},
		"no repo":         {files: map[string]string{"t/task.yaml": goodTask}, want: []string{"/t has no repo: "}},
		"repo is a file":  {files: map[string]string{"t/task.yaml": goodTask, "t/repo": ""}, want: []string{"t/repo is not a directory"}},
		"repo is empty":   {files: map[string]string{"t/task.yaml": goodTask, "t/repo/": ""}, want: []string{"t/repo is empty"}},
		"gold is no diff": {files: map[string]string{"t/task.yaml": goodTask, "t/gold.patch": "x = 2\n"}, want: []string{"t/gold.patch: changes no file"}},
		"gold is torn":    {files: map[string]string{"t/task.yaml": goodTask, "t/gold.patch": "--- a/a.py\n+++ b/a.py\n@@ -1,9 +1 @@\n-x\n"}, want: []string{"t/gold.patch: not a unified diff"}},
		"one id twice": {
			files: map[string]string{"t/task.yaml": goodTask, "t/repo/a.py": "", "u/task.yaml": "instance_id: t\n" + goodTask, "u/repo/a.py": ""},
			want:  []string{`/u are both called "t": change one instance_id`},
		},
		"no tasks":     {files: map[string]string{"README": ""}, want: []string{"contains no task directories"}},
		"task itself":  {files: map[string]string{"task.yaml": goodTask}, want: []string{"is itself a task: give the directory above it"}},
		"two problems": {files: map[string]string{"t/task.yaml": "a: b\n", "u/repo/a.py": ""}, want: []string{"t/task.yaml:1: unknown key", "/u has no task.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			tasks, err := tasksOf(t, "dir", map[string]any{"path": files(t, tc.files)})
			if err == nil {
				t.Fatalf("accepted: %+v", tasks)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error lacks %q:\n%v", want, err)
				}
			}
		})
	}
}

func TestPathIsACopyOfADirectory(t *testing.T) {
	dir := filepath.Join(files(t, map[string]string{"my app!/a.py": "x", "my app!/.git/HEAD": "ref"}), "my app!")
	tasks, err := tasksOf(t, "path", map[string]any{
		"path": dir, "entrypoint": "python3 -m unittest", "python": "/opt/py", "setup": []string{"make"},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := tasks[0]
	if got.InstanceID != "my-app-" || got.Repo != "path/my-app-" || got.Tests.Method != schemas.VerifyUnittest {
		t.Errorf("task = %+v", got)
	}
	if !strings.Contains(got.Instructions, "python3 -m unittest") {
		t.Errorf("instructions = %q", got.Instructions)
	}
	if got.Python != "/opt/py" || len(got.Setup) != 1 || len(got.Tests.FailToPass)+len(got.Tests.PassToPass) != 0 {
		t.Errorf("task = %+v", got)
	}
}

func TestPathInstructionsFile(t *testing.T) {
	dir := files(t, map[string]string{"app/a.py": "x", "issue.md": "It hangs.\n"})
	tasks, err := tasksOf(t, "path", map[string]any{
		"path": filepath.Join(dir, "app"), "entrypoint": "make", "instructions_file": filepath.Join(dir, "issue.md"),
		"instance_id": "app-1",
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := tasks[0]; got.Instructions != "It hangs.\n" || got.InstanceID != "app-1" {
		t.Errorf("task = %+v", got)
	}
}

// The hash of the tree is computed when the task is listed. If a file changes afterward, writing the tree fails.
func TestPathTreeIsPinned(t *testing.T) {
	dir := files(t, map[string]string{"a.py": "x = 1\n"})
	src, err := env.Sources.Build("path", map[string]any{"path": dir, "entrypoint": "make"}, struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := src.Tasks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.py"), []byte("x = 2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	tree, err := src.Tree(t.Context(), tasks[0].InstanceID)
	if err != nil {
		t.Fatal(err)
	}
	if tree.SHA256() != tasks[0].TreeSHA256 {
		t.Errorf("tree %s, task says %s", tree.SHA256(), tasks[0].TreeSHA256)
	}
	if err := tree.WriteTar(new(strings.Builder)); err == nil || !strings.Contains(err.Error(), "a.py changed") {
		t.Errorf("WriteTar = %v", err)
	}
	if _, err := src.Tree(t.Context(), "other"); err == nil || !strings.Contains(err.Error(), `"path" has no task "other"`) {
		t.Errorf("Tree of an unknown task = %v", err)
	}
}

func TestSourceSettingsAreCheckedFirst(t *testing.T) {
	dir := files(t, map[string]string{"a.py": "", "empty/": ""})
	in := func(name string) string { return filepath.Join(dir, name) }
	for name, tc := range map[string]struct {
		kind string
		with map[string]any
		want string
	}{
		"builtin unknown key": {"builtin", map[string]any{"id": "x"}, `unknown field "id"`},
		"dir no path":         {"dir", nil, `the setting "path" is missing`},
		"dir missing":         {"dir", map[string]any{"path": in("none")}, "none does not exist: name a directory"},
		"dir a file":          {"dir", map[string]any{"path": in("a.py")}, "a.py is a file: name its directory"},
		"path missing":        {"path", map[string]any{"path": in("none"), "entrypoint": "x"}, "none does not exist"},
		"path a file":         {"path", map[string]any{"path": in("a.py"), "entrypoint": "x"}, "a.py is a file"},
		"path empty":          {"path", map[string]any{"path": in("empty"), "entrypoint": "x"}, "empty is empty"},
		"path entrypoint":     {"path", map[string]any{"path": dir}, `the setting "entrypoint" is missing`},
		"path wrong type":     {"path", map[string]any{"path": dir, "entrypoint": 3}, "entrypoint"},
		"path both words":     {"path", map[string]any{"path": dir, "entrypoint": "x", "instructions": "a", "instructions_file": "b"}, "not both"},
		"path words missing":  {"path", map[string]any{"path": dir, "entrypoint": "x", "instructions_file": in("none")}, "reading instructions"},
		"path bad id":         {"path", map[string]any{"path": dir, "entrypoint": "x", "instance_id": "a/b"}, `instance_id "a/b"`},
	} {
		t.Run(name, func(t *testing.T) {
			tasks, err := tasksOf(t, tc.kind, tc.with)
			if err == nil {
				t.Fatalf("accepted: %+v", tasks)
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %q lacks %q", err, tc.want)
			}
		})
	}
}

func TestInstanceName(t *testing.T) {
	for name, want := range map[string]string{
		"app": "app", ".hidden": "hidden", "Ünï": "n-", "---": "program", "a b": "a-b", strings.Repeat("x", 200): strings.Repeat("x", 128),
	} {
		got := instanceName(name)
		if got != want || !taskfile.InstancePattern.MatchString(got) {
			t.Errorf("instanceName(%q) = %q, want %q", name, got, want)
		}
	}
}

func FuzzTaskFile(f *testing.F) {
	for _, seed := range []string{goodTask, "", "a: &x [*x]", "tests: {files: 1}", "? [a]\n: b", "tests: &a {files: *a}", "---\n...\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		task, err := parseTaskFile("task.yaml", "t", data)
		if err == nil && (task.Entrypoint == "" || !taskfile.InstancePattern.MatchString(task.InstanceID)) {
			t.Errorf("accepted %q as %+v", data, task)
		}
		if err != nil && !strings.Contains(err.Error(), "task.yaml") {
			t.Errorf("error does not name the file: %v", err)
		}
	})
}

// Source names must match exactly. The error for an unknown name lists the known ones.
func TestSourcesAreChosenByExactName(t *testing.T) {
	for _, kind := range env.Sources.Kinds() {
		if spec, ok := env.Sources.Lookup(kind); !ok || spec.Summary == "" {
			t.Errorf("%s is not described", kind)
		}
	}
	src, err := env.Sources.Build("builtin", nil, struct{}{})
	if err != nil || src.Name() != "builtin" {
		t.Errorf("%v, %v", src, err)
	}
	for _, name := range []string{"Builtin", "builtin ", "", "no such", "env"} {
		_, err := env.Sources.Build(name, nil, struct{}{})
		if err == nil || !strings.Contains(err.Error(), `"`+name+`": choose one of `) {
			t.Errorf("%q: %v", name, err)
		}
	}
}
