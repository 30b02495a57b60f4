package sources

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/env"
	"github.com/tracesmith/tracesmith/env/tasks/taskfile"
	"github.com/tracesmith/tracesmith/schemas"
)

// zipped packs files into an archive.
func zipped(t *testing.T, contents map[string]string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "x.zip")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	for p, text := range contents {
		w, err := z.Create(p)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return name
}

func exercise(name string) map[string]string {
	dir := "python-main/" + practice + name + "/"
	module := strings.ReplaceAll(name, "-", "_")
	return map[string]string{
		dir + ".docs/instructions.md": "# Instructions\n", dir + ".docs/introduction.md": "# Introduction\n", dir + ".docs/instructions.append.md": "More\n",
		dir + ".meta/config.json": fmt.Sprintf(`{"files": {"solution": ["%s.py"], "test": ["%s_test.py"], "example": [".meta/example.py"]}}`, module, module),
		dir + ".meta/example.py":  healthy, dir + module + ".py": "def double(x):\n    pass\n", dir + module + "_test.py": oldTest,
		dir + ".approaches/one/content.md": "return 2 * x\n",
	}
}

func TestAiderTasksContainNoSolutions(t *testing.T) {
	all := exercise("two-fer")
	for p, text := range exercise("leap") {
		all[p] = text
	}
	for _, path := range []string{zipped(t, all), files(t, all)} {
		src, err := env.Sources.Build("aider", map[string]any{"path": path, "problems": "two_fer"}, struct{}{})
		if err != nil {
			t.Fatal(err)
		}
		task, repo := one(t, src)
		if want := "# Introduction\n\n# Instructions\n\nMore\n"; task.Instructions != want {
			t.Errorf("instructions %q, want %q", task.Instructions, want)
		}
		if got := repo.Paths(); !slices.Equal(got, []string{"two_fer.py", "two_fer_test.py"}) {
			t.Errorf("the agent gets %v", got)
		}
		fixed, err := taskfile.Apply(repo, []byte(task.GoldPatch))
		if err != nil || contents(t, fixed)["two_fer.py"] != healthy {
			t.Errorf("gold %q: %v", task.GoldPatch, err)
		}
		if task.Entrypoint != "python3 -m pytest --tb=short -q two_fer_test.py" || task.Tests.Files[0] != "two_fer_test.py" || task.ID != task.ComputeID() {
			t.Errorf("%+v", task)
		}
	}
	if _, err := tasksOf(t, "aider", map[string]any{"path": t.TempDir()}); err == nil || !strings.Contains(err.Error(), `set "path" to a clone of`) {
		t.Error(err)
	}
}

func TestMiniNightmareHasTenCompleteTasks(t *testing.T) {
	all := map[string]string{}
	for _, name := range nightmareNames {
		all["mini_nightmare/"+name+"/test.py"], all["mini_nightmare/"+name+"/"+name+"_code.py"] = oldTest, brokenLib
		all["mini_nightmare/"+name+"/.debugignore"] = "x"
	}
	for _, path := range []string{zipped(t, all), files(t, all)} {
		tasks, err := tasksOf(t, "mini_nightmare", map[string]any{"path": path})
		if err != nil || len(tasks) != 10 || tasks[0].InstanceID != "config" || !slices.Contains(tasks[0].Tests.Files, "test.py") {
			t.Fatalf("%v, %v", tasks, err)
		}
	}
	delete(all, "mini_nightmare/purr/purr_code.py")
	_, err := tasksOf(t, "mini_nightmare", map[string]any{"path": files(t, all)})
	if err == nil || !strings.Contains(err.Error(), "lacks mini_nightmare/purr/purr_code.py: unpack") {
		t.Error(err)
	}
}

func TestSWEQATasksHaveNoVerdict(t *testing.T) {
	dir := files(t, map[string]string{
		"scikit_learn.jsonl": `{"question": "why?", "answer": "SECRET"}` + "\n\n" + `{"question": "how?", "answer": "so"}` + "\n",
		"flask.jsonl":        `{"question": "where?", "answer": "there"}` + "\n",
	})
	tasks, err := tasksOf(t, "sweqa", map[string]any{"path": dir, "problems": []any{"scikit_learn-1", "flask-0"}})
	if err != nil || len(tasks) != 2 {
		t.Fatalf("%v, %v", tasks, err)
	}
	got := tasks[0]
	if got.InstanceID != "scikit_learn-1" || got.Instructions != "how?" || got.Repo != "scikit-learn/scikit-learn" || got.BaseCommit != "adb1ae7" ||
		got.Tests.Method != schemas.VerifyNone || len(sweQACommits) != 15 {
		t.Errorf("%+v", got)
	}
	if text, err := json.Marshal(tasks); err != nil || strings.Contains(string(text), "SECRET") {
		t.Errorf("the reference answer is part of a task: %s, %v", text, err)
	}
	_, err = tasksOf(t, "sweqa", map[string]any{"path": files(t, map[string]string{"mine.jsonl": `{"question": "a", "answer": "b"}`})})
	if err == nil || !strings.Contains(err.Error(), `"mine" is not a repository of the benchmark`) {
		t.Error(err)
	}
}

