package sources

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/tasks/taskfile"
	"github.com/tracesmith/tracesmith/env/workspace"
	"github.com/tracesmith/tracesmith/schemas"
)

const (
	brokenLib = "def double(x):\n    return 3 * x\n"
	healthy   = "def double(x):\n    return 2 * x\n"
	oldTest   = "from lib import double\n\ndef test_zero():\n    assert double(0) == 0\n"
	libFix    = "diff --git a/lib.py b/lib.py\n--- a/lib.py\n+++ b/lib.py\n@@ -1,2 +1,2 @@\n def double(x):\n-    return 3 * x\n+    return 2 * x\n"
	libTests  = "diff --git a/tests/test_lib.py b/tests/test_lib.py\n--- a/tests/test_lib.py\n+++ b/tests/test_lib.py\n@@ -2,3 +2,6 @@\n \n def test_zero():\n     assert double(0) == 0\n+\n+def test_two():\n+    assert double(2) == 4\n" +
		"diff --git a/tests/test_new.py b/tests/test_new.py\nnew file mode 100644\n--- /dev/null\n+++ b/tests/test_new.py\n@@ -0,0 +1,4 @@\n+from lib import double\n+\n+def test_three():\n+    assert double(3) == 6\n"
)

// clone creates a directory with a clone of owner/name. The clone has two commits: the files
// of first, and then the fix. clone returns the directory and the first commit.
func clone(t *testing.T, first map[string]string) (dir, commit string) {
	t.Helper()
	// Tests must not share a cache.
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir = t.TempDir()
	repo := filepath.Join(dir, "owner__name")
	git := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", repo, "-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	write := func(name, text string) {
		full := filepath.Join(repo, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(repo, 0o755); err != nil {
		t.Fatal(err)
	}
	git("init", "-q")
	for name, text := range first {
		write(name, text)
	}
	// These attributes make git archive omit the tests and convert line endings. Sources must not.
	write(".gitattributes", "tests/** export-ignore\n*.py eol=crlf\n")
	git("add", "-A")
	git("commit", "-qm", "base")
	commit = git("rev-parse", "HEAD")
	write("lib.py", healthy)
	git("commit", "-qam", "the fix")
	return dir, commit
}

// source writes rows to a JSONL file and returns a source that reads it.
func source(t *testing.T, kind string, with map[string]any, rows ...map[string]any) env.Source {
	t.Helper()
	var text strings.Builder
	for _, r := range rows {
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(append(b, '\n'))
	}
	name := filepath.Join(t.TempDir(), "rows.jsonl")
	if err := os.WriteFile(name, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	all := map[string]any{"path": name}
	maps.Copy(all, with)
	src, err := env.Sources.Build(kind, all, struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// one returns the only task of a source and its tree.
func one(t *testing.T, src env.Source) (schemas.Task, *workspace.Tree) {
	t.Helper()
	tasks, err := src.Tasks(t.Context())
	if err != nil || len(tasks) != 1 {
		t.Fatalf("%d tasks, %v", len(tasks), err)
	}
	files, err := src.Tree(t.Context(), tasks[0].InstanceID)
	if err != nil {
		t.Fatal(err)
	}
	return tasks[0], files.(*workspace.Tree)
}

func contents(t *testing.T, files *workspace.Tree) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, p := range files.Paths() {
		if text, _, _, err := files.File(p); err == nil {
			out[p] = string(text)
		}
	}
	return out
}

// sweRow returns a row of SWE-bench.
func sweRow(commit string) map[string]any {
	return map[string]any{
		"repo": "owner/name", "instance_id": "owner__name-1", "base_commit": commit, "patch": libFix, "test_patch": libTests,
		"problem_statement": "double triples", "hints_text": "a hint", "created_at": "2022-03-03T15:14:54Z", "version": "4.3",
		"FAIL_TO_PASS":             `["tests/test_lib.py::test_two", "tests/test_new.py::test_three"]`,
		"PASS_TO_PASS":             `["tests/test_lib.py::test_zero"]`,
		"environment_setup_commit": commit, "difficulty": "<15 min fix",
	}
}

func base() map[string]string {
	return map[string]string{"lib.py": brokenLib, "tests/test_lib.py": oldTest}
}

func TestSWEBenchHidesItsTestsAndItsHistory(t *testing.T) {
	repos, commit := clone(t, base())
	task, files := one(t, source(t, "swebench", map[string]any{"repos": repos}, sweRow(commit)))
	if task.Visibility != schemas.TestsHidden || task.Tests.Patch != libTests || task.GoldPatch != libFix || !task.Tests.XFailPasses {
		t.Errorf("%+v", task)
	}
	if task.Image != "swebench/sweb.eval.x86_64.owner_1776_name-1:latest" {
		t.Errorf("image %q", task.Image)
	}
	got := contents(t, files)
	delete(got, ".gitattributes")
	if diff := cmp.Diff(base(), got); diff != "" {
		t.Errorf("the agent's files (-want +got):\n%s", diff)
	}
	if want := condaPath + "python -m pytest -q tests/test_lib.py"; task.Entrypoint != want {
		t.Errorf("entrypoint %q, want %q", task.Entrypoint, want)
	}
	if want := condaPath + "python -m pytest -q tests/test_lib.py tests/test_new.py"; task.Tests.Command != want {
		t.Errorf("command %q, want %q", task.Tests.Command, want)
	}
	public, err := schemas.CanonicalJSON(task.Public())
	for _, secret := range []string{"test_new", "test_two", "2 * x", "a hint"} {
		if err != nil || strings.Contains(string(public), secret) {
			t.Errorf("the public task reveals %s: %s, %v", secret, public, err)
		}
	}
}

func TestSWEBenchDebugHasItsTestsInTheRepository(t *testing.T) {
	repos, commit := clone(t, base())
	task, files := one(t, source(t, "swebench-debug", map[string]any{"repos": repos, "image": "mine:1"}, sweRow(commit)))
	if task.Visibility != schemas.TestsRunnable || task.Tests.Patch != "" || task.Image != "mine:1" ||
		task.Entrypoint != "python -m pytest -q tests/test_lib.py tests/test_new.py" || len(task.Public().Tests.FailToPass) != 2 {
		t.Errorf("%+v", task)
	}
	if got := contents(t, files); !strings.Contains(got["tests/test_new.py"], "test_three") || got["lib.py"] != brokenLib {
		t.Errorf("%v", got)
	}
}

// A list of tests may be a list or JSON text, and the rows may be in Parquet or in a JSON list.
func TestSWEBenchRowsInEveryForm(t *testing.T) {
	type parquetRow struct {
		Repo       string   `parquet:"repo,snappy,dict"`
		ID         string   `parquet:"instance_id"`
		Commit     string   `parquet:"base_commit"`
		Patch      string   `parquet:"patch,optional"`
		TestPatch  string   `parquet:"test_patch"`
		Statement  string   `parquet:"problem_statement"`
		Version    string   `parquet:"version"`
		FailToPass []string `parquet:"FAIL_TO_PASS,list"`
		PassToPass string   `parquet:"PASS_TO_PASS"`
	}
	r := sweRow(strings.Repeat("a", 40))
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	rows := []parquetRow{{"owner/name", "owner__name-1", r["base_commit"].(string), libFix, libTests, "double triples", "4.3",
		[]string{"tests/test_lib.py::test_two", "tests/test_new.py::test_three"}, `["tests/test_lib.py::test_zero"]`}}
	if err := parquet.WriteFile(filepath.Join(dir, "data", "test-00000-of-00001.parquet"), rows); err != nil {
		t.Fatal(err)
	}
	rows[0].ID = "owner__name-2"
	if err := parquet.WriteFile(filepath.Join(dir, "data", "dev-00000-of-00001.parquet"), rows); err != nil {
		t.Fatal(err)
	}
	list, err := json.Marshal([]any{r, r}) // some releases of the dataset repeat rows
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "list.json"), list, 0o644); err != nil {
		t.Fatal(err)
	}
	var want schemas.TestSpec
	for i, with := range []map[string]any{{"path": dir, "split": "test"}, {"path": filepath.Join(dir, "list.json")}} {
		tasks, err := tasksOf(t, "swebench", with)
		if err != nil || len(tasks) != 1 || tasks[0].InstanceID != "owner__name-1" {
			t.Fatalf("%v: %v, %v", with, tasks, err)
		}
		if i == 0 {
			want = tasks[0].Tests
		} else if diff := cmp.Diff(want, tasks[0].Tests); diff != "" {
			t.Errorf("%v: %s", with, diff)
		}
	}
	if _, err := tasksOf(t, "swebench", map[string]any{"path": dir, "split": "train"}); err == nil || !strings.Contains(err.Error(), `no file of the split "train"`) {
		t.Error(err)
	}
}

// A broken column causes one short error that says what is wrong and where.
func TestBrokenColumns(t *testing.T) {
	for _, c := range []struct {
		kind, column string
		value        any
		want         string
	}{
		{"swebench", "instance_id", nil, `rows.jsonl:1: column "instance_id" is missing or empty`},
		{"swebench", "repo", 3.5, ""},
		{"swebench", "repo", []any{"x"}, `rows.jsonl:1: column "repo": want text`},
		{"swebench", "FAIL_TO_PASS", "[", `rows.jsonl:1: column "FAIL_TO_PASS": want a list of texts, or its JSON: unexpected end`},
		{"swebench", "FAIL_TO_PASS", []any{1.0}, `rows.jsonl:1: column "FAIL_TO_PASS": want texts, there is 1`},
		{"swebench", "FAIL_TO_PASS", "[]", `rows.jsonl:1: column "FAIL_TO_PASS" is empty`},
		{"swebench", "PASS_TO_PASS", nil, `rows.jsonl:1: column "PASS_TO_PASS": want a list`},
		{"swebench", "patch", "hello", `rows.jsonl:1: gold_patch: changes no file`},
		{"swebench", "test_patch", "", `rows.jsonl:1: column "test_patch" is missing or empty`},
		{"swebench", "instance_id", "a b", `rows.jsonl:1: instance_id "a b": want`},
		{"swesmith", "repo", "x", `rows.jsonl:1: column "repo": want swesmith/owner__name.commit, there is "x"`},
		{"swesmith", "patch", "x", `bug_patch: changes no file`},
		{"r2egym", "expected_output_json", "{", `rows.jsonl:1: column "expected_output_json": want the JSON of an object of texts`},
		{"r2egym", "expected_output_json", `{"a": "MAYBE"}`, `tests.expected: "a" is "maybe": choose from`},
		{"r2egym", "execution_result_content", `{"test_file_codes": ["x"]}`, `want as many test_file_names as test_file_codes, there are 0 and 1`},
		{"r2egym", "parsed_commit_content", `{}`, `column "parsed_commit_content" lacks old_commit_hash`},
		{"sweqa", "question", nil, `column "question" is missing or empty`},
	} {
		row := map[string]map[string]any{
			"swebench": sweRow(strings.Repeat("a", 40)), "swesmith": smithRow("abcdef12"), "r2egym": r2eRow("abcdef12"),
			"sweqa": {"question": "why?", "answer": "so"},
		}[c.kind]
		if row[c.column] = c.value; c.value == nil {
			delete(row, c.column)
		}
		_, err := source(t, c.kind, nil, row).Tasks(t.Context())
		if c.want == "" {
			continue // a number is accepted as text
		}
		if c.kind == "sweqa" && err != nil && strings.Contains(err.Error(), "not a repository of the benchmark") {
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Count(err.Error(), "\n") > 1 {
			t.Errorf("%s, %s = %v: %v, want %q", c.kind, c.column, c.value, err, c.want)
		}
	}
}

func TestDjangoIDsAreUnittestIDs(t *testing.T) {
	r := sweRow(strings.Repeat("a", 40))
	r["repo"], r["version"] = "django/django", "4.0"
	r["FAIL_TO_PASS"] = []any{"test_a (auth_tests.test_x.XTests)", "test_b (auth_tests.test_x.XTests.test_b)"}
	r["PASS_TO_PASS"] = []any{"Checks a thing. ", "test_a (auth_tests.test_x.XTests)"}
	tasks, err := source(t, "swebench", nil, r).Tasks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	spec := tasks[0].Tests
	if want := []string{"auth_tests.test_x.XTests.test_a", "auth_tests.test_x.XTests.test_b"}; !slices.Equal(spec.FailToPass, want) ||
		!slices.Equal(spec.PassToPass, []string{"Checks a thing."}) || spec.Method != schemas.VerifyUnittest {
		t.Errorf("%+v", spec)
	}
	if !strings.HasSuffix(spec.Command, "--settings=test_sqlite --parallel 1 test_lib test_new") {
		t.Errorf("command %q", spec.Command)
	}
}

// smithRow returns a row of SWE-smith. Its patch introduces the bug.
func smithRow(commit string) map[string]any {
	bug, err := taskfile.Reverse([]byte(libFix))
	if err != nil {
		panic(err)
	}
	return map[string]any{
		"instance_id": "owner__name." + commit[:8] + ".func_pm_op_swap__abc", "repo": "swesmith/owner__name." + commit[:8], "patch": string(bug),
		"FAIL_TO_PASS": []any{"tests/test_lib.py::test_zero"}, "PASS_TO_PASS": []any{}, "image_name": "swesmith.x86_64.owner__name." + commit[:8],
		"problem_statement": "",
	}
}

func TestSWESmithPlacesTheBugWithoutItsCommit(t *testing.T) {
	repos, _ := clone(t, map[string]string{"lib.py": "x\n", "tests/test_lib.py": oldTest})
	out, err := exec.CommandContext(t.Context(), "git", "-C", filepath.Join(repos, "owner__name"), "rev-parse", "HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	row := smithRow(strings.TrimSpace(string(out)))
	task, files := one(t, source(t, "swesmith", map[string]any{"repos": repos, "image": "none"}, row))
	if got := contents(t, files); got["lib.py"] != brokenLib {
		t.Errorf("the bug is not there: %q", got["lib.py"])
	}
	fixed, err := taskfile.Apply(files, []byte(task.GoldPatch))
	if err != nil {
		t.Fatal(err)
	}
	if got := contents(t, fixed); got["lib.py"] != healthy {
		t.Errorf("gold leads to %q", got["lib.py"])
	}
	if task.Origin.Operator != "func_pm_op_swap" || task.Public().Origin.Operator != "" || task.Public().BugPatch != "" {
		t.Errorf("%+v", task.Origin)
	}
	if task.Entrypoint != "python -m pytest -q -p no:cacheprovider tests/test_lib.py" || strings.TrimSpace(task.Instructions) == "" {
		t.Errorf("%+v", task)
	}
	hard := smithRow("5f171db0")
	hard["instance_id"], hard["repo"] = "spulec__freezegun.5f171db0.combine_file__x", "swesmith/spulec__freezegun.5f171db0"
	tasks, err := source(t, "swesmith", nil, row, hard).Tasks(t.Context())
	if err != nil || len(tasks) != 1 || tasks[0].Image != "swebench/swesmith.x86_64.owner_1776_name."+row["image_name"].(string)[len("swesmith.x86_64.owner__name."):] {
		t.Errorf("excluded by default: %v, %v", tasks, err)
	}
}

// r2eRow returns a row of R2E-Gym with the columns that the source reads.
func r2eRow(commit string) map[string]any {
	text := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return string(b)
	}
	return map[string]any{
		"repo_name": "name", "docker_image": "namanjain12/name_final:" + strings.Repeat("c", 40), "commit_hash": strings.Repeat("c", 40),
		"problem_statement": "[ISSUE]\ndouble triples\n[/ISSUE]",
		"parsed_commit_content": text(map[string]any{"old_commit_hash": commit, "file_diffs": []any{
			map[string]any{"header": map[string]any{"file": map[string]any{"path": "lib.py"}}, "old_file_content": brokenLib, "new_file_content": healthy},
			map[string]any{"header": map[string]any{"file": map[string]any{"path": "tests/test_lib.py"}}, "old_file_content": oldTest, "new_file_content": oldTest + "\n"},
		}}),
		"execution_result_content": text(map[string]any{"test_file_names": []any{"test_1.py"}, "test_file_codes": []any{"def test_two():\n    pass\n"}}),
		"expected_output_json":     text(map[string]any{"\x1b[1mTest.test_two\x1b[0m": "PASSED", "test_x - AssertionError": "FAILED"}),
	}
}

func TestR2EGymExpectsAResultOfEveryTest(t *testing.T) {
	repos, commit := clone(t, base())
	task, files := one(t, source(t, "r2egym", map[string]any{"repos": repos, "problems": "name_final:" + strings.Repeat("c", 40)}, r2eRow(commit)))
	if diff := cmp.Diff(map[string]string{"Test.test_two": "passed", "test_x": "failed"}, task.Tests.Expected); diff != "" {
		t.Error(diff)
	}
	if task.Instructions != "double triples" || task.BaseCommit != commit || task.Visibility != schemas.TestsHidden ||
		strings.Contains(task.GoldPatch, "tests/") || strings.Contains(schemas.Hash(task.Public()), "r2e_tests") {
		t.Errorf("%+v", task)
	}
	fixed, err := taskfile.Apply(files, []byte(task.GoldPatch))
	if err != nil || contents(t, fixed)["lib.py"] != healthy {
		t.Errorf("gold: %v", err)
	}
	tested, err := taskfile.Apply(files, []byte(task.Tests.Patch))
	if err != nil || contents(t, tested)["r2e_tests/test_1.py"] != "def test_two():\n    pass\n" || contents(t, files)["r2e_tests/test_1.py"] != "" {
		t.Errorf("hidden tests: %v", err)
	}
	if want := []string{"python -m pytest -q -W ignore", "python -m pytest -q -W ignore r2e_tests"}; task.Entrypoint != want[0] || task.Tests.Command != want[1] {
		t.Errorf("%q, %q", task.Entrypoint, task.Tests.Command)
	}
}
