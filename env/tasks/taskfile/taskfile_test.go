package taskfile

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
)

// writeFiles writes files below a new directory.
func writeFiles(t testing.TB, contents map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range contents {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func fromDir(t testing.TB, dir string) *workspace.Tree {
	t.Helper()
	files, err := workspace.FromDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

const (
	bug  = "--- a/pkg/calc.py\n+++ b/pkg/calc.py\n@@ -1,2 +1,2 @@\n def double(x):\n-    return 2 * x\n+    return 3 * x\n"
	gold = "--- a/pkg/calc.py\n+++ b/pkg/calc.py\n@@ -1,2 +1,2 @@\n def double(x):\n-    return 3 * x\n+    return 2 * x\n"
)

func healthy(t testing.TB) *workspace.Tree {
	return fromDir(t, writeFiles(t, map[string]string{"pkg/calc.py": "def double(x):\n    return 2 * x\n", "tests/test_calc.py": "x\n"}))
}

// task returns a task that Add accepts.
func task(t testing.TB, base *workspace.Tree, id string) schemas.Task {
	t.Helper()
	broken, err := Apply(base, []byte(bug))
	if err != nil {
		t.Fatal(err)
	}
	visible := 1
	return schemas.Task{
		Source: "synth", InstanceID: id, Instructions: "double <b>triples</b> & more", Entrypoint: "python3 -m pytest -q",
		GoldPatch: gold, BugPatch: bug, TreeSHA256: broken.SHA256(),
		Tests:      schemas.TestSpec{FailToPass: []string{"tests/test_calc.py::test_double"}},
		Origin:     &schemas.Origin{Operator: "constant", Seed: 7, ParentTreeSHA256: base.SHA256(), Site: "pkg/calc.py:2", Split: "train"},
		Difficulty: &schemas.Difficulty{GoldVisible: &visible},
	}
}

func write(t testing.TB, name string, base *workspace.Tree, tasks ...schemas.Task) {
	t.Helper()
	w, err := Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for _, task := range tasks {
		ref, err := w.AddTree(base)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Add(task, ref); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(name); err == nil {
		t.Error("the file has its name before it is complete")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestWrittenTasksAreRead(t *testing.T) {
	base, dir := healthy(t), t.TempDir()
	name := filepath.Join(dir, "out", "tasks.jsonl")
	tasks := []schemas.Task{task(t, base, "one"), task(t, base, "two")}
	write(t, name, base, tasks...)
	entries, err := Read(t.Context(), name, filepath.Join(dir, "cache"))
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range entries {
		want := Complete(tasks[i], "")
		if diff := cmp.Diff(want, e.Task); diff != "" {
			t.Errorf("task (-want +got):\n%s", diff)
		}
		files, err := e.Tree()
		if err != nil {
			t.Fatal(err)
		}
		text, _, _, err := files.File("pkg/calc.py")
		if err != nil || !strings.Contains(string(text), "3 * x") {
			t.Errorf("the bug is not in the tree: %q, %v", text, err)
		}
	}
	// Both tasks share a repository, and writing again gives the same bytes.
	stored, err := filepath.Glob(filepath.Join(dir, "out", "trees", "*"))
	if err != nil || len(stored) != 1 {
		t.Errorf("stored %v, %v", stored, err)
	}
	again := filepath.Join(dir, "again", "tasks.jsonl")
	write(t, again, base, tasks...)
	for _, file := range []string{"tasks.jsonl", filepath.Join("trees", filepath.Base(stored[0]))} {
		a, err1 := os.ReadFile(filepath.Join(dir, "out", file))
		b, err2 := os.ReadFile(filepath.Join(dir, "again", file))
		if err1 != nil || err2 != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs between two writings (%v, %v)", file, err1, err2)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "out", ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// The id of a task depends on its patches, tests and commands, but not on where it comes from (Origin) or how difficult
// it is.
func TestIDsDependOnContentOnly(t *testing.T) {
	base := healthy(t)
	a := Complete(task(t, base, "one"), "")
	b := a
	b.Origin, b.Difficulty = &schemas.Origin{Split: "test"}, nil
	if b.ComputeID() != a.ID {
		t.Error("the split is part of the id")
	}
	for name, change := range map[string]func(*schemas.Task){
		"gold": func(t *schemas.Task) { t.GoldPatch = "x" }, "bug": func(t *schemas.Task) { t.BugPatch = "x" },
		"tests": func(t *schemas.Task) { t.Tests.Patch = "x" }, "command": func(t *schemas.Task) { t.Tests.Command = "x" },
	} {
		c := a
		if change(&c); c.ComputeID() == a.ID {
			t.Errorf("%s is not part of the id", name)
		}
	}
}

// A task file may name the same repository in every supported form.
func TestRepositoryFormsGiveTheSameTree(t *testing.T) {
	base := healthy(t)
	var plain bytes.Buffer
	if err := base.WriteTar(&plain); err != nil {
		t.Fatal(err)
	}
	var zipped bytes.Buffer
	gz := gzip.NewWriter(&zipped)
	if _, err := gz.Write(plain.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := gz.Close(); err != nil {
		t.Fatal(err)
	}
	dir := writeFiles(t, map[string]string{
		"r.tar": plain.String(), "r.tar.gz": zipped.String(), "r.tgz": zipped.String(),
		"r/pkg/calc.py": "def double(x):\n    return 2 * x\n", "r/tests/test_calc.py": "x\n",
	})
	cache := filepath.Join(dir, "cache")
	for _, ref := range []string{"r", "r.tar", "r.tar.gz", "r.tgz"} {
		text := row(t, map[string]any{"instance_id": "one", "instructions": "x", "entrypoint": "true", "repo_tree": ref})
		if err := os.WriteFile(filepath.Join(dir, "t.jsonl"), []byte(text+"\n\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		entries, err := Read(t.Context(), filepath.Join(dir, "t.jsonl"), cache)
		if err != nil || len(entries) != 1 || entries[0].Task.TreeSHA256 != base.SHA256() {
			t.Errorf("%s: %v, want the tree %s", ref, err, base.SHA256())
			continue
		}
		var out bytes.Buffer
		files, err := entries[0].Tree()
		if err == nil {
			err = files.WriteTar(&out)
		}
		if err != nil || !bytes.Equal(out.Bytes(), plain.Bytes()) {
			t.Errorf("%s: the tree's archive differs from that of the original (%v)", ref, err)
		}
	}
	if kept, _ := filepath.Glob(filepath.Join(cache, "*")); len(kept) != 1 {
		t.Errorf("the cache contains %v, want one archive", kept)
	}
}

func row(t testing.TB, fields map[string]any) string {
	t.Helper()
	b, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestBrokenTaskFiles(t *testing.T) {
	dir := writeFiles(t, map[string]string{"r/a.py": "x = 1\n", "../outside/a.py": "secret\n", "f.zip": ""})
	if err := os.Symlink("/etc", filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	with := func(more map[string]any) string {
		fields := map[string]any{"instance_id": "one", "instructions": "x", "entrypoint": "true", "repo_tree": "r"}
		for k, v := range more {
			if fields[k] = v; v == nil {
				delete(fields, k)
			}
		}
		return row(t, fields)
	}
	for text, want := range map[string]string{
		"":                                    "contains no task: want one JSON object per line",
		"[1]":                                 "t.jsonl:1: the line has the wrong type array",
		"\n\nx":                               "t.jsonl:3: not a task: invalid character",
		`{"instance_id": "a"`:                 "t.jsonl:1: the JSON object is incomplete",
		with(nil) + with(nil):                 "t.jsonl:1: unexpected text after the JSON object",
		with(nil) + "\n" + with(nil):          `t.jsonl:2: instance_id "one" is already used at`,
		with(map[string]any{"instance": "a"}): `t.jsonl:1: not a task: unknown field "instance"`,
		with(map[string]any{"entrypoint": 7}): "t.jsonl:1: entrypoint has the wrong type number",
		with(map[string]any{"instructions": " "}):                                                "t.jsonl:1: instructions is missing",
		with(map[string]any{"instance_id": "a/b"}):                                               `t.jsonl:1: instance_id "a/b": want`,
		with(map[string]any{"workdir": "x"}):                                                     `workdir "x": want a clean absolute path`,
		with(map[string]any{"repo_tree": nil}):                                                   "t.jsonl:1: repo_tree is missing (the output of tasks show --json does not contain the repository)",
		with(map[string]any{"repo_tree": "/etc"}):                                                `repo_tree "/etc": want a path below`,
		with(map[string]any{"repo_tree": "../outside"}):                                          `repo_tree "../outside": want a path below`,
		with(map[string]any{"repo_tree": "out"}):                                                 "is a link that leads out of the directory",
		with(map[string]any{"repo_tree": "gone"}):                                                "repo_tree " + filepath.Join(dir, "gone") + " does not exist: it must lie beside",
		with(map[string]any{"repo_tree": "gone", "tree_sha256": strings.Repeat("a", 64)}):        "repo_tree " + filepath.Join(dir, "gone") + " does not exist: it must lie beside",
		with(map[string]any{"repo_tree": "f.zip"}):                                               "f.zip: want a directory, a .tar",
		with(map[string]any{"gold_patch": "x"}):                                                  "t.jsonl:1: gold_patch: changes no file",
		with(map[string]any{"bug_patch": bug}):                                                   "bug_patch: the patch does not apply to pkg/calc.py: file does not exist",
		with(map[string]any{"tree_sha256": "12"}):                                                `tree_sha256 "12": want 64 hexadecimal digits`,
		with(map[string]any{"id": "12"}):                                                         `id "12" does not match the content of the task`,
		with(map[string]any{"test_visibility": "open"}):                                          `test_visibility "open": choose from hidden, visible, runnable`,
		with(map[string]any{"tests": map[string]any{"method": "nose"}}):                          `tests.method "nose": choose from pytest`,
		with(map[string]any{"tests": map[string]any{"patch": "nothing"}}):                        "tests.patch: changes no file",
		with(map[string]any{"tests": map[string]any{"expected": map[string]any{"a": "PASSED"}}}): `tests.expected: "a" is "PASSED": choose from passed, failed`,
	} {
		name := filepath.Join(dir, "t.jsonl")
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Read(t.Context(), name, filepath.Join(dir, "cache"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// A repository that is not the task's is refused; the message has both hashes.
func TestWrongTreesAreRefused(t *testing.T) {
	base, dir := healthy(t), t.TempDir()
	name := filepath.Join(dir, "tasks.jsonl")
	wrong := task(t, base, "one")
	right := wrong.TreeSHA256
	wrong.TreeSHA256 = base.SHA256()
	write(t, name, base, wrong)
	entries, err := Read(t.Context(), name, filepath.Join(dir, "cache"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = entries[0].Tree()
	if err == nil || !strings.Contains(err.Error(), right) || !strings.Contains(err.Error(), base.SHA256()) || !strings.Contains(err.Error(), "tasks.jsonl:1") {
		t.Errorf("%v", err)
	}
}

func TestParquetTaskFile(t *testing.T) {
	type spec struct {
		FailToPass []string          `parquet:"fail_to_pass,list"`
		Method     *string           `parquet:"method,optional"`
		Expected   map[string]string `parquet:"expected,optional"`
	}
	type parquetRow struct {
		InstanceID   string  `parquet:"instance_id"`
		Instructions string  `parquet:"instructions,snappy"`
		Entrypoint   string  `parquet:"entrypoint"`
		RepoTree     string  `parquet:"repo_tree"`
		License      *string `parquet:"license,optional"`
		Tests        spec    `parquet:"tests"`
	}
	dir := writeFiles(t, map[string]string{"r/a.py": "x = 1\n"})
	name := filepath.Join(dir, "t.parquet")
	rows := []parquetRow{{InstanceID: "one", Instructions: "x", Entrypoint: "pytest", RepoTree: "r", Tests: spec{FailToPass: []string{"a.py::b"}}}}
	if err := parquet.WriteFile(name, rows); err != nil {
		t.Fatal(err)
	}
	entries, err := Read(t.Context(), name, dir)
	if err != nil || len(entries) != 1 || entries[0].Task.Tests.FailToPass[0] != "a.py::b" || entries[0].Task.Tests.Method != "pytest" {
		t.Fatalf("%+v, %v", entries, err)
	}
	if err := parquet.WriteFile(name, append(rows, parquetRow{InstanceID: "?"})); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(t.Context(), name, dir); err == nil || !strings.Contains(err.Error(), `t.parquet: row 2: instance_id "?"`) {
		t.Error(err)
	}
}

func FuzzTaskFile(f *testing.F) {
	dir := writeFiles(f, map[string]string{"r/a.py": "x = 1\n"})
	f.Add(`{"instance_id":"a","instructions":"x","entrypoint":"true","repo_tree":"r"}`)
	f.Add(`{"instance_id":"a","instructions":"x","entrypoint":"true","repo_tree":"r","bug_patch":"--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"}`)
	f.Add(`{"instance_id":"a","tests":{"expected":{"a":"passed"},"patch":"diff --git a/x b/x\nnew file mode 120000\n"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		name := filepath.Join(dir, "t.jsonl")
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		entries, err := Read(t.Context(), name, dir)
		if err == nil && len(entries) == 0 {
			t.Error("Read returns neither a task nor an error")
		}
		for _, e := range entries {
			if e.Task.ID != e.Task.ComputeID() || !InstancePattern.MatchString(e.Task.InstanceID) {
				t.Errorf("%+v", e.Task)
			}
			_, _ = e.Tree() // must not panic
		}
	})
}

// A JSON object in the form of "tasks show --json", with a repo_tree, is accepted on one line or on several.
func TestObjectsOnSeveralLinesAreAccepted(t *testing.T) {
	object := map[string]any{"schema": Schema, "instance_id": "a", "instructions": "x", "entrypoint": "python3 -m pytest", "repo_tree": "repo"}
	for name, c := range map[string]struct {
		schema string
		indent bool
		want   string
	}{
		"one line": {Schema, false, ""}, "several": {Schema, true, ""}, "another": {"tracesmith.task/9", false, `tasks.jsonl:1: schema "tracesmith.task/9": want tracesmith.task/1`},
	} {
		object["schema"] = c.schema
		var out bytes.Buffer
		enc := json.NewEncoder(&out)
		if c.indent {
			enc.SetIndent("", "  ")
		}
		if err := enc.Encode(object); err != nil {
			t.Fatal(err)
		}
		dir := writeFiles(t, map[string]string{"repo/a.py": "pass\n", "tasks.jsonl": out.String()})
		entries, err := Read(t.Context(), filepath.Join(dir, "tasks.jsonl"), t.TempDir())
		if c.want == "" && (err != nil || len(entries) != 1) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, %v", name, entries, err)
		}
	}
}