func TestFreeTakesAnyDirectoryAndKeepsItsWorkdir(t *testing.T) {
	dir := files(t, map[string]string{"a.py": "x\n"})
	src, err := env.Sources.Build("free", map[string]any{"image": "debian:12", "path": dir, "workdir": "/srv/app", "setup": []any{"true"}}, struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	task, repo := one(t, src)
	if task.Workdir != "/srv/app" || task.Image != "debian:12" || len(task.Setup) != 1 || task.Tests.Method != schemas.VerifyNone || len(repo.Paths()) != 1 {
		t.Errorf("%+v", task)
	}
	src, err = env.Sources.Build("free", map[string]any{"image": "debian:12"}, struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	if _, repo = one(t, src); len(repo.Paths()) != 0 {
		t.Errorf("an image alone has %v", repo.Paths())
	}
	for want, with := range map[string]map[string]any{"nothing to explore": {}, "want a clean absolute": {"image": "x", "workdir": "x"}} {
		if _, err := env.Sources.Build("free", with, struct{}{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", with, err)
		}
	}
}

func TestExclusionsApplyOnlyToAll(t *testing.T) {
	ids := []string{"a.1", "a.2", "b", "c"}
	splits := map[string][]string{"small": {"b", "a.1"}, "wrong": {"z"}}
	for text, want := range map[string]string{
		``: "a.1 a.2 b c", `"all"`: "b", `null`: "b", `"c"`: "c", `"small"`: "b a.1", `["c", "a.1"]`: "c a.1", `"a.2"`: "a.2",
		`["b", "b"]`: `"b" is listed twice`, `"smal"`: "there is no", `["d"]`: "there is no", `"wrong"`: `names "z", which the dataset does not contain`,
		`7`: "want \"all\", an id", `[]`: "",
	} {
		var p Problems
		var got string
		err := p.UnmarshalJSON([]byte(text))
		excluded := []string{"a", "c"}
		if text == "" {
			err, excluded = nil, nil
		}
		var chosen []string
		if err == nil {
			chosen, err = p.choose(ids, splits, excluded)
		}
		if got = strings.Join(chosen, " "); err != nil {
			got = err.Error()
		}
		if err == nil && got != want || err != nil && (want == "" || !strings.Contains(got, want)) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestRecipesReplaceImages(t *testing.T) {
	recipes := filepath.Join(files(t, map[string]string{"r.yaml": `
owner/name 4.3:
  python: /usr/bin/python3
  pre_install: [echo one]
  pip: ["pytest<8", "it's"]
  install: [python3 -m pip install -q --no-deps -e .]
  files: {version.py: "v = 1\n"}
  exclude_tests: {"tests/test_lib.py::test_zero": needs the network}
`}), "r.yaml")
	repos, commit := clone(t, base())
	with := map[string]any{"repos": repos, "image": "build", "recipes": recipes}
	task, repo := one(t, source(t, "swebench", with, sweRow(commit)))
	if want := []string{"echo one", `python3 -m pip install -q 'pytest<8' 'it'\''s'`, "python3 -m pip install -q --no-deps -e ."}; !slices.Equal(task.Setup, want) {
		t.Errorf("setup %q", task.Setup)
	}
	if task.Image != "" || task.Python != "/usr/bin/python3" || len(task.Tests.PassToPass) != 0 ||
		task.Tests.Excluded["tests/test_lib.py::test_zero"] != "needs the network" || !strings.HasPrefix(task.Entrypoint, "python -m pytest") {
		t.Errorf("%+v", task)
	}
	if contents(t, repo)["version.py"] != "v = 1\n" {
		t.Errorf("%v", repo.Paths())
	}
	with["recipes"] = filepath.Join(files(t, map[string]string{"r.yaml": "owner/name 4.3:\n  base: mine:1\n  python: '9.9'\n"}), "r.yaml")
	task, _ = one(t, source(t, "swebench", with, sweRow(commit)))
	if task.Image != "mine:1" || task.Python != "" { // the image contains the interpreter
		t.Errorf("image %q, python %q", task.Image, task.Python)
	}
	row := sweRow(commit)
	row["version"] = "5"
	if _, err := source(t, "swebench", with, row).Tasks(t.Context()); err == nil || !strings.Contains(err.Error(), `no recipe for owner__name-1, "owner/name 5" or "owner/name"`) {
		t.Error(err)
	}
	row["instance_id"] = "owner__name-2"
	with["problems"] = []string{"owner__name-1"}
	if task, _ := one(t, source(t, "swebench", with, sweRow(commit), row)); task.InstanceID != "owner__name-1" {
		t.Errorf("instance %q, want owner__name-1: an instance that is not chosen needs no recipe", task.InstanceID)
	}
}

func TestRecipesSkipPyenvShims(t *testing.T) {
	dir := files(t, map[string]string{
		"pyenv/shims/python3.9": "#!/bin/sh\nexit 127\n", "pyenv/versions/3.9.18/bin/python3.9": "", "bin/python3.11": "",
		"pyenv/shims/python3.11": "", "pyenv/versions/3.11.7/bin/python3.11": "",
	})
	for _, name := range []string{"pyenv/shims/python3.9", "pyenv/shims/python3.11", "bin/python3.11"} {
		if err := os.Chmod(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PYENV_ROOT", filepath.Join(dir, "pyenv"))
	t.Setenv("PATH", filepath.Join(dir, "pyenv", "shims")+":"+filepath.Join(dir, "bin"))
	for version, want := range map[string]string{"3.9": "pyenv/versions/3.9.18/bin/python3.9", "3.11": "bin/python3.11"} {
		if got, err := hostPython(version); err != nil || got != filepath.Join(dir, want) {
			t.Errorf("%s: %s, %v", version, got, err)
		}
	}
	if _, err := hostPython("3.8"); err == nil {
		t.Error("found a Python that is not there")
	}
}
